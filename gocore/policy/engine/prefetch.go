package engine

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
	"velocpy/gocore/policy/plan"
)

// headroomFor is for how many operations a capture counts as recent: while captures are recent, prefetches leave room for two of them.
const headroomFor = 16

// Hint appends to the restore order of a history.
func (e *Engine) Hint(now int64, h *History, hints []plan.Hint) {
	h.order.Append(hints...)
	h.due.Append(hints...)
	e.follow(h)
	for _, k := range h.order.Withdrawn() {
		e.renew(now, h, k)
	}
	for _, x := range hints {
		e.renew(now, h, x.Key)
	}
	e.foresee(h)
	e.makeProgress(now)
}

// follow updates the engine's copy of the order's position. A guess that was remade numbers its restores anew.
func (e *Engine) follow(h *History) {
	if head := h.order.Head(); head != e.heads[h.lane] {
		e.heads[h.lane] = head
		for t := range h.promised {
			h.promised[t] = max(h.promised[t], head)
		}
		h.readyTo, h.assigned, h.verifiedTo = max(h.readyTo, head), max(h.assigned, head), max(h.verifiedTo, head)
	}
	e.places[h.lane] = h.order.Now()
	e.assign(h)
}

// followLater defers follow while many checkpoints change in a row. followMoved runs it once, before room is made.
func (e *Engine) followLater(h *History) {
	if !h.moved {
		h.moved = true
		e.moved = append(e.moved, h)
	}
}

func (e *Engine) followMoved() {
	for _, h := range e.moved {
		h.moved = false
		e.follow(h)
	}
	e.moved = e.moved[:0]
}

// ClearHints withdraws the plan of a history.
func (e *Engine) ClearHints(now int64, h *History) {
	h.order.Clear()
	h.due.Clear()
	e.resetPlan(now, h)
	e.makeProgress(now)
}

// StartPrefetch allows prefetching before the first restore.
func (e *Engine) StartPrefetch(now int64, h *History) {
	h.started = true
	e.queuePrefetch(h)
	e.makeProgress(now)
}

// renew updates where the order expects the checkpoint of k next. If it expects it nowhere, the promises of the checkpoint are withdrawn.
func (e *Engine) renew(now int64, h *History, k model.Key) {
	if rec := e.note(h, k); rec != nil && rec.seq == fragment.Unexpected {
		e.withdrawPromises(now, rec)
	}
}

// note is renew without the withdrawal.
func (e *Engine) note(h *History, k model.Key) *Record {
	rec := h.Get(k)
	if rec == nil {
		return nil
	}
	seq, ok := h.order.Seq(k)
	if !ok {
		e.expect(rec, fragment.Unexpected)
		return rec
	}
	e.expect(rec, seq)
	for t := range e.tiers {
		if e.mayRead(rec, t) && !e.promises(rec, t) {
			e.lookAgain(h, t, seq)
		}
	}
	return rec
}

// lookAgain makes the prefetcher of tier t go over the order again from seq on.
func (e *Engine) lookAgain(h *History, t int, seq int64) {
	if seq < h.promised[t] {
		h.promised[t] = seq
	}
	h.verifiedTo = min(h.verifiedTo, seq)
	e.queuePrefetch(h)
}

// queuePrefetch puts the history on the list of those whose prefetcher may have work.
func (e *Engine) queuePrefetch(h *History) {
	e.queueVerification(h)
	if h.started && !h.inPrefetch && e.cfg.Prefetch {
		h.inPrefetch = true
		e.toPrefetch = append(e.toPrefetch, h)
	}
}

// resetPlan reads the whole order anew and withdraws the promises that it does not confirm.
func (e *Engine) resetPlan(now int64, h *History) {
	h.Each(func(rec *Record) {
		seq, ok := h.order.Seq(rec.Key)
		if !ok {
			seq = fragment.Unexpected
		}
		e.expect(rec, seq)
		if !ok {
			e.withdrawPromises(now, rec)
		}
	})
	e.heads[h.lane], e.places[h.lane] = h.order.Head(), h.order.Now()
	for t := range h.promised {
		h.promised[t] = h.order.Head()
		h.stuck[t] = 0
	}
	h.readyTo, h.assigned, h.verifiedTo = h.order.Head(), h.order.Head(), h.order.Head()
	e.assign(h)
	e.foresee(h)
	e.queuePrefetch(h)
}

// advance moves the order past the restore of rec and tells whether it was the last one. hit: the fastest tier had the bytes.
func (e *Engine) advance(now int64, h *History, rec *Record, hit bool) (last bool) {
	e.noteDistance(h, rec, hit)
	h.started = true
	e.queuePrefetch(h)
	v := h.order.Restored(rec.Key)
	e.follow(h)
	h.pace.restored(now, h.order.Now(), h.order.Guessing())
	e.paced = true
	for _, k := range append(v.Withdrawn, v.Deferred...) {
		e.renew(now, h, k)
	}
	// The promises of rec end with the restore. Were the restore the last one, a copy released before it might be flushed for nothing.
	e.note(h, rec.Key)
	e.begun(h)
	last = v.Last
	for _, k := range v.Drops {
		d := h.Get(k)
		switch {
		case d == rec: // a drop of rec follows this restore at once
			last = true
		case d != nil:
			e.trace(now, Dropped, d, -1, 0)
			e.remove(now, d)
		}
	}
	return last
}

// assign updates the records that a guess has come to expect since the last call.
func (e *Engine) assign(h *History) {
	if !h.order.Guessing() {
		return
	}
	h.order.Upcoming(h.assigned, func(seq int64, k model.Key, _ bool) bool {
		h.assigned = seq + 1
		if rec := h.Get(k); rec != nil && (rec.seq == fragment.Unexpected || rec.seq < e.heads[h.lane]) {
			e.expect(rec, seq)
		}
		return true
	})
}

// noteDistance measures the prefetch distance: how many of the next expected checkpoints are in the fastest tier when a restore is asked for (Maurya
// et al., HPDC'23, section 5.3.5). The walk continues where the last one ended.
func (e *Engine) noteDistance(h *History, rec *Record, hit bool) {
	head := h.order.Head()
	h.readyTo = max(h.readyTo, head)
	h.order.Upcoming(h.readyTo, func(seq int64, k model.Key, _ bool) bool {
		if r := h.Get(k); r == nil || !e.Complete(r, r.Top()) {
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

// promises tells whether all objects of rec are promised in tier t.
func (e *Engine) promises(rec *Record, t int) bool {
	for _, o := range rec.Objects() {
		if id := o.copies[t]; id == fragment.None || e.tiers[t].table.At(id).State != lifecycle.ReadComplete {
			return false
		}
	}
	return true
}

// ahead promises the copies of rec's objects in tier t or begins to load them, in the order in which a restore needs them; false if that has to wait.
func (e *Engine) ahead(now int64, h *History, rec *Record, t int) bool {
	if !e.mayRead(rec, t) || t == rec.Top() && !e.fitsWhole(rec, t) {
		return true
	}
	for _, o := range rec.Objects() {
		e.aheadOfSource(now, h, o, t)
		if !e.aheadOf(now, h, o, t) {
			return false
		}
	}
	return true
}

func (e *Engine) aheadOf(now int64, h *History, o *Object, t int) bool {
	tr := e.tiers[t]
	if !e.isLoadable(o, t) {
		return true
	}
	if id := o.copies[t]; id != fragment.None {
		f := tr.table.At(id)
		if tr.behind(f) {
			return true // a copy that has to leave a shrunk tier is not promised
		}
		if f.State == lifecycle.WriteComplete || f.State == lifecycle.Flushed {
			if tr.claims.len() > 0 || (f.Class != fragment.Held && tr.bytes[fragment.Promised]+o.Bytes(t) > tr.Capacity-e.headroom(t)) {
				return false
			}
			e.step(o, t, lifecycle.Promise)
			e.updateCopy(now, o, t)
		}
		return true
	}
	if e.Below(t) < 0 || o.loadsOn&(1<<t) != 0 {
		return true
	}
	l := e.links[t]
	if !e.complete(o, l.lower) {
		return false // it is loaded into the tier below first
	}
	if e.loadsEnough(l) {
		return false
	}
	if tr.bytes[fragment.Promised]+tr.bytes[fragment.Held]+o.Bytes(t) > tr.Capacity-e.headroom(t) || tr.claims.len() > 0 || e.isUnderPressure(t) {
		return false
	}
	if e.spare(now, t, o) != granted {
		h.stuck[t] = tr.version + 1
		return false
	}
	e.row(o, l.lower).Transfers++
	e.updateCopy(now, o, l.lower)
	o.loadsOn |= 1 << t
	e.beginLoad(now, o, t, false)
	return true
}

// headroom is the room of tier t that prefetches leave to captures.
func (e *Engine) headroom(t int) int64 {
	tr := e.tiers[t]
	if tr.captured == 0 || e.count-tr.captures > headroomFor {
		tr.captured = 0
		return 0
	}
	return min(2*tr.captured, tr.Capacity/2)
}
