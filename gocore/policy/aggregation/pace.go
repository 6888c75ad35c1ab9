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
	// forgetting is the exponent by which a node that writes nothing comes nearer to the usual pace with each plan: so it is tried again later.
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
}

// Learn returns the paces behind a plan. Nodes have written for it, each by one rank or several. The plan counts for as much as all earlier ones together.
func (p Paces) Learn(all []Written) Paces {
	sums := map[int]Written{}
	for _, x := range all {
		sum := sums[x.Node]
		sums[x.Node] = Written{x.Node, sum.Bytes + x.Bytes, max(sum.Seconds, x.Seconds)}
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
