package engine

import (
	"velocpy/gocore/policy/fragment"
)

// queueFlush queues the flush of rec's copy in tier t. A second, more urgent request moves it forward.
func (e *Engine) queueFlush(now int64, t int, rec *Record, urgent bool) {
	if t >= len(e.links) || rec.gone {
		return
	}
	l, bit := e.links[t], uint8(1)<<t
	if rec.runs&bit != 0 {
		return
	}
	if rec.queuedOn&bit == 0 {
		if l.refuses(e, rec) || !e.Complete(rec, t) || e.lower(rec, t) >= 0 || !e.tiers[l.lower].fits(rec) {
			return
		}
		e.unstick(rec, t)
		rec.queuedOn |= bit
		l.queued++
		l.backlog = max(l.backlog, now) + e.flushTime(l, rec)
		e.Fragment(rec, t).ETA = l.backlog
		e.updateCopy(now, rec, t)
	} else if !urgent {
		return
	}
	l.paused = 0
	if urgent {
		l.urgent.push(rec) // nextFlush skips its entry in the other queue
	} else {
		l.normal.push(rec)
	}
}

// unqueue withdraws the flush of rec over a link if it is queued and has not begun. The caller updates the rest of the state.
func (e *Engine) unqueue(now int64, l *link, rec *Record) bool {
	bit := uint8(1) << l.upper
	if rec.queuedOn&bit == 0 || rec.runs&bit != 0 {
		return false
	}
	rec.queuedOn &^= bit
	l.queued--
	l.backlog = max(l.backlog-e.flushTime(l, rec), now)
	return true
}

// flushTime is the time by which one more flush delays the end of the link's queue.
func (e *Engine) flushTime(l *link, rec *Record) int64 {
	return l.down.Predict(rec.Size) / int64(e.cfg.Workers)
}

// flushWanted queues the flush of a fresh copy in the eager mode, or if a caller has asked for it.
func (e *Engine) flushWanted(now int64, rec *Record, t int) {
	if below := rec.wants >> (t + 1); below != 0 {
		e.queueFlush(now, t, rec, true)
	} else if e.cfg.Flush == Eager {
		e.queueFlush(now, t, rec, false)
	}
}

// flushMore keeps a part of the tier evictable. It queues the copies that the restore order needs last, until enough bytes are empty, evictable or
// being flushed. In the eager mode it queues every copy; most of them are queued already.
func (e *Engine) flushMore(now int64, l *link) {
	if l.dirty.count == 0 || l.refusesAll() {
		return
	}
	e.compare(now)
	for l.dirty.count > 0 && e.shouldFlush(l) {
		rec := l.dirty.next(e, func(r *Record) bool { return !l.refuses(e, r) })
		if rec == nil {
			return
		}
		if e.queueFlush(now, l.upper, rec, false); rec.queuedOn&(1<<l.upper) == 0 {
			return
		}
	}
}

// shouldFlush tells whether one more flush is to be queued that no caller has asked for.
func (e *Engine) shouldFlush(l *link) bool {
	if e.cfg.Flush == Eager {
		return true
	}
	tr := e.tiers[l.upper]
	if e.count-tr.inflow.count > headroomFor {
		return false // no captures: prefetches ask for the flushes that they need
	}
	ready, few := tr.ready(), l.queued < 2*e.cfg.Workers
	if e.foreseen() { // a few at a time: later captures may be needed later still
		return few && (e.late(l, l.dirty.next(e, func(*Record) bool { return true })) || ready < tr.Capacity/lowWater)
	}
	if e.forecast.written() {
		return false // no more captures: prefetches ask for the flushes that they need
	}
	if ready < tr.Capacity/lowWater {
		return true
	}
	return few && ready < tr.Capacity/rushWater && tr.inflow.faster(l.down.Rate()*float64(e.cfg.Workers))
}

// retryStuck retries the failed flushes of tier t and of those below; false when there are none.
func (e *Engine) retryStuck(now int64, t int) bool {
	retried := false
	for ; t >= 0 && t < len(e.links); t = e.Below(t) {
		retried = e.retryLink(now, t) || retried
	}
	return retried
}

func (e *Engine) retryLink(now int64, t int) bool {
	l := e.links[t]
	if l.stuck == 0 {
		return false
	}
	for id := e.tiers[t].table.First(); id != fragment.None; id = e.tiers[t].table.Next(id) {
		if f := e.tiers[t].table.At(id); f.Class == fragment.Held && f.Owner != nil && f.Owner.stuckOn&(1<<t) != 0 {
			rec := f.Owner
			e.unstick(rec, t)
			e.updateCopy(now, rec, t)
		}
	}
	e.roomAppeared(t)
	return true
}

// nextFlush takes the next flush over the link whose lower tier has room.
func (e *Engine) nextFlush(now int64, l *link) *Transfer {
	for l.canFlush(e) {
		q := &l.urgent
		rec := l.unbegun(q)
		if rec == nil {
			q = &l.normal
			rec = l.unbegun(q)
		}
		if rec == nil {
			return nil
		}
		switch e.roomBelow(now, l, rec) {
		case granted:
			q.pop()
			return e.startFlush(now, l, rec)
		case waits:
			l.paused = e.tiers[l.lower].version + 1
		case stuck:
			e.refuse(now, l, rec)
		}
	}
	return nil
}

// roomBelow makes room for a flush. It answers waits instead of stuck while the caller's releases or verifications may still free room.
func (e *Engine) roomBelow(now int64, l *link, rec *Record) verdict {
	v := e.room(now, l.lower, rec)
	if v == stuck && (e.expectsReleases(l.lower) || e.tiers[l.lower].verifying > 0) {
		return waits
	}
	return v
}

// expectsReleases tells whether the caller may release room in tier t by itself: an arriving copy may replace one that its catalog refers to.
func (e *Engine) expectsReleases(t int) bool {
	//mutation:flush-gives-up-on-arriving
	return e.tiers[t].Durable && (e.owed > 0 || e.catalogued(t) && e.tiers[t].arriving > 0)
}

// arrive records the end of a transfer to tier t. A flush may have waited for the version that it replaces.
func (e *Engine) arrive(t int) {
	e.tiers[t].arriving--
	if e.outlives {
		e.tiers[t].version++
	}
}

// unbegun is the first flush of a queue that has not begun, or nil. It drops entries that the other queue has overtaken or whose flush is not needed
// any more.
func (l *link) unbegun(q *fifo[*Record]) *Record {
	for rec, ok := q.peek(); ok; rec, ok = q.peek() {
		if l.unflushed(rec) {
			return rec
		}
		q.pop()
	}
	return nil
}

// unflushed tells whether the flush of rec over the link is queued and has not begun.
func (l *link) unflushed(rec *Record) bool {
	bit := uint8(1) << l.upper
	return !rec.gone && rec.queuedOn&bit != 0 && rec.runs&bit == 0
}

// isUnderPressure tells whether a flush into tier t waits for room there while a claim waits for the room that it makes above. Such a flush has priority
// over prefetches, which no operation waits for yet.
func (e *Engine) isUnderPressure(t int) bool {
	for _, l := range e.links {
		if l.lower == t && e.tiers[l.upper].claims.len() > 0 && l.unbegun(&l.urgent) != nil {
			return true
		}
	}
	return false
}

// canFlush tells whether a waiting flush of the link might begin. It cannot while its room has to come from flushes further down.
func (l *link) canFlush(e *Engine) bool {
	return l.queued > l.flushing && l.paused != e.tiers[l.lower].version+1
}
