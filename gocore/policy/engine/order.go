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
func (os *orders) add(h *History) {
	os.heads, os.places, os.intervals = append(os.heads, h.order.Head()), append(os.places, h.order.Now()), append(os.intervals, alike)
}

// Hint appends to the restore order of a history.
func (os *orders) Hint(now int64, h *History, hints []plan.Hint) {
	h.order.Append(hints...)
	h.due.Append(hints...)
	os.follow(h)
	for _, k := range h.order.Withdrawn() {
		os.renew(now, h, k)
	}
	for _, x := range hints {
		os.renew(now, h, x.Key)
	}
	os.forecasts.foresee(h)
	os.makeProgress(now)
}

// follow updates the engine's copy of the order's position. A guess that was remade numbers its restores anew.
func (os *orders) follow(h *History) {
	if head := h.order.Head(); head != os.heads[h.lane] {
		os.heads[h.lane] = head
		for t := range h.promised {
			h.promised[t] = max(h.promised[t], head)
		}
		h.readyTo, h.assigned, h.verifiedTo = max(h.readyTo, head), max(h.assigned, head), max(h.verifiedTo, head)
	}
	os.places[h.lane] = h.order.Now()
	os.assign(h)
}

// followLater defers follow while many checkpoints change in a row. followMoved runs it once, before room is made.
func (os *orders) followLater(h *History) {
	if !h.moved {
		h.moved = true
		os.moved = append(os.moved, h)
	}
}

func (os *orders) followMoved() {
	for _, h := range os.moved {
		h.moved = false
		os.follow(h)
	}
	os.moved = os.moved[:0]
}

// ClearHints withdraws the plan of a history.
func (os *orders) ClearHints(now int64, h *History) {
	h.order.Clear()
	h.due.Clear()
	os.resetPlan(now, h)
	os.makeProgress(now)
}

// renew updates where the order expects the checkpoint of k next. If it expects it nowhere, the promises of the checkpoint are withdrawn.
func (os *orders) renew(now int64, h *History, k model.Key) {
	if rec := os.note(h, k); rec != nil && rec.seq == fragment.Unexpected {
		os.loads.withdrawPromises(now, rec)
	}
}

// note is renew without the withdrawal.
func (os *orders) note(h *History, k model.Key) *Record {
	rec := h.Get(k)
	if rec == nil {
		return nil
	}
	seq, ok := h.order.Seq(k)
	if !ok {
		os.checkpoints.expect(rec, fragment.Unexpected)
		return rec
	}
	os.checkpoints.expect(rec, seq)
	for t := range os.tiers {
		if os.checkpoints.mayRead(rec, t) && !os.prefetches.promises(rec, t) {
			os.prefetches.lookAgain(h, t, seq)
		}
	}
	return rec
}

// resetPlan reads the whole order anew and withdraws the promises that it does not confirm.
func (os *orders) resetPlan(now int64, h *History) {
	h.Each(func(rec *Record) {
		seq, ok := h.order.Seq(rec.Key)
		if !ok {
			seq = fragment.Unexpected
		}
		os.checkpoints.expect(rec, seq)
		if !ok {
			os.loads.withdrawPromises(now, rec)
		}
	})
	os.heads[h.lane], os.places[h.lane] = h.order.Head(), h.order.Now()
	for t := range h.promised {
		h.promised[t] = h.order.Head()
		h.stuck[t] = 0
	}
	h.readyTo, h.assigned, h.verifiedTo = h.order.Head(), h.order.Head(), h.order.Head()
	os.assign(h)
	os.forecasts.foresee(h)
	os.prefetches.queuePrefetch(h)
}

// advance moves the order past the restore of rec and tells whether it was the last one. hit: the fastest tier had the bytes.
func (os *orders) advance(now int64, h *History, rec *Record, hit bool) (last bool) {
	os.noteDistance(h, rec, hit)
	h.started = true
	os.prefetches.queuePrefetch(h)
	v := h.order.Restored(rec.Key)
	os.follow(h)
	h.pace.restored(now, h.order.Now(), h.order.Guessing())
	os.paced = true
	for _, k := range append(v.Withdrawn, v.Deferred...) {
		os.renew(now, h, k)
	}
	// The promises of rec end with the restore. Were the restore the last one, a copy released before it might be flushed for nothing.
	os.note(h, rec.Key)
	os.forecasts.begun(h)
	last = v.Last
	for _, k := range v.Drops {
		d := h.Get(k)
		switch {
		case d == rec: // a drop of rec follows this restore at once
			last = true
		case d != nil:
			os.trace(now, Dropped, d, -1, 0)
			os.checkpoints.remove(now, d)
		}
	}
	return last
}

// assign updates the records that a guess has come to expect since the last call.
func (os *orders) assign(h *History) {
	if !h.order.Guessing() {
		return
	}
	h.order.Upcoming(h.assigned, func(seq int64, k model.Key, _ bool) bool {
		h.assigned = seq + 1
		if rec := h.Get(k); rec != nil && (rec.seq == fragment.Unexpected || rec.seq < os.heads[h.lane]) {
			os.checkpoints.expect(rec, seq)
		}
		return true
	})
}

// noteDistance measures the prefetch distance: how many of the next expected checkpoints are in the fastest tier when a restore is asked for (Maurya
// et al., HPDC'23, section 5.3.5). The walk continues where the last one ended.
func (os *orders) noteDistance(h *History, rec *Record, hit bool) {
	head := h.order.Head()
	h.readyTo = max(h.readyTo, head)
	h.order.Upcoming(h.readyTo, func(seq int64, k model.Key, _ bool) bool {
		if r := h.Get(k); r == nil || !os.checkpoints.Complete(r, r.Top()) {
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
