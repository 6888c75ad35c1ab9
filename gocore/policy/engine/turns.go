package engine

import (
	"container/heap"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
)

// turns is a heap of histories whose prefetchers share a tier. Its first entry is the history whose next expected restore is due soonest. Of two that
// are due at the same time, the history created first comes first.
type turns []turn

type turn struct {
	h   *History
	due int64 // distance of the next restore that the prefetcher of the tier has not looked at
}

// before tells whether a comes before b. A turn without a history comes last.
func (a turn) before(b turn) bool {
	return b.h == nil || a.due < b.due || a.due == b.due && a.h.lane < b.h.lane
}

func (q turns) Len() int           { return len(q) }
func (q turns) Less(i, j int) bool { return q[i].before(q[j]) }
func (q turns) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *turns) Push(x any)        { *q = append(*q, x.(turn)) }
func (q *turns) Pop() any {
	n := len(*q) - 1
	x := (*q)[n]
	(*q)[n] = turn{}
	*q = (*q)[:n]
	return x
}

// second is the turn after the first one.
func (q turns) second() (next turn) {
	for _, x := range q[min(1, len(q)):min(3, len(q))] {
		if x.before(next) {
			next = x
		}
	}
	return next
}

// runPrefetchers runs the prefetchers of the histories that may have work. In each tier they go as far as prefetches may take room, in the order in
// which restores are due, across histories. A history whose prefetcher has not reached the end of the expected restores stays on the list.
func (ps *prefetches) runPrefetchers(now int64) {
	list := ps.toPrefetch
	if len(list) == 0 {
		return
	}
	ps.toPrefetch = ps.prefetchSpare[:0]
	for _, h := range list {
		h.inPrefetch, h.stopped = false, false
		ps.orders.follow(h)
	}
	if len(list) > 1 {
		ps.orders.compare(now)
	}
	for t := max(len(ps.links)-1, 0); t >= 0; t-- { // the lowest tier prefetches nothing, unless it is the only one
		ps.prefetchTier(now, list, t)
	}
	for _, h := range list {
		if h.stopped {
			ps.queuePrefetch(h)
		}
	}
	clear(list)
	ps.prefetchSpare = list
}

// prefetchTier promises the copies in tier t that the listed histories need next, and begins to load missing ones.
func (ps *prefetches) prefetchTier(now int64, list []*History, t int) {
	q := ps.turns[:0]
	for _, h := range list {
		if h.stuck[t] == ps.tiers[t].version+1 {
			h.stopped = true // no room at the last attempt, and no room has appeared since
			continue
		}
		h.stuck[t] = 0
		q = append(q, turn{h: h, due: ps.firstDue(h, t, len(list) > 1)})
	}
	heap.Init(&q)
	for len(q) > 0 {
		if more := ps.prefetchUntil(now, &q[0], t, q.second()); more {
			heap.Fix(&q, 0)
		} else {
			heap.Pop(&q)
		}
	}
	ps.turns = q
}

// firstDue is the distance of the first restore that the prefetcher of tier t looks at next. Without rivals it does not matter.
func (ps *prefetches) firstDue(h *History, t int, rivals bool) (due int64) {
	if rivals {
		h.order.Upcoming(h.promised[t], func(seq int64, _ model.Key, _ bool) bool {
			due = ps.due(h, seq)
			return false
		})
	}
	return due
}

// due is how far ahead a restore is, given its number in the order of h.
func (ps *prefetches) due(h *History, seq int64) int64 {
	return evict.Distance(h.order.Place(seq)-ps.orders.places[h.lane], ps.orders.intervals[h.lane])
}

// prefetchUntil runs the prefetcher of a history in tier t until the turn of another history comes. Then it returns true and sets mine.due to the
// history's next distance.
func (ps *prefetches) prefetchUntil(now int64, mine *turn, t int, next turn) (more bool) {
	h := mine.h
	h.order.Upcoming(h.promised[t], func(seq int64, k model.Key, _ bool) bool {
		if next.h != nil {
			mine.due = ps.due(h, seq)
			if more = next.before(*mine); more {
				return false
			}
		}
		if rec := h.Get(k); rec != nil && rec.seq == seq && rec.Captured() && !ps.ahead(now, h, rec, t) {
			h.stopped = true
			return false
		}
		h.promised[t] = seq + 1
		return true
	})
	return more
}
