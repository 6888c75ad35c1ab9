package engine

import (
	"errors"

	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// flushes brings copies down.
type flushes struct {
	*state
}

// queueFlush queues the flush of o's copy in tier t. A second, more urgent request moves it forward.
func (fs *flushes) queueFlush(now int64, t int, o *Object, urgent bool) {
	if t >= len(fs.links) || o.gone {
		return
	}
	l, bit := fs.links[t], uint8(1)<<t
	if o.runs&bit != 0 {
		return
	}
	if o.queuedOn&bit == 0 {
		if l.refuses(fs.state, o) || !fs.copies.complete(o, t) || fs.copies.lower(o, t) >= 0 || !fs.tiers[l.lower].fits(o) {
			return
		}
		fs.unstick(o, t)
		o.queuedOn |= bit
		l.queued++
		l.backlog = max(l.backlog, now) + fs.flushTime(l, o)
		fs.copies.row(o, t).ETA = l.backlog
		fs.copies.updateCopy(now, o, t)
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
func (fs *flushes) unqueue(now int64, l *link, o *Object) bool {
	bit := uint8(1) << l.upper
	if o.queuedOn&bit == 0 || o.runs&bit != 0 {
		return false
	}
	o.queuedOn &^= bit
	l.queued--
	l.backlog = max(l.backlog-fs.flushTime(l, o), now)
	return true
}

// flushTime is the time by which one more flush delays the end of the link's queue.
func (fs *flushes) flushTime(l *link, o *Object) int64 {
	return l.flushTime(o) / int64(fs.cfg.Workers)
}

// flushWanted queues the flush of a fresh copy in the eager mode, or if a caller has asked for it.
func (fs *flushes) flushWanted(now int64, o *Object, t int) {
	if below := o.wants >> (t + 1); below != 0 {
		fs.queueFlush(now, t, o, true)
	} else if fs.cfg.Flush == Eager {
		fs.queueFlush(now, t, o, false)
	}
}

// flushMore keeps a part of the tier evictable. It queues the copies that the restore order needs last, until enough bytes are empty, evictable or
// being flushed. In the eager mode it queues every copy; most of them are queued already.
func (fs *flushes) flushMore(now int64, l *link) {
	if l.dirty.count == 0 || l.refusesAll() {
		return
	}
	fs.orders.compare(now)
	for l.dirty.count > 0 && fs.shouldFlush(l) {
		o := l.dirty.next(fs.state, func(o *Object) bool { return !l.refuses(fs.state, o) })
		if o == nil {
			return
		}
		if fs.queueFlush(now, l.upper, o, false); o.queuedOn&(1<<l.upper) == 0 {
			return
		}
	}
}

// shouldFlush tells whether one more flush is to be queued that no caller has asked for.
func (fs *flushes) shouldFlush(l *link) bool {
	if fs.cfg.Flush == Eager {
		return true
	}
	tr := fs.tiers[l.upper]
	if fs.count-tr.inflow.count > headroomFor {
		return false // no captures: prefetches ask for the flushes that they need
	}
	ready, few := tr.ready(), l.queued < 2*fs.cfg.Workers
	if fs.forecasts.foreseen() { // a few at a time: later captures may be needed later still
		return few && (fs.forecasts.late(l, l.dirty.next(fs.state, func(*Object) bool { return true })) || ready < tr.Capacity/lowWater)
	}
	if fs.forecasts.forecast.written() {
		return false // no more captures: prefetches ask for the flushes that they need
	}
	if ready < tr.Capacity/lowWater {
		return true
	}
	return few && ready < tr.Capacity/rushWater && tr.inflow.faster(l.drain(fs.state))
}

// retryStuck retries the failed flushes of tier t and of those below; false when there are none.
func (fs *flushes) retryStuck(now int64, t int) bool {
	retried := false
	for ; t >= 0 && t < len(fs.links); t = fs.Below(t) {
		retried = fs.retryLink(now, t) || retried
	}
	return retried
}

func (fs *flushes) retryLink(now int64, t int) bool {
	l := fs.links[t]
	if l.stuck == 0 {
		return false
	}
	for id := fs.tiers[t].table.First(); id != fragment.None; id = fs.tiers[t].table.Next(id) {
		if f := fs.tiers[t].table.At(id); f.Class == fragment.Held && f.Owner != nil && f.Owner.stuckOn&(1<<t) != 0 {
			o := f.Owner
			fs.unstick(o, t)
			fs.copies.updateCopy(now, o, t)
		}
	}
	fs.copies.roomAppeared(t)
	return true
}

// nextFlush takes the next flush over the link whose lower tier has room.
func (fs *flushes) nextFlush(now int64, l *link) *Transfer {
	for l.canFlush(fs.state) {
		q := &l.urgent
		o := l.unbegun(q)
		if o == nil {
			q = &l.normal
			o = l.unbegun(q)
		}
		if o == nil {
			return nil
		}
		switch fs.roomBelow(now, l, o) {
		case granted:
			q.pop()
			return fs.startFlush(now, l, o)
		case waits:
			l.paused = fs.tiers[l.lower].version + 1
		case stuck:
			fs.refuse(now, l, o)
		}
	}
	return nil
}

// roomBelow makes room for a flush. It answers waits instead of stuck while work that ends by itself may still free room.
func (fs *flushes) roomBelow(now int64, l *link, o *Object) verdict {
	fs.forms.predict(o, l.lower)
	v := fs.rooms.room(now, l.lower, o)
	if v == stuck && (fs.changesByItself(l.lower) || fs.loads.underWay(l.lower)) {
		return waits
	}
	return v
}

// changesByItself tells whether work is under way in tier t whose end may free room there. A copy that arrives may become evictable or smaller, or replace one
// that the catalog refers to. A copy that is read may become evictable.
func (s *state) changesByItself(t int) bool {
	tr := s.tiers[t]
	//mutation:flush-gives-up-on-arriving
	return tr.arriving > 0 || tr.copying > 0 || tr.verifying > 0 || tr.Durable && s.budgets.owed > 0
}

// arrive records the end of a capture or transfer to tier t. A flush may have waited for the room that this frees.
func (s *state) arrive(t int) {
	s.tiers[t].arriving--
	s.tiers[t].version++
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
func (fs *flushes) isUnderPressure(t int) bool {
	for _, l := range fs.links {
		if l.lower == t && fs.tiers[l.upper].claims.len() > 0 && l.unbegun(&l.urgent) != nil {
			return true
		}
	}
	return false
}

// canFlush tells whether a waiting flush of the link might begin. It cannot while its room has to come from flushes further down.
func (l *link) canFlush(s *state) bool {
	return l.queued > l.flushing && l.paused != s.tiers[l.lower].version+1
}

func (fs *flushes) unstick(o *Object, k int) {
	if bit := uint8(1) << k; o.stuckOn&bit != 0 {
		o.stuckOn &^= bit
		fs.links[k].stuck--
	}
}

// flushUsers flushes copies in tier t that need others there, so that these may be evicted then. It tells whether such a flush is under way.
func (fs *flushes) flushUsers(now int64, t int) (some bool) {
	tr := fs.tiers[t]
	if tr.needs == 0 || t >= len(fs.links) {
		return false
	}
	bit := uint8(1) << t
	for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
		o := tr.table.At(id).Owner
		if o == nil || len(o.Sources(t)) == 0 || o.stuckOn&bit != 0 {
			continue
		}
		fs.queueFlush(now, t, o, true)
		some = some || o.queuedOn&bit != 0
	}
	return some
}

// Redo takes the place of Done for a flush whose bytes cannot be found where they were written, although writing them elsewhere may help. The flush
// is repeated.
func (fs *flushes) Redo(now int64, x *Transfer) {
	fs.transfers.ended(x)
	o := x.Obj
	fs.endFlush(x)
	fs.copies.step(o, x.To, lifecycle.Abort)
	fs.copies.vacate(o, x.To)
	fs.copies.updateCopy(now, o, x.From)
	fs.queueFlush(now, x.From, o, true)
	fs.objects.wakeAll(now, o)
	fs.makeProgress(now)
}

// Flushes tells whether a flush of o's copy in tier t is under way.
func (fs *flushes) Flushes(o *Object, t int) bool { return o.runs&(1<<t) != 0 }

// CanFlushFirst tells whether FlushFirst helps: what the object of a flush needs can go to the tier first. Each object asks for that once.
func (fs *flushes) CanFlushFirst(of *Object, x *Transfer) bool {
	l := fs.links[x.From]
	return !of.gone && !x.Obj.asked() && !l.refuses(fs.state, of) && fs.copies.complete(of, x.From) && fs.copies.lower(of, x.From) < 0
}

// FlushFirst takes the place of Done for a flush that is better carried out behind that of what its object needs. It is repeated behind that.
func (fs *flushes) FlushFirst(now int64, x *Transfer) {
	o := x.Obj
	if of := o.Source(x.From); of != nil {
		o.more.needs.asked = true
		fs.queueFlush(now, x.From, of, true)
	}
	fs.Redo(now, x)
}

// passable is an upper bound of the dirty bytes of a tier that could be flushed.
func (fs *flushes) passable(tr *tier) int64 {
	dirty := tr.bytes[fragment.Dirty]
	if l := fs.links[tr.index]; len(l.refused) > 0 {
		return min(dirty, l.passable)
	}
	return dirty
}

func (fs *flushes) nextDown(now int64, over int) *Transfer {
	// An attempt may queue flushes further down that it has to wait for; the next round takes these.
	for range fs.links {
		for k := len(fs.links) - 1; k >= 0; k-- {
			if over != AnyLink && over != k {
				continue
			}
			if x := fs.nextFlush(now, fs.links[k]); x != nil {
				return x
			}
		}
	}
	return nil
}

func (fs *flushes) startFlush(now int64, l *link, o *Object) *Transfer {
	o.runs |= 1 << l.upper
	l.flushing++
	fs.tiers[l.lower].arriving++
	fs.copies.place(o, l.lower, o.copies[l.lower], lifecycle.BeginWrite)
	from, to := fs.copies.row(o, l.upper), fs.copies.row(o, l.lower)
	from.Transfers++
	to.Transfers++
	fs.copies.updateCopy(now, o, l.upper)
	x := &Transfer{Kind: Flush, Rec: o.Rec(), Obj: o, From: l.upper, To: l.lower, FromOff: from.Offset, ToOff: to.Offset}
	return x.between(l.upper, l.lower)
}

func (fs *flushes) flushed(now int64, x *Transfer, err error) {
	o, l, from := x.Obj, fs.links[x.From], x.To
	fs.endFlush(x)
	if err != nil {
		from = x.From
		fs.notFlushed(x, err)
	} else {
		fs.forms.settleTransfer(x)
		l.observe(now, x)
		fs.Stats.Tiers[x.To].Written += o.Bytes(x.To)
		fs.tiers[x.To].inflow.arrived(now, fs.count, o.Bytes(x.To))
		o.fail(nil)
		fs.copies.step(o, x.To, lifecycle.WriteDone)
		if x.loosens && !o.gone {
			fs.dependencies.loosen(o, x.From)
		}
		if fs.copies.row(o, x.From).State == lifecycle.WriteComplete {
			fs.copies.step(o, x.From, lifecycle.FlushDone)
		}
		fs.traceMove(now, Flushed, o, x.To, now-x.began)
	}
	fs.copies.updateCopy(now, o, x.From)
	fs.copies.updateCopy(now, o, x.To)
	if !o.gone && o.stuckOn&(1<<x.From) == 0 {
		fs.flushWanted(now, o, from)
	}
	fs.objects.wakeAll(now, o)
}

// notFlushed gives back the room of a flush that failed, or that its caller stopped because the checkpoint which it was for is gone. If another checkpoint
// needs the object, a stopped flush is tried again.
func (fs *flushes) notFlushed(x *Transfer, err error) {
	o, l := x.Obj, fs.links[x.From]
	fs.copies.step(o, x.To, lifecycle.Abort)
	fs.copies.vacate(o, x.To)
	if o.home.gone && errors.Is(err, ErrStopped) {
		fs.Stats.CancelledFlush += o.Bytes(x.From)
		return
	}
	l.err = err
	o.fail(err)
	if !o.gone {
		o.stuckOn |= 1 << x.From
		l.stuck++
	}
}

// endFlush removes a flush from the counts, whether it succeeded or not.
func (fs *flushes) endFlush(x *Transfer) {
	o, l := x.Obj, fs.links[x.From]
	bit := uint8(1) << x.From
	o.runs &^= bit
	o.queuedOn &^= bit
	l.queued--
	l.flushing--
	fs.arrive(x.To)
	fs.copies.row(o, x.From).Transfers--
	fs.copies.row(o, x.To).Transfers--
}
