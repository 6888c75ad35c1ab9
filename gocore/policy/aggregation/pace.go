package aggregation

import (
	"maps"
	"math"
	"slices"
)

const (
	// slowFrom is how much longer than usual a node needs for a byte before it counts as slow. Below that, bytes that are sent to another node gain too little.
	slowFrom = 2
	// leastMeasured is the least number of bytes whose time says anything of a node's rate: with fewer, delays count for more.
	leastMeasured = 4 << 20
	// forgetting is the exponent by which the pace of a node that has written less than leastMeasured comes nearer to the usual one with each plan: so a slow node is tried
	// again later.
	forgetting = 0.75
)

// Paces remember how long nodes have needed to write. Each plan of a push takes account of those before it: a node that writes slowly writes less, and its ranks send to
// leaders on other nodes. The paper names such elections as future work (section 6). They are the seconds that a byte takes, by the number of the node; those of nodes
// that have not written enough are missing.
type Paces map[int]float64

// Written is what a node has written for a plan.
type Written struct {
	Node    int
	Bytes   int64
	Seconds float64 // in which at least one write was under way
	Sync    float64 // seconds in which the files were synced behind them
}

// Learn returns the paces behind a plan. Nodes have written for it, each by one rank or several. The plan counts for as much as all earlier ones together. The shortest sync
// is taken for what each of them costs, however few bytes a node has written.
func (p Paces) Learn(all []Written) Paces {
	shortest := math.Inf(1)
	for _, x := range all {
		if x.Bytes > 0 {
			shortest = min(shortest, x.Sync)
		}
	}
	sums := map[int]Written{}
	for _, x := range all {
		if x.Bytes > 0 {
			sum := sums[x.Node]
			sums[x.Node] = Written{Node: x.Node, Bytes: sum.Bytes + x.Bytes, Seconds: max(sum.Seconds, x.Seconds+x.Sync-shortest)}
		}
	}
	usual := p.usual()
	next := Paces{}
	for node, known := range p {
		next[node] = usual * math.Pow(known/usual, forgetting)
	}
	for node, sum := range sums {
		if sum.Bytes < leastMeasured || !(sum.Seconds > 0) {
			continue
		}
		pace := sum.Seconds / float64(sum.Bytes)
		if known, ok := p[node]; ok {
			pace = (known + pace) / 2
		}
		next[node] = pace
	}
	return next
}

// usual is the median pace of the known nodes; of two in the middle the faster one.
func (p Paces) usual() float64 {
	all := slices.Sorted(maps.Values(p))
	if len(all) == 0 {
		return 0
	}
	return all[(len(all)-1)/2]
}

// Slow returns how many times as long as usual each slow node needs for a byte. The others are not in it.
func (p Paces) Slow() map[int]float64 {
	slow, usual := map[int]float64{}, p.usual()
	for node, pace := range p {
		if pace >= slowFrom*usual {
			slow[node] = pace / usual
		}
	}
	return slow
}
