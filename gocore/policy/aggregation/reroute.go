package aggregation

import (
	"cmp"
	"container/heap"
	"slices"
)

// Part is what a rank has for a file, and the rank that writes it.
type Part struct {
	File, Rank int
	Bytes      int64
	Writer     int
}

// Reroute takes parts from writers on slow nodes and gives them to ranks of other nodes, as far as these have written them sooner. nodes are the numbers of all ranks'
// nodes. With whole, a file has no more writers than before: one that is on a slow node gives away all that it has for the file, or nothing. Else each part goes by itself.
func Reroute(parts []Part, nodes []int, slow map[int]float64, whole bool) {
	if len(slow) == 0 {
		return
	}
	r := newRerouting(parts, nodes, slow)
	for _, bundle := range r.bundles(whole) {
		r.move(bundle)
	}
}

// rerouting is a Reroute under way.
type rerouting struct {
	parts   []Part
	nodes   []int
	slow    map[int]float64
	loads   map[int]int64 // bytes that each slow node writes
	others  targets       // nodes that are not slow
	writers map[writerOf]int
}

// writerOf names the rank that writes a file on a node.
type writerOf struct{ file, node int }

func newRerouting(parts []Part, nodes []int, slow map[int]float64) *rerouting {
	r := &rerouting{parts: parts, nodes: nodes, slow: slow, loads: map[int]int64{}, writers: map[writerOf]int{}}
	at := map[int]*target{}
	for rank, node := range nodes {
		if slow[node] <= 1 && at[node] == nil {
			at[node] = &target{node: node, rank: rank}
			r.others = append(r.others, at[node])
		}
	}
	for _, x := range parts {
		node := nodes[x.Writer]
		if to := at[node]; to != nil {
			to.bytes += x.Bytes
		} else {
			r.loads[node] += x.Bytes
		}
		r.writers[writerOf{x.File, node}] = x.Writer
	}
	heap.Init(&r.others)
	return r
}

// bundle is parts that go together, by their places in the list.
type bundle struct {
	parts []int
	bytes int64
	from  int // node
}

// bundles are the parts that writers on slow nodes have, the largest first.
func (r *rerouting) bundles(whole bool) (all []*bundle) {
	of := map[writerOf]*bundle{}
	for i, x := range r.parts {
		from := r.nodes[x.Writer]
		if r.slow[from] <= 1 || x.Bytes == 0 {
			continue
		}
		b := of[writerOf{x.File, from}]
		if b == nil || !whole {
			b = &bundle{from: from}
			of[writerOf{x.File, from}] = b
			all = append(all, b)
		}
		b.parts, b.bytes = append(b.parts, i), b.bytes+x.Bytes
	}
	slices.SortStableFunc(all, func(a, b *bundle) int { return cmp.Compare(b.bytes, a.bytes) })
	return all
}

// move gives a bundle to the node that writes the least, if that has written it before the slow node has written all it has.
func (r *rerouting) move(b *bundle) {
	if len(r.others) == 0 {
		return
	}
	to := r.others[0]
	if float64(to.bytes+b.bytes) >= float64(r.loads[b.from])*r.slow[b.from] {
		return
	}
	r.loads[b.from] -= b.bytes
	to.bytes += b.bytes
	heap.Fix(&r.others, 0)
	for _, i := range b.parts {
		x := &r.parts[i]
		writer, writes := r.writers[writerOf{x.File, to.node}]
		if !writes {
			writer = to.rank
			r.writers[writerOf{x.File, to.node}] = writer
		}
		x.Writer = writer
	}
}

// target is a node that parts may go to.
type target struct {
	node  int
	rank  int // its lowest one
	bytes int64
}

// targets is a heap: the node that writes the least, and of several the first, is at its top.
type targets []*target

func (t targets) Len() int { return len(t) }
func (t targets) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(t[i].bytes, t[k].bytes), cmp.Compare(t[i].rank, t[k].rank)) < 0
}
func (t targets) Swap(i, k int) { t[i], t[k] = t[k], t[i] }
func (t *targets) Push(x any)   { *t = append(*t, x.(*target)) }
func (t *targets) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
