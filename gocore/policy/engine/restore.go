package engine

import (
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// Restore is one checkpoint being given back. When it is Ready, the bytes are at the record's copy in Tier and stay there until EndRestore. With
// Direct, a transfer has brought them past the cache into the caller's memory.
type Restore struct {
	Rec     *Record
	Tier    int
	Phase   Phase
	Direct  bool
	Last    bool
	Hit     bool // the fastest tier had the bytes when the restore was asked for
	Err     error
	Notify  any
	options RestoreOptions
	held    []held  // the copies that it pins
	one     [1]held // the memory of held for a checkpoint of one object
	fetches int     // under way
	quiet   bool
	copies  bool // counted in e.copying
	over    bool
}

// held is a copy that a restore pins.
type held struct {
	o  *Object
	t  int
	id fragment.ID // its place, which o may have left since
}

// Place is where a Ready restore finds the bytes of one of its objects, in the order of Record.Objects: the tier, and the offset. They stay there until
// EndRestore, also if the object gets another place meanwhile.
func (e *Engine) Place(r *Restore, i int) (t int, off int64) {
	o := r.Rec.Objects()[i]
	h := r.held[slices.IndexFunc(r.held, func(h held) bool { return h.o == o })]
	return h.t, e.tiers[h.t].table.At(h.id).Offset
}

// Exclusive tells whether nobody but a Ready restore and flushes reads its bytes, and no other checkpoint needs them: its caller may write to them.
func (e *Engine) Exclusive(r *Restore) bool {
	return !slices.ContainsFunc(r.held, func(h held) bool {
		return e.tiers[h.t].table.At(h.id).Pins > 1 || h.o.readings > 0 || slices.ContainsFunc(h.o.Refs(), func(of *Record) bool { return of != r.Rec })
	})
}

// RestoreOptions are the caller's options.
type RestoreOptions struct {
	Last bool // the last restore: it consumes the checkpoint
	Peek bool // leaves plan, counters and events alone: the caller wants the description of a checkpoint
	// Partial asks for some regions only. Bytes that are not in the fastest tier come directly from below, without cache room.
	Partial bool
	// Into says that the caller copies out and ends the restore by itself. Otherwise it is a lease, which the application ends.
	Into    bool
	Patient bool // wait for room even if only the application can make some
	Past    bool // the record's fastest tier cannot be read any more: read below it, past the cache
}

// BeginRestore asks for the checkpoint of a key.
func (e *Engine) BeginRestore(now int64, h *History, k model.Key, o RestoreOptions) (*Restore, error) {
	rec := h.Get(k)
	if rec == nil || rec.hidden {
		return nil, ErrNotFound
	}
	r := &Restore{Rec: rec, options: o, Last: o.Last, quiet: true}
	r.Hit = e.Complete(rec, rec.Top())
	e.touch(rec)
	e.forecast.surprise = e.count
	if !o.Peek {
		e.noteLease(h, r)
		r.Last = e.advance(now, h, rec, r.Hit) || o.Last
	}
	return e.begin(now, r)
}

// begin locates a new restore, whose caller learns its phase from the result and not by a notice.
func (e *Engine) begin(now int64, r *Restore) (*Restore, error) {
	e.locate(now, r)
	if r.Phase != Ended {
		e.makeProgress(now)
	}
	r.quiet = false
	return r, r.Err
}

// locate brings the restore as far as it can go now: to Ready, or to waiting for a transfer.
func (e *Engine) locate(now int64, r *Restore) {
	rec := r.Rec
	top := rec.Top()
	switch {
	case rec.gone:
		e.endWaiting(now, r, ErrDropped)
	case !rec.Captured():
		e.await(r)
	case e.tiers[top].Remote || r.options.Past:
		e.fetch(now, r)
	case e.hasAll(r, top):
		e.pin(now, r, top)
	case e.bypasses(r, top):
		e.fetch(now, r)
	default:
		e.await(r)
		e.gather(now, r, top)
	}
}

// bypasses tells whether a restore reads past the cache: objects that are missing in tier t cannot be loaded, or the caller does not want them loaded.
func (e *Engine) bypasses(r *Restore, t int) bool {
	for _, o := range r.Rec.Objects() {
		switch {
		case e.has(r, o, t):
		case o.spoiled&(1<<t) != 0: // its room is not free yet
			return true
		case o.copies[t] == fragment.None && (r.options.Partial || r.Direct || !e.isLoadable(o, t)):
			return true
		}
	}
	return !e.fitsWhole(r.Rec, t)
}

// fitsWhole tells whether the empty tier could hold all objects of rec at once.
func (e *Engine) fitsWhole(rec *Record, t int) bool {
	if rec.isWhole() {
		return true // what is too large is not loadable
	}
	bytes := int64(0)
	for _, o := range rec.Objects() {
		bytes += e.tiers[t].extent(o)
	}
	return bytes <= e.tiers[t].Capacity
}

// gather pins the objects of a checkpoint that tier t has, so that loading the others does not evict them. It loads these in the order in which the restore
// needs them.
func (e *Engine) gather(now int64, r *Restore, t int) {
	for _, o := range r.Rec.Objects() {
		switch {
		case r.Phase != Waiting || r.Direct:
			return // one of the others has found no room
		case e.has(r, o, t):
			e.hold(now, r, o, t)
		case o.copies[t] != fragment.None:
			e.makeLoadsUrgent(o)
		default:
			e.loadInto(now, o, t)
		}
	}
}

// has tells whether a restore finds o's bytes in tier t: in o's copy, or where the restore has pinned them, which o may have left since.
func (e *Engine) has(r *Restore, o *Object, t int) bool {
	return e.complete(o, t) || o.spoiled&(1<<t) == 0 && r.holds(o, t)
}

// hasAll tells whether a restore finds all of its bytes in tier t.
func (e *Engine) hasAll(r *Restore, t int) bool {
	for _, o := range r.Rec.Objects() {
		if !e.has(r, o, t) {
			return false
		}
	}
	return true
}

func (r *Restore) holds(o *Object, t int) bool {
	return slices.ContainsFunc(r.held, func(h held) bool { return h.o == o && h.t == t })
}

// hold pins o's copy in tier t for a restore.
func (e *Engine) hold(now int64, r *Restore, o *Object, t int) {
	if len(r.held) == 0 {
		r.held = r.one[:0]
	} else if r.holds(o, t) {
		return
	}
	r.held = append(r.held, held{o, t, o.copies[t]})
	e.pinCopy(t, o.copies[t], +1)
	e.updateCopy(now, o, t)
}

// letGo ends what a restore pins.
func (e *Engine) letGo(now int64, r *Restore) {
	all := r.held
	r.held = r.held[:0]
	for _, h := range all {
		at := e.tiers[h.t].table.At(h.id).Owner
		e.pinCopy(h.t, h.id, -1)
		e.withdrawPromisesOf(now, h.o)
		e.updateCopy(now, at, h.t)
	}
}

func (e *Engine) pin(now int64, r *Restore, t int) {
	r.Tier, r.Phase = t, Ready
	if r.options.Into {
		r.copies = true
		e.copying++
	}
	for _, o := range r.Rec.Objects() {
		if r.copies {
			o.copying++
		}
		e.hold(now, r, o, t)
	}
	if !r.Rec.isWhole() { // an object that left the place which the restore has pinned may have been loaded again for it
		e.withdrawLoads(now, r.Rec)
	}
	if !r.quiet {
		e.wake(r.Notify)
	}
}

// fetch reads past the cache. It takes each object from the fastest tier that has its bytes.
func (e *Engine) fetch(now int64, r *Restore) {
	above := -1
	if r.options.Past {
		above = r.Rec.Top()
	}
	if !e.below(r.Rec, above) {
		e.endWaiting(now, r, ErrUnreachable)
		return
	}
	e.letGo(now, r)
	r.Direct, r.copies = true, true
	e.copying++
	for _, o := range r.Rec.Objects() {
		t := e.lower(o, above)
		if o.loadRuns&(1<<t) != 0 { // its bytes may turn out to be wrong; those that the load reads are below
			t = e.lower(o, t)
		}
		e.hold(now, r, o, t)
		r.Tier = max(r.Tier, t)
		r.fetches++
		x := &Transfer{Kind: Fetch, Rec: r.Rec, Obj: o, From: t, To: caller, FromOff: e.row(o, t).Offset, Restore: r}
		x.between(caller, t)
		x.Fetched = x.Reads()
		e.pass(Up, x)
	}
	if !r.Rec.isWhole() { // it may have waited for several loads, of which one was denied or failed
		e.withdrawLoads(now, r.Rec)
	}
}

// isLoadable tells whether tier t, and those that the bytes pass through, are large enough for o.
func (e *Engine) isLoadable(o *Object, t int) bool {
	for ; t < len(e.tiers) && !e.complete(o, t); t++ {
		if e.uses(o, t) && !e.tiers[t].fits(o) {
			return false
		}
	}
	return true
}

// loadInto loads an object into tier t, through the tiers between, because a restore waits for it.
func (e *Engine) loadInto(now int64, o *Object, t int) {
	bit := uint8(1) << t
	if o.copies[t] != fragment.None || o.loadsOn&bit != 0 {
		e.makeLoadsUrgent(o)
		return
	}
	below := e.links[t].lower
	if !e.complete(o, below) {
		if e.Below(below) >= 0 {
			e.loadInto(now, o, below)
		}
		return
	}
	o.loadsOn |= bit
	src := e.row(o, below)
	src.Transfers++
	e.updateCopy(now, o, below)
	e.demand(now, t, &claim{obj: o, load: true,
		granted: func(now int64) { e.beginLoad(now, o, t, true) },
		denied: func(now int64, err error) {
			o.loadsOn &^= bit
			e.row(o, below).Transfers--
			e.updateCopy(now, o, below)
			e.lookAgainFor(o, t)
			e.bypassCache(now, o, err, false)
		},
	})
}

// bypassCache ends the wait of restores which need an object that finds no room in the fastest tier. Restores that copy out read from below instead, and
// leases too, unless leases fill the tier. With patience, leases of patient callers go on waiting; bypassCache tells whether there are any.
func (e *Engine) bypassCache(now int64, o *Object, err error, patience bool) (waiting bool) {
	for _, rec := range o.Refs() {
		if !rec.Captured() {
			continue // it waits for another object
		}
		top := rec.Top()
		waits := e.takeWaiting(rec)
		for _, r := range waits {
			e.letGo(now, r)
		}
		crowded := e.tiers[top].fits(o) && e.isCrowded(rec, top)
		for _, r := range waits {
			switch {
			case !rec.gone && (r.options.Into || !crowded):
				e.fetch(now, r)
			case r.options.Patient && patience:
				e.await(r)
				waiting = true
			default:
				e.endWaiting(now, r, err)
			}
		}
		if rec.isWhole() {
			e.withdrawPromises(now, rec)
		} else { // the others of its objects may have claims, too
			e.withdrawLoads(now, rec)
		}
	}
	return waiting
}

// isCrowded tells whether leases leave tier t too little room for the objects of rec that nobody reads there.
func (e *Engine) isCrowded(rec *Record, t int) bool {
	tr := e.tiers[t]
	bytes := e.pinnedBytes(t)
	for _, o := range rec.Objects() {
		if o.copies[t] == fragment.None || e.row(o, t).Pins == 0 {
			bytes += tr.extent(o)
		}
	}
	return bytes > tr.Capacity
}

// isPointless tells whether a load of o into tier t would only evict other objects of a chain: none of the restores that wait for it can have all of
// its objects there before a lease ends.
func (e *Engine) isPointless(o *Object, t int) bool {
	if o.more == nil {
		return false // the one checkpoint that needs it is whole
	}
	waits := false
	for _, rec := range o.Refs() {
		if len(e.waiting[rec]) == 0 {
			continue
		}
		if waits = true; rec.isWhole() || t != rec.Top() || !e.isCrowded(rec, t) {
			return false
		}
	}
	return waits
}

// withdrawPromises withdraws the promises of rec's objects that are not expected, and loads of them that have not begun.
func (e *Engine) withdrawPromises(now int64, rec *Record) {
	for _, o := range rec.Objects() {
		e.withdrawPromisesOf(now, o)
	}
}

// withdrawPromisesOf does nothing while a restore reads o in any tier. If that restore is the last, no copy is worth a flush.
func (e *Engine) withdrawPromisesOf(now int64, o *Object) {
	if o.gone || e.read(o) {
		return
	}
	if o.loadsOn != 0 && o.next() == fragment.Unexpected && !e.awaited(o) {
		e.unload(now, o)
	}
	for t, id := range o.copies[:len(e.tiers)] {
		if id != fragment.None && !e.expectedSoon(o, t) {
			e.release(now, o, t)
		}
	}
	if o.hasNeed() { // its source may have been promised for it alone
		e.withdrawPromisesOf(now, o.more.needs.of)
	}
}

// unload withdraws the loads of o that have not begun: no restore is expected, and loads that restores wait for find the link free.
func (e *Engine) unload(now int64, o *Object) {
	e.cancelLoads(o, func(t int) {
		e.step(o, t, lifecycle.Abort)
		e.free(o, t)
		e.updateCopy(now, o, e.links[t].lower)
	})
}

// read tells whether a restore reads o in any tier.
func (e *Engine) read(o *Object) bool {
	for t, id := range o.copies[:len(e.tiers)] {
		if id != fragment.None && e.tiers[t].table.At(id).Pins > 0 {
			return true
		}
	}
	return false
}

// beginLoad reserves the copy in tier t and queues the transfer that fills it.
func (e *Engine) beginLoad(now int64, o *Object, t int, urgent bool) {
	e.place(o, t, o.copies[t], lifecycle.BeginRead)
	l := e.links[t]
	l.loads++
	l.loading += o.Bytes(t)
	if urgent {
		l.demand.push(o)
	} else {
		l.ahead.push(o)
	}
}

// makeLoadsUrgent moves the queued loads of o before those that no restore waits for.
func (e *Engine) makeLoadsUrgent(o *Object) {
	for k, l := range e.links {
		if bit := uint8(1) << k; o.loadsOn&bit != 0 && o.loadRuns&bit == 0 && o.copies[k] != fragment.None {
			l.demand.push(o) // nextLoad skips the entry in the other queue
		}
	}
}

// Loading tells whether a load of rec into tier t is under way, even if restores have its bytes already.
func (e *Engine) Loading(rec *Record, t int) bool {
	return slices.ContainsFunc(rec.Objects(), func(o *Object) bool { return o.loadRuns&(1<<t) != 0 })
}

// Awaited tells whether restores wait for rec.
func (e *Engine) Awaited(rec *Record) bool { return len(e.waiting[rec]) > 0 }

func (e *Engine) await(r *Restore) {
	r.Phase = Waiting
	e.waiting[r.Rec] = append(e.waiting[r.Rec], r)
}

func (e *Engine) takeWaiting(rec *Record) []*Restore {
	w := e.waiting[rec]
	if w != nil {
		delete(e.waiting, rec)
	}
	return w
}

// resume retries the restores that wait for rec.
func (e *Engine) resume(now int64, rec *Record) {
	for _, r := range e.takeWaiting(rec) {
		e.locate(now, r)
	}
}

func (e *Engine) failWaiting(now int64, rec *Record, err error) {
	for _, r := range e.takeWaiting(rec) {
		e.endWaiting(now, r, err)
	}
	e.withdrawLoads(now, rec)
}

// withdrawLoads withdraws the claims to room for loads that only waiting restores of rec needed, and the promises that ended with them.
func (e *Engine) withdrawLoads(now int64, rec *Record) {
	for _, o := range rec.Objects() {
		if !e.awaited(o) {
			e.withdrawClaims(now, o, true)
		}
	}
	e.withdrawPromises(now, rec)
}

func (e *Engine) endWaiting(now int64, r *Restore, err error) {
	r.Phase, r.Err = Ended, err
	if !r.Direct { // otherwise the fetches under way still read
		e.letGo(now, r)
	}
	if !r.quiet {
		e.wake(r.Notify)
	}
}

// HandOver tells that the caller has the bytes, exact and complete. A last restore then consumes the checkpoint.
func (e *Engine) HandOver(now int64, r *Restore) {
	e.noteRestored(now, r)
	if r.Last && !r.Rec.gone {
		e.consume(now, r)
	}
}

func (e *Engine) noteRestored(now int64, r *Restore) {
	if r.options.Peek {
		return
	}
	e.Stats.Restored += r.Rec.Size
	e.trace(now, Restored, r.Rec, r.Tier, 0)
}

// Lend tells that the caller was given the bytes, exact and complete. After a last restore the checkpoint is hidden from all other operations, until
// Consume or Return tells whether the caller used the bytes.
func (e *Engine) Lend(now int64, r *Restore) {
	e.noteRestored(now, r)
	rec := r.Rec
	if !r.Last || rec.gone {
		return
	}
	rec.hidden = true
	rec.Hist.hidden++
	if e.Awaited(rec) { // they would read bytes that the caller may write to
		e.failWaiting(now, rec, ErrDropped)
		e.makeProgress(now)
	}
}

// Return undoes Lend: the caller never used the bytes, and the checkpoint is unchanged.
func (e *Engine) Return(now int64, r *Restore) {
	if rec := r.Rec; rec.hidden {
		e.unhide(rec)
		e.renew(now, rec.Hist, rec.Key)
		e.makeProgress(now)
	}
}

func (e *Engine) unhide(rec *Record) {
	if rec.hidden {
		rec.hidden = false
		rec.Hist.hidden--
	}
}

// Consume removes a checkpoint that Lend gave for the last time. It does nothing if the checkpoint was dropped or replaced meanwhile.
func (e *Engine) Consume(now int64, r *Restore) {
	if r.Rec.hidden {
		e.consume(now, r)
	}
}

func (e *Engine) consume(now int64, r *Restore) {
	e.Stats.Consumed++
	e.trace(now, Consumed, r.Rec, -1, 0)
	for _, o := range r.Rec.Objects() {
		if id := o.copies[r.Tier]; id != fragment.None && !o.isShared() {
			if f := e.tiers[r.Tier].table.At(id); f.State.HasBytes() && !f.State.Busy() {
				e.step(o, r.Tier, lifecycle.Consume)
			}
		}
	}
	e.remove(now, r.Rec)
	e.makeProgress(now)
}

// EndRestore gives the bytes back: a copy out has ended (well or not), or a lease.
func (e *Engine) EndRestore(now int64, r *Restore) {
	if r.over {
		return
	}
	r.over = true
	switch {
	case r.Phase == Waiting && r.Direct: // a transfer runs: fetched ends it
		return
	case r.Phase == Waiting:
		e.forgetWaiting(now, r)
		e.makeProgress(now)
		return
	case r.Phase == Ended:
		return
	}
	r.Phase = Ended
	if r.copies {
		e.copying--
	}
	if r.copies && !r.Direct {
		for _, o := range r.Rec.Objects() {
			o.copying--
		}
	}
	e.letGo(now, r)
	e.makeProgress(now)
}

// RestoreFromBelow is for a Ready restore whose bytes in the fastest tier are not what was captured. If a lower tier has them, the restore waits for those,
// past the cache. The spoiled copy is freed when its last reader has gone.
func (e *Engine) RestoreFromBelow(now int64, r *Restore) bool {
	rec, t := r.Rec, r.Tier
	if r.over || r.Direct || rec.gone || t != rec.Top() || e.tiers[t].Device || !e.below(rec, t) {
		return false
	}
	all := r.held
	r.held = r.held[:0]
	for _, h := range all {
		if r.copies {
			h.o.copying--
		}
		at := e.tiers[t].table.At(h.id).Owner
		e.pinCopy(t, h.id, -1)
		h.o.spoiled |= 1 << t
		e.updateCopy(now, h.o, t)
		if at != h.o {
			e.updateCopy(now, at, t)
		}
	}
	if r.copies {
		r.copies = false
		e.copying--
	}
	r.Phase, r.options.Past = Waiting, true
	e.locate(now, r)
	e.makeProgress(now)
	return true
}

// below tells whether tiers below t have all bytes of rec.
func (e *Engine) below(rec *Record, t int) bool {
	return !slices.ContainsFunc(rec.Objects(), func(o *Object) bool { return e.lower(o, t) < 0 })
}

// forgetWaiting ends a cancelled restore and withdraws the claims for room that only it needed.
func (e *Engine) forgetWaiting(now int64, r *Restore) {
	r.Phase = Ended
	e.letGo(now, r)
	w := e.waiting[r.Rec]
	for i, x := range w {
		if x == r {
			w = append(w[:i], w[i+1:]...)
			break
		}
	}
	if len(w) == 0 {
		delete(e.waiting, r.Rec)
		e.withdrawLoads(now, r.Rec)
	} else {
		e.waiting[r.Rec] = w
	}
}
