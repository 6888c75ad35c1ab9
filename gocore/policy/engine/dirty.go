package engine

import (
	"container/heap"
	"slices"
)

// dirty holds the records that only the upper tier of a link has and for which no flush is queued.
type dirty struct {
	link  int
	heaps []dirtyHeap // by lane
	lanes []int32     // those whose heap is not empty
	count int
	below *tier
	least need // a lower bound of the needs of all of them below
}

// setDirty records whether only the upper tier holds r and no flush of it is queued.
func (l *link) setDirty(e *Engine, r *Record, dirty bool) {
	if dirty && r.dirtyAt[l.upper] < 0 && l.passable < unknown && !l.refuses(e, r) {
		l.passable += e.tiers[l.upper].extent(r)
	}
	l.dirty.set(r, dirty)
}

// set adds r to the set or removes it.
func (d *dirty) set(r *Record, in bool) {
	switch at, lane := r.dirtyAt[d.link], r.Hist.lane; {
	case in && at < 0:
		h := d.heap(lane)
		if len(h.recs) == 0 {
			d.lanes = append(d.lanes, lane)
		}
		heap.Push(h, r)
		d.count++
		d.least = d.least.common(d.below.need(r))
	case !in && at >= 0:
		h := &d.heaps[lane]
		heap.Remove(h, int(at))
		d.count--
		if len(h.recs) == 0 {
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

// moved restores the heap order after r was restored or its place in the restore order has changed.
func (d *dirty) moved(r *Record) {
	if at := r.dirtyAt[d.link]; at >= 0 {
		heap.Fix(&d.heaps[r.Hist.lane], int(at))
	}
}

// each calls f for all records of the set.
func (d *dirty) each(f func(*Record)) {
	for _, lane := range d.lanes {
		for _, r := range d.heaps[lane].recs {
			f(r)
		}
	}
}

// few is how many records of a history next looks at for one that may be flushed.
const few = 16

// next is the record whose flush costs least, or nearly so, among those that may be flushed. Unexpected records come first, the longest untouched
// before others. Then comes the record whose restore is farthest ahead. Nil if none of the first few of each history may be flushed.
func (d *dirty) next(e *Engine, may func(*Record) bool) (best *Record) {
	for _, lane := range d.lanes {
		recs := d.heaps[lane].recs
		recs = recs[:min(few, len(recs))]
		if i := slices.IndexFunc(recs, may); i >= 0 && (best == nil || e.later(recs[i], best)) {
			best = recs[i]
		}
	}
	return best
}

// dirtyHeap orders the dirty records of one history.
type dirtyHeap struct {
	link int
	recs []*Record
}

func (d *dirtyHeap) Len() int { return len(d.recs) }

func (d *dirtyHeap) Less(i, j int) bool {
	a, b := d.recs[i], d.recs[j]
	if a.seq != b.seq {
		return a.seq > b.seq
	}
	return a.touched < b.touched
}

func (d *dirtyHeap) Swap(i, j int) {
	d.recs[i], d.recs[j] = d.recs[j], d.recs[i]
	d.recs[i].dirtyAt[d.link], d.recs[j].dirtyAt[d.link] = int32(i), int32(j)
}

// Push and Pop implement heap.Interface.
func (d *dirtyHeap) Push(x any) {
	r := x.(*Record)
	r.dirtyAt[d.link] = int32(len(d.recs))
	d.recs = append(d.recs, r)
}

func (d *dirtyHeap) Pop() any {
	n := len(d.recs) - 1
	r := d.recs[n]
	d.recs[n] = nil
	d.recs = d.recs[:n]
	r.dirtyAt[d.link] = -1
	return r
}
