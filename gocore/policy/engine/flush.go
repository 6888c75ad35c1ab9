package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
)

// queueFlush queues the flush of o's copy in tier t. A second, more urgent request moves it forward.
func (e *Engine) queueFlush(now int64, t int, o *Object, urgent bool) {
	if t >= len(e.links) || o.gone {
		return
	}
	l, bit := e.links[t], uint8(1)<<t
	if o.runs&bit != 0 {
		return
	}
	if o.queuedOn&bit == 0 {
		if l.refuses(e, o) || !e.complete(o, t) || e.lower(o, t) >= 0 || !e.tiers[l.lower].fits(o) {
			return
		}
		e.unstick(o, t)
		o.queuedOn |= bit
		l.queued++
		l.backlog = max(l.backlog, now) + e.flushTime(l, o)
		e.row(o, t).ETA = l.backlog
		e.updateCopy(now, o, t)
	} else if !urgent {
		return
	}
	l.paused = 0
	if urgent {
		l.urgent.push(o) // nextFlush skips its entry in the other queue
	} else {
		l.normal.push(o)
	}
}

// unqueue withdraws the flush of o over a link if it is queued and has not begun. The caller updates the rest of the state.
func (e *Engine) unqueue(now int64, l *link, o *Object) bool {
	bit := uint8(1) << l.upper
	if o.queuedOn&bit == 0 || o.runs&bit != 0 {
		return false
	}
	o.queuedOn &^= bit
	l.queued--
	l.backlog = max(l.backlog-e.flushTime(l, o), now)
	return true
}

// flushTime is the time by which one more flush delays the end of the link's queue.
func (e *Engine) flushTime(l *link, o *Object) int64 {
	return l.flushTime(o) / int64(e.cfg.Workers)
}

// flushWanted queues the flush of a fresh copy in the eager mode, or if a caller has asked for it.
func (e *Engine) flushWanted(now int64, o *Object, t int) {
	if below := o.wants >> (t + 1); below != 0 {
		e.queueFlush(now, t, o, true)
	} else if e.cfg.Flush == Eager {
		e.queueFlush(now, t, o, false)
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
		o := l.dirty.next(e, func(o *Object) bool { return !l.refuses(e, o) })
		if o == nil {
			return
		}
		if e.queueFlush(now, l.upper, o, false); o.queuedOn&(1<<l.upper) == 0 {
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
		return few && (e.late(l, l.dirty.next(e, func(*Object) bool { return true })) || ready < tr.Capacity/lowWater)
	}
	if e.forecast.written() {
		return false // no more captures: prefetches ask for the flushes that they need
	}
	if ready < tr.Capacity/lowWater {
		return true
	}
	return few && ready < tr.Capacity/rushWater && tr.inflow.faster(l.drain(e))
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
			o := f.Owner
			e.unstick(o, t)
			e.updateCopy(now, o, t)
		}
	}
	e.roomAppeared(t)
	return true
}

// nextFlush takes the next flush over the link whose lower tier has room.
func (e *Engine) nextFlush(now int64, l *link) *Transfer {
	for l.canFlush(e) {
		q := &l.urgent
		o := l.unbegun(q)
		if o == nil {
			q = &l.normal
			o = l.unbegun(q)
		}
		if o == nil {
			return nil
		}
		switch e.roomBelow(now, l, o) {
		case granted:
			q.pop()
			return e.startFlush(now, l, o)
		case waits:
			l.paused = e.tiers[l.lower].version + 1
		case stuck:
			e.refuse(now, l, o)
		}
	}
	return nil
}

// roomBelow makes room for a flush. It answers waits instead of stuck while the caller's releases, or verifications or loads, may still free room.
func (e *Engine) roomBelow(now int64, l *link, o *Object) verdict {
	e.predict(o, l.lower)
	v := e.room(now, l.lower, o)
	if v == stuck && (e.expectsReleases(l.lower) || e.tiers[l.lower].verifying > 0 || e.loads(l.lower)) {
		return waits
	}
	return v
}

// loads tells whether loads into tier t or from it are under way, for which room was reserved. No copy that they write or read is evictable before they end.
func (e *Engine) loads(t int) bool {
	return slices.ContainsFunc(e.links, func(l *link) bool { return l.loads > 0 && (l.upper == t || l.lower == t) })
}

// loadEnded counts out a load. Flushes may have waited for the last one.
func (e *Engine) loadEnded(l *link, o *Object) {
	l.loads--
	l.loading -= o.Bytes(l.upper)
	if l.loads == 0 {
		e.roomAppeared(l.upper)
		e.roomAppeared(l.lower)
	}
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
func (l *link) unbegun(q *fifo[*Object]) *Object {
	for o, ok := q.peek(); ok; o, ok = q.peek() {
		if l.unflushed(o) {
			return o
		}
		q.pop()
	}
	return nil
}

// unflushed tells whether the flush of o over the link is queued and has not begun.
func (l *link) unflushed(o *Object) bool {
	bit := uint8(1) << l.upper
	return !o.gone && o.queuedOn&bit != 0 && o.runs&bit == 0
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
