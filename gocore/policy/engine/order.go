package engine

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/plan"
)

// orders follows the restore orders of the histories, and compares them.
type orders struct {
	*state

	heads     []int64    // by lane
	places    []int64    // by lane: the heads on the axis of intervals
	intervals []int64    // by lane: the weight of one interval, so that distances of several histories compare
	moved     []*History // their restore orders may have changed since follow ran
	paced     bool       // a pace has changed since compare ran
}

// add begins to follow the restore order of a history that is new.
func (od *orders) add(h *History) {
	od.heads, od.places, od.intervals = append(od.heads, h.order.Head()), append(od.places, h.order.Now()), append(od.intervals, alike)
}

// Hint appends to the restore order of a history.
func (od *orders) Hint(now int64, h *History, hints []plan.Hint) {
	h.order.Append(hints...)
	h.due.Append(hints...)
	od.follow(h)
	for _, k := range h.order.Withdrawn() {
		od.renew(now, h, k)
	}
	for _, x := range hints {
		od.renew(now, h, x.Key)
	}
	od.forecasts.foresee(h)
	od.makeProgress(now)
}

// follow updates the engine's copy of the order's position. A guess that was remade numbers its restores anew.
func (od *orders) follow(h *History) {
	if head := h.order.Head(); head != od.heads[h.lane] {
		od.heads[h.lane] = head
		for t := range h.promised {
			h.promised[t] = max(h.promised[t], head)
		}
		h.readyTo, h.assigned, h.verifiedTo = max(h.readyTo, head), max(h.assigned, head), max(h.verifiedTo, head)
	}
	od.places[h.lane] = h.order.Now()
	od.assign(h)
}

// followLater defers follow while many checkpoints change in a row. followMoved runs it once, before room is made.
func (od *orders) followLater(h *History) {
	if !h.moved {
		h.moved = true
		od.moved = append(od.moved, h)
	}
}

func (od *orders) followMoved() {
	for _, h := range od.moved {
		h.moved = false
		od.follow(h)
	}
	od.moved = od.moved[:0]
}

// ClearHints withdraws the plan of a history.
func (od *orders) ClearHints(now int64, h *History) {
	h.order.Clear()
	h.due.Clear()
	od.resetPlan(now, h)
	od.makeProgress(now)
}

// renew updates where the order expects the checkpoint of k next. If it expects it nowhere, the promises of the checkpoint are withdrawn.
func (od *orders) renew(now int64, h *History, k model.Key) {
	if rec := od.note(h, k); rec != nil && rec.seq == fragment.Unexpected {
		od.loads.withdrawPromises(now, rec)
	}
}

// note is renew without the withdrawal.
func (od *orders) note(h *History, k model.Key) *Record {
	rec := h.Get(k)
	if rec == nil {
		return nil
	}
	seq, ok := h.order.Seq(k)
	if !ok {
		od.checkpoints.expect(rec, fragment.Unexpected)
		return rec
	}
	od.checkpoints.expect(rec, seq)
	for t := range od.tiers {
		if od.checkpoints.mayRead(rec, t) && !od.prefetches.promises(rec, t) {
			od.prefetches.lookAgain(h, t, seq)
		}
	}
	return rec
}

// resetPlan reads the whole order anew and withdraws the promises that it does not confirm.
func (od *orders) resetPlan(now int64, h *History) {
	h.Each(func(rec *Record) {
		seq, ok := h.order.Seq(rec.Key)
		if !ok {
			seq = fragment.Unexpected
		}
		od.checkpoints.expect(rec, seq)
		if !ok {
			od.loads.withdrawPromises(now, rec)
		}
	})
	od.heads[h.lane], od.places[h.lane] = h.order.Head(), h.order.Now()
	for t := range h.promised {
		h.promised[t] = h.order.Head()
		h.stuck[t] = 0
	}
	h.readyTo, h.assigned, h.verifiedTo = h.order.Head(), h.order.Head(), h.order.Head()
	od.assign(h)
	od.forecasts.foresee(h)
	od.prefetches.queuePrefetch(h)
}

// advance moves the order past the restore of rec and tells whether it was the last one. hit: the fastest tier had the bytes.
func (od *orders) advance(now int64, h *History, rec *Record, hit bool) (last bool) {
	od.noteDistance(h, rec, hit)
	h.started = true
	od.prefetches.queuePrefetch(h)
	v := h.order.Restored(rec.Key)
	od.follow(h)
	h.pace.restored(now, h.order.Now(), h.order.Guessing())
	od.paced = true
	for _, k := range append(v.Withdrawn, v.Deferred...) {
		od.renew(now, h, k)
	}
	// The promises of rec end with the restore. Were the restore the last one, a copy released before it might be flushed for nothing.
	od.note(h, rec.Key)
	od.forecasts.begun(h)
	last = v.Last
	for _, k := range v.Drops {
		d := h.Get(k)
		switch {
		case d == rec: // a drop of rec follows this restore at once
			last = true
		case d != nil:
			od.trace(now, Dropped, d, -1, 0)
			od.checkpoints.remove(now, d)
		}
	}
	return last
}

// assign updates the records that a guess has come to expect since the last call.
func (od *orders) assign(h *History) {
	if !h.order.Guessing() {
		return
	}
	h.order.Upcoming(h.assigned, func(seq int64, k model.Key, _ bool) bool {
		h.assigned = seq + 1
		if rec := h.Get(k); rec != nil && (rec.seq == fragment.Unexpected || rec.seq < od.heads[h.lane]) {
			od.checkpoints.expect(rec, seq)
		}
		return true
	})
}

// noteDistance measures the prefetch distance: how many of the next expected checkpoints are in the fastest tier when a restore is asked for (Maurya
// et al., HPDC'23, section 5.3.5). The walk continues where the last one ended.
func (od *orders) noteDistance(h *History, rec *Record, hit bool) {
	head := h.order.Head()
	h.readyTo = max(h.readyTo, head)
	h.order.Upcoming(h.readyTo, func(seq int64, k model.Key, _ bool) bool {
		if r := h.Get(k); r == nil || !od.checkpoints.Complete(r, r.Top()) {
			return false
		}
		h.readyTo = seq + 1
		return true
	})
	distance := h.readyTo - head
	if distance > 0 && rec.seq == head {
		distance-- // the requested checkpoint is not a successor
	}
	h.Stats.Restores++
	h.Stats.DistanceSum += distance
	h.Stats.LastDistance = distance
	if hit {
		h.Stats.Hits++
	}
}
