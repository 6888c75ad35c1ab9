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
	copies  bool // counted in restores.copying
	over    bool
}

// held is a copy that a restore pins.
type held struct {
	o  *Object
	t  int
	id fragment.ID // its place, which o may have left since
	// endsByItself: the restore copies out of the copy, so the pin ends soon. A lease may pin one for any time.
	endsByItself bool
}

// restores gives callers the bytes of checkpoints.
type restores struct {
	*state

	waiting    map[*Record][]*Restore
	streamFrom int64 // the least size of a checkpoint that a restore streams past the cache
	copying    int   // restores under way that end by themselves (copies into the caller's arrays)
}

// Place is where a Ready restore finds the bytes of one of its objects, in the order of Record.Objects: the tier, and the offset. They stay there until
// EndRestore, also if the object gets another place meanwhile.
func (rs *restores) Place(r *Restore, i int) (t int, off int64) {
	o := r.Rec.Objects()[i]
	h := r.held[slices.IndexFunc(r.held, func(h held) bool { return h.o == o })]
	return h.t, rs.tiers[h.t].table.At(h.id).Offset
}

// Exclusive tells whether nobody but a Ready restore and flushes reads its bytes, and no other checkpoint needs them: its caller may write to them.
func (rs *restores) Exclusive(r *Restore) bool {
	return !slices.ContainsFunc(r.held, func(h held) bool {
		return rs.tiers[h.t].table.At(h.id).Pins > 1 || h.o.readings > 0 || slices.ContainsFunc(h.o.Refs(), func(of *Record) bool { return of != r.Rec })
	})
}

// RestoreOptions are the caller's options.
type RestoreOptions struct {
	Last bool // the last restore: it consumes the checkpoint
	Peek bool // leaves plan, counters and events alone: the caller wants the description of a checkpoint
	// Partial asks for some regions only. Bytes that are not in the fastest tier come directly from below, without cache room.
	Partial bool
	// Into says that the caller copies out and ends the restore by itself. Otherwise it is a lease, which the application ends.
	Into bool
	// Streams says that bytes which only a tier has that callers cannot address can come to the caller without memory for all of them.
	Streams bool
	Patient bool // wait for room even if only the application can make some
	Past    bool // the record's fastest tier cannot be read any more: read below it, past the cache
}

// BeginRestore asks for the checkpoint of a key.
func (rs *restores) BeginRestore(now int64, h *History, k model.Key, o RestoreOptions) (*Restore, error) {
	rec := h.Get(k)
	if rec == nil || rec.hidden {
		return nil, ErrNotFound
	}
	r := &Restore{Rec: rec, options: o, Last: o.Last, quiet: true}
	r.Hit = rs.checkpoints.Complete(rec, rec.Top())
	rs.checkpoints.touch(rec)
	rs.forecasts.surprised()
	if !o.Peek {
		rs.verifications.noteLease(h, r)
		r.Last = rs.orders.advance(now, h, rec, r.Hit) || o.Last
	}
	return rs.begin(now, r)
}

// begin locates a new restore, whose caller learns its phase from the result and not by a notice.
func (rs *restores) begin(now int64, r *Restore) (*Restore, error) {
	rs.locate(now, r)
	if r.Phase != Ended {
		rs.makeProgress(now)
	}
	r.quiet = false
	return r, r.Err
}

// locate brings the restore as far as it can go now: to Ready, or to waiting for a transfer.
func (rs *restores) locate(now int64, r *Restore) {
	rec := r.Rec
	top := rec.Top()
	switch {
	case rec.gone:
		rs.endWaiting(now, r, ErrDropped)
	case !rec.Captured():
		rs.await(r)
	case rs.tiers[top].Remote || r.options.Past:
		rs.fetch(now, r)
	case rs.hasAll(r, top):
		rs.pin(now, r, top)
	case rs.bypasses(r, top):
		rs.fetch(now, r)
	case rs.streams(r, top):
		rec.streamed = true
		rs.fetch(now, r)
	default:
		rs.await(r)
		rs.gather(now, r, top)
	}
}

// bypasses tells whether a restore reads past the cache: objects that are missing in tier t cannot be loaded, or the caller does not want them loaded.
func (rs *restores) bypasses(r *Restore, t int) bool {
	for _, o := range r.Rec.Objects() {
		switch {
		case rs.has(r, o, t):
		case o.spoiled&(1<<t) != 0: // its room is not free yet
			return true
		case o.copies[t] == fragment.None && (r.options.Partial || r.Direct || !rs.loads.isLoadable(o, t)):
			return true
		}
	}
	return !rs.fitsWhole(r.Rec, t)
}

// leastStreamed is streamFrom: reads of less cost more than the room, and small checkpoints are often read one after the other.
const leastStreamed = 1 << 20

// streams tells whether a restore reads past the cache because no restore of the checkpoint is expected after it: room in tier t, and memory that is touched for
// the first time, would serve this restore alone. A second restore of the checkpoint brings it to the cache.
func (rs *restores) streams(r *Restore, t int) bool {
	rec, o := r.Rec, &r.Rec.own
	switch {
	case !r.options.Streams || rec.streamed || rec.seq != fragment.Unexpected || rec.Size < rs.streamFrom || rs.tiers[t].Device:
		return false
	case o.more != nil || o.copies[t] != fragment.None || o.loadsOn != 0: // it has a form of its own, or others need it, or it comes up already
		return false
	}
	from := rs.copies.lower(o, t)
	return from >= 0 && rs.tiers[from].Remote
}

// bypassCache ends the wait of restores which need an object that finds no room in the fastest tier. Restores that copy out read from below instead, and
// leases too, unless leases fill the tier. With patience, leases of patient callers go on waiting; bypassCache tells whether there are any.
func (rs *restores) bypassCache(now int64, o *Object, err error, patience bool) (waiting bool) {
	for _, rec := range o.Refs() {
		if !rec.Captured() {
			continue // it waits for another object
		}
		top := rec.Top()
		waits := rs.takeWaiting(rec)
		for _, r := range waits {
			rs.letGo(now, r)
		}
		crowded := rs.tiers[top].fits(o) && rs.isCrowded(rec, top)
		for _, r := range waits {
			switch {
			case !rec.gone && (r.options.Into || !crowded):
				rs.fetch(now, r)
			case r.options.Patient && patience:
				rs.await(r)
				waiting = true
			default:
				rs.endWaiting(now, r, err)
			}
		}
		if rec.isWhole() {
			rs.loads.withdrawPromises(now, rec)
		} else { // the others of its objects may have claims, too
			rs.loads.withdrawLoads(now, rec)
		}
	}
	return waiting
}

// fitsWhole tells whether the empty tier could hold all objects of rec at once.
func (rs *restores) fitsWhole(rec *Record, t int) bool {
	if rec.isWhole() {
		return true // what is too large is not loadable
	}
	bytes := int64(0)
	for _, o := range rec.Objects() {
		bytes += rs.tiers[t].extent(o)
	}
	return bytes <= rs.tiers[t].Capacity
}

// isCrowded tells whether leases leave tier t too little room for the objects of rec that nobody reads there.
func (rs *restores) isCrowded(rec *Record, t int) bool {
	tr := rs.tiers[t]
	bytes := rs.copies.pinnedBytes(t)
	for _, o := range rec.Objects() {
		if o.copies[t] == fragment.None || rs.copies.row(o, t).Pins == 0 {
			bytes += tr.extent(o)
		}
	}
	return bytes > tr.Capacity
}

// gather pins the objects of a checkpoint that tier t has, so that loading the others does not evict them. It loads these in the order in which the restore
// needs them.
func (rs *restores) gather(now int64, r *Restore, t int) {
	for _, o := range r.Rec.Objects() {
		switch {
		case r.Phase != Waiting || r.Direct:
			return // one of the others has found no room
		case rs.has(r, o, t):
			rs.hold(now, r, o, t)
		case o.copies[t] != fragment.None:
			rs.loads.makeLoadsUrgent(o)
		default:
			rs.loads.loadInto(now, o, t)
		}
	}
}

// has tells whether a restore finds o's bytes in tier t: in o's copy, or where the restore has pinned them, which o may have left since.
func (rs *restores) has(r *Restore, o *Object, t int) bool {
	return rs.copies.complete(o, t) || o.spoiled&(1<<t) == 0 && r.holds(o, t)
}

// hasAll tells whether a restore finds all of its bytes in tier t.
func (rs *restores) hasAll(r *Restore, t int) bool {
	for _, o := range r.Rec.Objects() {
		if !rs.has(r, o, t) {
			return false
		}
	}
	return true
}

func (r *Restore) holds(o *Object, t int) bool {
	return slices.ContainsFunc(r.held, func(h held) bool { return h.o == o && h.t == t })
}

// hold pins o's copy in tier t for a restore.
func (rs *restores) hold(now int64, r *Restore, o *Object, t int) {
	if len(r.held) == 0 {
		r.held = r.one[:0]
	} else if r.holds(o, t) {
		return
	}
	r.held = append(r.held, held{o: o, t: t, id: o.copies[t]})
	rs.copies.pinCopy(t, o.copies[t], +1)
	if r.copies {
		rs.copyOut(&r.held[len(r.held)-1])
	}
	rs.copies.updateCopy(now, o, t)
}

// copyOut records that a restore copies out of a copy that it has pinned.
func (rs *restores) copyOut(h *held) {
	h.endsByItself = true
	rs.tiers[h.t].copying++
}

// unpin ends what a restore pins in one tier. A flush may have waited for the end of a copy.
func (rs *restores) unpin(h held) {
	rs.copies.pinCopy(h.t, h.id, -1)
	if h.endsByItself {
		rs.tiers[h.t].copying--
		rs.tiers[h.t].version++
	}
}

// letGo ends what a restore pins.
func (rs *restores) letGo(now int64, r *Restore) {
	all := r.held
	r.held = r.held[:0]
	for _, h := range all {
		at := rs.tiers[h.t].table.At(h.id).Owner
		rs.unpin(h)
		rs.loads.withdrawPromisesOf(now, h.o)
		rs.copies.updateCopy(now, at, h.t)
	}
}

func (rs *restores) pin(now int64, r *Restore, t int) {
	r.Tier, r.Phase = t, Ready
	if r.options.Into {
		r.copies = true
		rs.copying++
		for i := range r.held { // objects that it has pinned while it waited for its others
			rs.copyOut(&r.held[i])
		}
	}
	for _, o := range r.Rec.Objects() {
		if r.copies {
			o.copying++
		}
		rs.hold(now, r, o, t)
	}
	if !r.Rec.isWhole() { // an object that left the place which the restore has pinned may have been loaded again for it
		rs.loads.withdrawLoads(now, r.Rec)
	}
	if !r.quiet {
		rs.wake(r.Notify)
	}
}

// fetch reads past the cache. It takes each object from the fastest tier that has its bytes.
func (rs *restores) fetch(now int64, r *Restore) {
	above := -1
	if r.options.Past {
		above = r.Rec.Top()
	}
	if !rs.checkpoints.below(r.Rec, above) {
		rs.endWaiting(now, r, ErrUnreachable)
		return
	}
	rs.letGo(now, r)
	r.Direct, r.copies = true, true
	rs.copying++
	for _, o := range r.Rec.Objects() {
		t := rs.copies.lower(o, above)
		if o.loadRuns&(1<<t) != 0 { // its bytes may turn out to be wrong; those that the load reads are below
			t = rs.copies.lower(o, t)
		}
		rs.hold(now, r, o, t)
		r.Tier = max(r.Tier, t)
		r.fetches++
		x := &Transfer{Kind: Fetch, Rec: r.Rec, Obj: o, From: t, To: caller, FromOff: rs.copies.row(o, t).Offset, Restore: r}
		x.between(caller, t)
		x.Fetched = x.Reads()
		rs.transfers.pass(Up, x)
	}
	if !r.Rec.isWhole() { // it may have waited for several loads, of which one was denied or failed
		rs.loads.withdrawLoads(now, r.Rec)
	}
}

func (rs *restores) fetched(now int64, x *Transfer, err error) {
	r := x.Restore
	if err == nil {
		rs.Stats.Tiers[x.From].Read += x.Fetched
	} else if r.Err == nil {
		r.Err = &TierError{Tier: x.From, Err: err}
	}
	if r.fetches--; r.fetches > 0 {
		return
	}
	r.Phase = Ready
	if r.over { // cancelled meanwhile: no other call ends it
		r.over = false
		rs.EndRestore(now, r)
		return
	}
	rs.wake(r.Notify)
}

// Awaited tells whether restores wait for rec.
func (rs *restores) Awaited(rec *Record) bool { return len(rs.waiting[rec]) > 0 }

func (rs *restores) await(r *Restore) {
	r.Phase = Waiting
	rs.waiting[r.Rec] = append(rs.waiting[r.Rec], r)
}

func (rs *restores) takeWaiting(rec *Record) []*Restore {
	w := rs.waiting[rec]
	if w != nil {
		delete(rs.waiting, rec)
	}
	return w
}

// resume retries the restores that wait for rec.
func (rs *restores) resume(now int64, rec *Record) {
	for _, r := range rs.takeWaiting(rec) {
		rs.locate(now, r)
	}
}

func (rs *restores) failWaiting(now int64, rec *Record, err error) {
	for _, r := range rs.takeWaiting(rec) {
		rs.endWaiting(now, r, err)
	}
	rs.loads.withdrawLoads(now, rec)
}

func (rs *restores) endWaiting(now int64, r *Restore, err error) {
	r.Phase, r.Err = Ended, err
	if !r.Direct { // otherwise the fetches under way still read
		rs.letGo(now, r)
	}
	if !r.quiet {
		rs.wake(r.Notify)
	}
}

// HandOver tells that the caller has the bytes, exact and complete. A last restore then consumes the checkpoint.
func (rs *restores) HandOver(now int64, r *Restore) {
	rs.noteRestored(now, r)
	if r.Last && !r.Rec.gone {
		rs.consume(now, r)
	}
}

func (rs *restores) noteRestored(now int64, r *Restore) {
	if r.options.Peek {
		return
	}
	rs.Stats.Restored += r.Rec.Size
	rs.trace(now, Restored, r.Rec, r.Tier, 0)
}

// Lend tells that the caller was given the bytes, exact and complete. After a last restore the checkpoint is hidden from all other operations, until
// Consume or Return tells whether the caller used the bytes.
func (rs *restores) Lend(now int64, r *Restore) {
	rs.noteRestored(now, r)
	rec := r.Rec
	if !r.Last || rec.gone {
		return
	}
	rec.hidden = true
	rec.Hist.hidden++
	if rs.Awaited(rec) { // they would read bytes that the caller may write to
		rs.failWaiting(now, rec, ErrDropped)
		rs.makeProgress(now)
	}
}

// Return undoes Lend: the caller never used the bytes, and the checkpoint is unchanged.
func (rs *restores) Return(now int64, r *Restore) {
	if rec := r.Rec; rec.hidden {
		rs.unhide(rec)
		rs.orders.renew(now, rec.Hist, rec.Key)
		rs.makeProgress(now)
	}
}

func (rs *restores) unhide(rec *Record) {
	if rec.hidden {
		rec.hidden = false
		rec.Hist.hidden--
	}
}

// Consume removes a checkpoint that Lend gave for the last time. It does nothing if the checkpoint was dropped or replaced meanwhile.
func (rs *restores) Consume(now int64, r *Restore) {
	if r.Rec.hidden {
		rs.consume(now, r)
	}
}

func (rs *restores) consume(now int64, r *Restore) {
	rs.Stats.Consumed++
	rs.trace(now, Consumed, r.Rec, -1, 0)
	for _, o := range r.Rec.Objects() {
		if id := o.copies[r.Tier]; id != fragment.None && !o.isShared() {
			if f := rs.tiers[r.Tier].table.At(id); f.State.HasBytes() && !f.State.Busy() {
				rs.copies.step(o, r.Tier, lifecycle.Consume)
			}
		}
	}
	rs.checkpoints.remove(now, r.Rec)
	rs.makeProgress(now)
}

// EndRestore gives the bytes back: a copy out has ended (well or not), or a lease.
func (rs *restores) EndRestore(now int64, r *Restore) {
	if r.over {
		return
	}
	r.over = true
	switch {
	case r.Phase == Waiting && r.Direct: // a transfer runs: fetched ends it
		return
	case r.Phase == Waiting:
		rs.forgetWaiting(now, r)
		rs.makeProgress(now)
		return
	case r.Phase == Ended:
		return
	}
	r.Phase = Ended
	if r.copies {
		rs.copying--
	}
	if r.copies && !r.Direct {
		for _, o := range r.Rec.Objects() {
			o.copying--
		}
	}
	rs.letGo(now, r)
	rs.makeProgress(now)
}

// RestoreFromBelow is for a Ready restore whose bytes in the fastest tier are not what was captured. If a lower tier has them, the restore waits for those,
// past the cache. The spoiled copy is freed when its last reader has gone.
func (rs *restores) RestoreFromBelow(now int64, r *Restore) bool {
	rec, t := r.Rec, r.Tier
	if r.over || r.Direct || rec.gone || t != rec.Top() || rs.tiers[t].Device || !rs.checkpoints.below(rec, t) {
		return false
	}
	all := r.held
	r.held = r.held[:0]
	for _, h := range all {
		if r.copies {
			h.o.copying--
		}
		at := rs.tiers[t].table.At(h.id).Owner
		rs.unpin(h)
		h.o.spoiled |= 1 << t
		rs.copies.updateCopy(now, h.o, t)
		if at != h.o {
			rs.copies.updateCopy(now, at, t)
		}
	}
	if r.copies {
		r.copies = false
		rs.copying--
	}
	r.Phase, r.options.Past = Waiting, true
	rs.locate(now, r)
	rs.makeProgress(now)
	return true
}

// forgetWaiting ends a cancelled restore and withdraws the claims for room that only it needed.
func (rs *restores) forgetWaiting(now int64, r *Restore) {
	r.Phase = Ended
	rs.letGo(now, r)
	w := rs.waiting[r.Rec]
	for i, x := range w {
		if x == r {
			w = append(w[:i], w[i+1:]...)
			break
		}
	}
	if len(w) == 0 {
		delete(rs.waiting, r.Rec)
		rs.loads.withdrawLoads(now, r.Rec)
	} else {
		rs.waiting[r.Rec] = w
	}
}
