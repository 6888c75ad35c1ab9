package engine

import (
	"container/heap"
	"slices"
)

// dirty holds the objects that only the upper tier of a link has and for which no flush is queued.
type dirty struct {
	link  int
	heaps []dirtyHeap // by lane
	lanes []int32     // those whose heap is not empty
	count int
	below *tier
	least need // a lower bound of the needs of all of them below
}

// setDirty records whether only the upper tier holds o and no flush of it is queued.
func (l *link) setDirty(s *state, o *Object, dirty bool) {
	if dirty && o.dirtyAt[l.upper] < 0 && l.passable < unknown && !l.refuses(s, o) {
		l.passable += s.tiers[l.upper].extent(o)
	}
	l.dirty.set(o, dirty)
}

// set adds o to the set or removes it.
func (d *dirty) set(o *Object, in bool) {
	switch at, lane := o.dirtyAt[d.link], o.lane(); {
	case in && at < 0:
		h := d.heap(lane)
		if len(h.objs) == 0 {
			d.lanes = append(d.lanes, lane)
		}
		heap.Push(h, o)
		d.count++
		d.least = d.least.common(d.below.need(o))
	case !in && at >= 0:
		h := &d.heaps[lane]
		heap.Remove(h, int(at))
		d.count--
		if len(h.objs) == 0 {
			i := slices.Index(d.lanes, lane)
			d.lanes = slices.Delete(d.lanes, i, i+1)
		}
		if d.count == 0 {
			d.least = boundless
		}
	}
}

func (d *dirty) heap(lane int32) *dirtyHeap {
	for int(lane) >= len(d.heaps) {
		d.heaps = append(d.heaps, dirtyHeap{link: d.link})
	}
	return &d.heaps[lane]
}

// moved restores the heap order after o was restored or its place in the restore order has changed.
func (d *dirty) moved(o *Object) {
	if at := o.dirtyAt[d.link]; at >= 0 {
		heap.Fix(&d.heaps[o.lane()], int(at))
	}
}

// each calls f for all objects of the set.
func (d *dirty) each(f func(*Object)) {
	for _, lane := range d.lanes {
		for _, o := range d.heaps[lane].objs {
			f(o)
		}
	}
}

// few is how many objects of a history next looks at for one that may be flushed.
const few = 16

// next is the object whose flush costs least, or nearly so, among those that may be flushed. Unexpected objects come first, the longest untouched
// before others. Then comes the object whose restore is farthest ahead. Nil if none of the first few of each history may be flushed.
func (d *dirty) next(s *state, may func(*Object) bool) (best *Object) {
	for _, lane := range d.lanes {
		objs := d.heaps[lane].objs
		objs = objs[:min(few, len(objs))]
		if i := slices.IndexFunc(objs, may); i >= 0 && (best == nil || s.orders.later(objs[i], best)) {
			best = objs[i]
		}
	}
	return best
}

// dirtyHeap orders the dirty objects of one history.
type dirtyHeap struct {
	link int
	objs []*Object
}

func (d *dirtyHeap) Len() int { return len(d.objs) }

func (d *dirtyHeap) Less(i, j int) bool {
	a, b := d.objs[i], d.objs[j]
	if x, y := a.next(), b.next(); x != y {
		return x > y
	}
	return a.touched < b.touched
}

func (d *dirtyHeap) Swap(i, j int) {
	d.objs[i], d.objs[j] = d.objs[j], d.objs[i]
	d.objs[i].dirtyAt[d.link], d.objs[j].dirtyAt[d.link] = int32(i), int32(j)
}

// Push and Pop implement heap.Interface.
func (d *dirtyHeap) Push(x any) {
	o := x.(*Object)
	o.dirtyAt[d.link] = int32(len(d.objs))
	d.objs = append(d.objs, o)
}

func (d *dirtyHeap) Pop() any {
	n := len(d.objs) - 1
	o := d.objs[n]
	d.objs[n] = nil
	d.objs = d.objs[:n]
	o.dirtyAt[d.link] = -1
	return o
}
