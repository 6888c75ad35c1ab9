package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// loads brings copies up.
type loads struct {
	*state
}

// cancelLoads withdraws the loads of o that have room but have not begun, and calls f for the tier of each.
func (ls *loads) cancelLoads(o *Object, f func(t int)) {
	for k, l := range ls.links {
		if bit := uint8(1) << k; o.loadsOn&bit != 0 && o.loadRuns&bit == 0 && o.copies[k] != fragment.None {
			o.loadsOn &^= bit
			ls.loadEnded(l, o)
			for _, q := range []*fifo[*Object]{&l.demand, &l.ahead} {
				q.without(func(queued *Object) bool { return queued == o })
			}
			ls.copies.row(o, l.lower).Transfers--
			f(k)
		}
	}
}

// loadsEnough tells whether the link has as many prefetches under way as it may have.
func (ls *loads) loadsEnough(l *link) bool {
	return l.loads >= fewLoads && (l.loading >= min(loadBytes, ls.tiers[l.upper].Capacity/loadShare) || l.loads >= mostLoads)
}

// underWay tells whether loads into tier t or from it are under way, for which room was reserved. No copy that they write or read is evictable before they end.
func (ls *loads) underWay(t int) bool {
	return slices.ContainsFunc(ls.links, func(l *link) bool { return l.loads > 0 && (l.upper == t || l.lower == t) })
}

// loadEnded counts out a load. Flushes may have waited for the last one.
func (ls *loads) loadEnded(l *link, o *Object) {
	l.loads--
	l.loading -= o.Bytes(l.upper)
	if l.loads == 0 {
		ls.copies.roomAppeared(l.upper)
		ls.copies.roomAppeared(l.lower)
	}
}

// isLoadable tells whether tier t, and those that the bytes pass through, are large enough for o.
func (ls *loads) isLoadable(o *Object, t int) bool {
	for ; t < len(ls.tiers) && !ls.copies.complete(o, t); t++ {
		if ls.copies.uses(o, t) && !ls.tiers[t].fits(o) {
			return false
		}
	}
	return true
}

// loadInto loads an object into tier t, through the tiers between, because a restore waits for it.
func (ls *loads) loadInto(now int64, o *Object, t int) {
	bit := uint8(1) << t
	if o.copies[t] != fragment.None || o.loadsOn&bit != 0 {
		ls.makeLoadsUrgent(o)
		return
	}
	below := ls.links[t].lower
	if !ls.copies.complete(o, below) {
		if ls.Below(below) >= 0 {
			ls.loadInto(now, o, below)
		}
		return
	}
	o.loadsOn |= bit
	src := ls.copies.row(o, below)
	src.Transfers++
	ls.copies.updateCopy(now, o, below)
	ls.rooms.demand(now, t, &claim{obj: o, load: true,
		granted: func(now int64) { ls.beginLoad(now, o, t, true) },
		denied: func(now int64, err error) {
			o.loadsOn &^= bit
			ls.copies.row(o, below).Transfers--
			ls.copies.updateCopy(now, o, below)
			ls.objects.lookAgainFor(o, t)
			ls.restores.bypassCache(now, o, err, false)
		},
	})
}

// isPointless tells whether a load of o into tier t would only evict other objects of a chain: none of the restores that wait for it can have all of
// its objects there before a lease ends.
func (ls *loads) isPointless(o *Object, t int) bool {
	if o.more == nil {
		return false // the one checkpoint that needs it is whole
	}
	waits := false
	for _, rec := range o.Refs() {
		if len(ls.restores.waiting[rec]) == 0 {
			continue
		}
		if waits = true; rec.isWhole() || t != rec.Top() || !ls.restores.isCrowded(rec, t) {
			return false
		}
	}
	return waits
}

// withdrawPromises withdraws the promises of rec's objects that are not expected, and loads of them that have not begun.
func (ls *loads) withdrawPromises(now int64, rec *Record) {
	for _, o := range rec.Objects() {
		ls.withdrawPromisesOf(now, o)
	}
}

// withdrawPromisesOf does nothing while a restore reads o in any tier. If that restore is the last, no copy is worth a flush.
func (ls *loads) withdrawPromisesOf(now int64, o *Object) {
	if o.gone || ls.copies.isPinned(o) {
		return
	}
	if o.loadsOn != 0 && o.next() == fragment.Unexpected && !ls.objects.awaited(o) {
		ls.unload(now, o)
	}
	for t, id := range o.copies[:len(ls.tiers)] {
		if id != fragment.None && !ls.objects.expectedSoon(o, t) {
			ls.rooms.release(now, o, t)
		}
	}
	if o.hasNeed() && !o.more.needs.parts { // its source may have been promised for it alone
		ls.withdrawPromisesOf(now, o.more.needs.of[0])
	}
}

// unload withdraws the loads of o that have not begun: no restore is expected, and loads that restores wait for find the link free.
func (ls *loads) unload(now int64, o *Object) {
	ls.cancelLoads(o, func(t int) {
		ls.copies.step(o, t, lifecycle.Abort)
		ls.copies.free(o, t)
		ls.copies.updateCopy(now, o, ls.links[t].lower)
	})
}

// beginLoad reserves the copy in tier t and queues the transfer that fills it.
func (ls *loads) beginLoad(now int64, o *Object, t int, urgent bool) {
	ls.copies.place(o, t, o.copies[t], lifecycle.BeginRead)
	l := ls.links[t]
	l.loads++
	l.loading += o.Bytes(t)
	if urgent {
		l.demand.push(o)
	} else {
		l.ahead.push(o)
	}
}

// makeLoadsUrgent moves the queued loads of o before those that no restore waits for.
func (ls *loads) makeLoadsUrgent(o *Object) {
	for k, l := range ls.links {
		if bit := uint8(1) << k; o.loadsOn&bit != 0 && o.loadRuns&bit == 0 && o.copies[k] != fragment.None {
			l.demand.push(o) // nextLoad skips the entry in the other queue
		}
	}
}

// Loading tells whether a load of rec into tier t is under way, even if restores have its bytes already.
func (ls *loads) Loading(rec *Record, t int) bool {
	return slices.ContainsFunc(rec.Objects(), func(o *Object) bool { return o.loadRuns&(1<<t) != 0 })
}

// withdrawLoads withdraws the claims to room for loads that only waiting restores of rec needed, and the promises that ended with them.
func (ls *loads) withdrawLoads(now int64, rec *Record) {
	for _, o := range rec.Objects() {
		if !ls.objects.awaited(o) {
			ls.rooms.withdrawClaims(now, o, true)
		}
	}
	ls.withdrawPromises(now, rec)
}

func (ls *loads) nextUp(over int) *Transfer {
	if x := ls.nextDemanded(over); x != nil {
		return x
	}
	return ls.nextLoadOf((*link).wanted, over)
}

func (ls *loads) nextDemanded(over int) *Transfer {
	x := ls.nextLoadOf((*link).demanded, over)
	if x != nil {
		x.Urgent = true
	}
	return x
}

// nextLoadOf starts the first load in a queue of a link, or of any; nil when there is none.
func (ls *loads) nextLoadOf(queue func(*link) *fifo[*Object], over int) *Transfer {
	for k, l := range ls.links {
		if over != AnyLink && over != k {
			continue
		}
		if o := l.nextLoad(queue(l)); o != nil {
			return ls.startLoad(l, o)
		}
	}
	return nil
}

func (ls *loads) startLoad(l *link, o *Object) *Transfer {
	o.loadRuns |= 1 << l.upper
	f := ls.copies.row(o, l.upper)
	f.Transfers++
	x := &Transfer{Kind: Load, Rec: o.Rec(), Obj: o, From: l.lower, To: l.upper, FromOff: ls.copies.row(o, l.lower).Offset, ToOff: f.Offset}
	return x.between(l.upper, l.lower)
}

func (ls *loads) loaded(now int64, x *Transfer, err error) {
	o, l := x.Obj, ls.links[x.To]
	bit := uint8(1) << x.To
	o.loadsOn &^= bit
	o.loadRuns &^= bit
	ls.loadEnded(l, o)
	ls.copies.row(o, x.From).Transfers--
	ls.copies.row(o, x.To).Transfers--
	if err != nil {
		ls.notLoaded(now, x, err)
		return
	}
	ls.forms.settleTransfer(x)
	l.observe(now, x)
	ls.Stats.Tiers[x.From].Read += o.Bytes(x.From)
	ls.traceMove(now, Loaded, o, x.To, now-x.began)
	if !x.Early {
		ls.arrived(now, x)
	}
	ls.copies.updateCopy(now, o, x.To)
	ls.copies.updateCopy(now, o, x.From)
	ls.objects.resumeAll(now, o)
}

// arrived makes the bytes of a load readable for restores.
func (ls *loads) arrived(now int64, x *Transfer) {
	ls.copies.step(x.Obj, x.To, lifecycle.ReadDone)
	ls.copies.row(x.Obj, x.To).Verified = true
	if !x.Obj.gone && !ls.objects.expectedSoon(x.Obj, x.To) {
		ls.rooms.release(now, x.Obj, x.To)
	}
	ls.copies.updateCopy(now, x.Obj, x.To)
}

// notLoaded gives back the room of a failed load, at once or when the readers of its early bytes have gone. Only a restore tries again.
func (ls *loads) notLoaded(now int64, x *Transfer, err error) {
	o := x.Obj
	seen := make([]int64, 0, 4)
	for _, r := range o.Refs() {
		seen = append(seen, r.Hist.promised[x.To])
	}
	switch {
	case x.Early:
		o.spoiled |= 1 << x.To
		ls.copies.updateCopy(now, o, x.To)
		ls.objects.resumeAll(now, o)
	default:
		ls.copies.step(o, x.To, lifecycle.Abort)
		if !o.gone && ls.copies.fastest(o) == x.From { // otherwise the waiting restores do not depend on this load
			for _, r := range o.Refs() {
				if r.Captured() {
					ls.restores.failWaiting(now, r, &TierError{Tier: x.From, Err: err})
				}
			}
		}
		ls.copies.free(o, x.To)
	}
	for i, r := range o.Refs() {
		r.Hist.promised[x.To] = seen[i]
	}
	ls.copies.updateCopy(now, o, x.From)
}
