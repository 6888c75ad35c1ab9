package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// Object is what is placed, moved and evicted: bytes in one form on each tier. A checkpoint refers to the objects that it consists of. An object that
// nobody refers to is gone, and its room is given back as soon as nobody reads it.
type Object struct {
	home      *Record // whose capture made it
	more      *more   // what most objects do not need
	touched   int64   // Engine.count at its capture, or at the latest restore
	copying   int32   // restores that copy out of its fastest tier
	readings  int32   // of copies, that no restore stands for
	copies    [MaxTiers]fragment.ID
	dirtyAt   [MaxTiers - 1]int32 // index in the link's heap of dirty objects, or -1
	leaves    uint16              // the lists of leaving that it is on, two for each tier
	queuedOn  uint8               // bit k: a flush over link k is queued or running
	runs      uint8               // bit k: it is running
	loadRuns  uint8               // bit k: a load over link k is running
	loadsOn   uint8               // bit k: a load over link k has been asked for (it may wait for room) or runs
	stuckOn   uint8               // bit k: the flush over link k failed
	wants     uint8               // bit t: a caller wants it durable in tier t soon
	spoiled   uint8               // bit t: its copy in tier t is not what was captured; it is freed when the last reader has gone
	top       uint8               // its fastest tier: a private one, or the first shared one
	verifying bool                // its copy in the fastest tier is being verified, and MarkUnverified has not been called since
	captured  bool
	gone      bool // nobody refers to it
}

// more is apart from Object to keep a checkpoint of one raw object small: a store may have millions of them.
type more struct {
	failed error // why its capture or its latest flush failed
	shape  *shaped
	shared bool      // refs and first count; otherwise home is the only checkpoint that refers to the object
	refs   []*Record // those that refer to it
	first  *Record   // of refs: the one that is expected first
	needs  *needs    // between copies in one tier; nil: there are none
	chain  []*Object // of the own object of a record: what the record consists of, if that is not the own object alone
}

// extra is the part that most objects do not have.
func (o *Object) extra() *more {
	if o.more == nil {
		o.more = new(more)
	}
	return o.more
}

// init makes the own object of a record that is new.
func (o *Object) init(r *Record, count int64) {
	o.home, o.touched = r, count
	for i := range o.copies {
		o.copies[i] = fragment.None
	}
	for i := range o.dirtyAt {
		o.dirtyAt[i] = -1
	}
}

// Refs are the checkpoints that refer to the object.
func (o *Object) Refs() []*Record {
	switch {
	case o.gone:
		return nil
	case o.more != nil && o.more.shared:
		return o.more.refs
	}
	return []*Record{o.home}
}

// isShared tells whether several checkpoints refer to the object.
func (o *Object) isShared() bool { return o.more != nil && len(o.more.refs) > 1 }

// Rec is a checkpoint that refers to the object: the one whose capture made it as long as that is so, and again when none does any more.
func (o *Object) Rec() *Record {
	if rs := o.Refs(); len(rs) > 0 && o.home.gone {
		return rs[0]
	}
	return o.home
}

// Made is the checkpoint whose capture made the object. It may be gone.
func (o *Object) Made() *Record { return o.home }

// Gone tells whether nobody refers to the object.
func (o *Object) Gone() bool { return o.gone }

// first is the checkpoint of those which refer to o that is expected first.
func (o *Object) first() *Record {
	if o.more != nil && o.more.shared {
		return o.more.first
	}
	return o.home
}

// next is the place in the restore order where a checkpoint that refers to o is expected first, or fragment.Unexpected.
func (o *Object) next() int64 { return o.first().seq }

// place is that of next on the axis of intervals, or fragment.Unexpected.
func (o *Object) place() int64 { return o.first().place }

// lane is that of the history whose restore order has o at next.
func (o *Object) lane() int32 { return o.first().Hist.lane }

// failed is why the capture or the latest flush of o failed.
func (o *Object) failed() error {
	if o.more == nil {
		return nil
	}
	return o.more.failed
}

func (o *Object) fail(err error) {
	if err != nil || o.more != nil {
		o.extra().failed = err
	}
}

// uses tells whether o may be in tier t: its fastest, or any shared tier below.
func (e *Engine) uses(o *Object, t int) bool {
	return t == int(o.top) || t > int(o.top) && !e.tiers[t].Private
}

// complete tells whether tier t holds all bytes of o.
func (e *Engine) complete(o *Object, t int) bool {
	id := o.copies[t]
	return id != fragment.None && o.spoiled&(1<<t) == 0 && e.tiers[t].table.At(id).State.HasBytes()
}

// fastest is the fastest tier with all bytes of o, or -1.
func (e *Engine) fastest(o *Object) int { return e.lower(o, -1) }

// hasRoom tells whether o has room in any tier.
func (e *Engine) hasRoom(o *Object) bool {
	for t := range e.tiers {
		if o.copies[t] != fragment.None {
			return true
		}
	}
	return false
}

// row is the row of o's copy in tier t. There must be one.
func (e *Engine) row(o *Object, t int) *fragment.Fragment[*Object] {
	return e.tiers[t].table.At(o.copies[t])
}

// step takes the copy of o in tier t through one transition of its life cycle. A transition that the state machine forbids is a defect of the engine.
// It panics, and the core turns the panic into a clean failure of every later call.
func (e *Engine) step(o *Object, t int, ev lifecycle.Event) {
	f := e.row(o, t)
	next, err := f.State.Next(ev)
	if err != nil {
		panic("engine: " + o.home.Hist.Name + "/" + o.home.Key.String() + " in " + e.tiers[t].Name + ": " + err.Error())
	}
	f.State = next
}

// updateCopy updates the class of o's copy in tier t, and the state that depends on it. The copy of an object that is gone, or a spoiled copy, is freed as
// soon as it has no reader and no transfer.
func (e *Engine) updateCopy(now int64, o *Object, t int) {
	id := o.copies[t]
	if id == fragment.None {
		return
	}
	f := e.tiers[t].table.At(id)
	if o.gone || o.spoiled&(1<<t) != 0 {
		if f.Pins == 0 && f.Transfers == 0 && !o.isNeeded(t) {
			e.vacate(o, t)
			return
		}
		e.setClass(t, f, fragment.Held)
		e.tiers[t].table.Update(id)
		if t < len(e.links) {
			e.links[t].dirty.set(o, false)
		}
		return
	}
	f.Expected, f.Touched, f.Lane = o.place(), o.touched, o.lane()
	e.setClass(t, f, e.classify(o, t, f))
	e.tiers[t].table.Update(id)
	if t < len(e.links) {
		e.links[t].setDirty(e, o, f.Class == fragment.Dirty)
	}
	if e.tiers[t].behind(f) {
		e.tiers[t].leaving.look(o, t, f.Class)
	}
}

func (e *Engine) classify(o *Object, t int, f *fragment.Fragment[*Object]) fragment.Class {
	bit := uint8(1) << t
	switch {
	case f.Pins > 0:
		return fragment.Held
	case f.State == lifecycle.ReadComplete && f.Transfers == 0:
		return fragment.Promised
	case f.State.Evictable() && f.Transfers == 0 && !e.tiers[t].retires(f) && !e.tiers[t].unlisted(o) && !o.isNeeded(t):
		return fragment.Free
	case f.State != lifecycle.WriteComplete || o.stuckOn&bit != 0 || (t < len(e.links) && !e.tiers[e.links[t].lower].fits(o)):
		return fragment.Held
	case o.queuedOn&bit != 0:
		return fragment.Flushing
	default:
		return fragment.Dirty
	}
}

func (e *Engine) setClass(t int, f *fragment.Fragment[*Object], c fragment.Class) {
	tr := e.tiers[t]
	if was := f.Class; was != c && (c == fragment.Free || was == fragment.Held || was == fragment.Flushing) && (c != fragment.Dirty || e.isFlushable(f.Owner, t)) {
		e.roomAppeared(t)
	}
	n := tr.within(f)
	tr.bytes[f.Class] -= n
	tr.bytes[c] += n
	f.Class = c
}

// isFlushable tells whether o's copy in tier t might make room by a flush.
func (e *Engine) isFlushable(o *Object, t int) bool {
	return t < len(e.links) && !e.links[t].refuses(e, o)
}

// roomAppeared records that tier t may have room where it had none. Claims and flushes that waited for room are tried again, also in the tiers above,
// whose flushes tier t may have refused.
func (e *Engine) roomAppeared(t int) {
	e.tiers[t].version++
	for k, l := range e.links[:min(t, len(e.links))] {
		if l.lower == t && len(l.refused) > 0 {
			l.retryRefused(boundless)
			e.roomAppeared(k)
		}
	}
}

// place records that o's copy in tier t is in fragment id, and begins its life cycle there.
func (e *Engine) place(o *Object, t int, id fragment.ID, ev lifecycle.Event) {
	tr := e.tiers[t]
	f := tr.table.At(id)
	tr.bytes[fragment.Gap] -= f.Size
	tr.bytes[fragment.Held] += f.Size // room is placed before the end of the tier
	f.Born, f.Touched, f.Expected, f.Lane = uint32(e.count), o.touched, o.place(), o.lane()
	tr.table.Update(id)
	o.copies[t] = id
	e.tellRoom(t, f.Offset, f.Size, true)
	e.step(o, t, ev)
	e.Stats.noteUsed(t, tr.used())
}

// tellRoom tells the caller that a record got room or gave it back.
func (e *Engine) tellRoom(t int, off, n int64, taken bool) {
	if e.cfg.Room != nil {
		e.cfg.Room(t, off, n, taken)
	}
}

// free gives back o's fragment in tier t and returns the gap that it leaves, if any.
func (e *Engine) free(o *Object, t int) fragment.ID {
	tr := e.tiers[t]
	id := o.copies[t]
	f := tr.table.At(id)
	off, n := f.Offset, tr.within(f)
	e.tellRoom(t, off, f.Size, false)
	tr.bytes[f.Class] -= n
	tr.bytes[fragment.Gap] += n
	if t < len(e.links) {
		e.links[t].dirty.set(o, false)
	}
	o.copies[t] = fragment.None
	e.releaseNeeded(o, t)
	o.forgetSize(t)
	spoiled := o.spoiled&(1<<t) != 0
	o.spoiled &^= 1 << t
	gap := tr.table.Free(id)
	e.emptied(t, gap, off, n)
	if !spoiled { // a spoiled copy would be loaded again with the same result
		e.lookAgainFor(o, t)
	}
	if t == int(o.top) {
		for _, r := range o.Refs() {
			r.Hist.readyTo = min(r.Hist.readyTo, r.seq)
		}
	}
	if o != &o.home.own {
		o.home.duplicates--
	}
	e.forget(o.home)
	return gap
}

// reexpect updates where a restore needs o next, after r, which refers to it, is expected elsewhere.
func (e *Engine) reexpect(o *Object, r *Record) {
	switch first := o.first(); {
	case first != r && !e.isSooner(r, first):
	case first != r && first.Hist == r.Hist:
		e.precede(o, r)
	case o.isShared(): // of r's history another one may be before r, which was not before the first of the other history then
		e.precede(o, e.soonest(o))
	}
	e.reweigh(o)
}

// isSooner tells whether a is expected before b. Places of several histories compare as at the last time that their paces changed.
func (e *Engine) isSooner(a, b *Record) bool {
	switch {
	case a.seq == fragment.Unexpected || b.seq == fragment.Unexpected:
		return a.seq < b.seq
	case a.Hist == b.Hist:
		return a.seq < b.seq
	}
	return e.distance(a) < e.distance(b)
}

// soonest is the checkpoint of those which refer to a shared object that is expected first.
func (e *Engine) soonest(o *Object) *Record {
	first := o.more.refs[0]
	for _, r := range o.more.refs[1:] {
		if e.isSooner(r, first) {
			first = r
		}
	}
	return first
}

// precede makes r the first checkpoint of a shared object. Its history may be another one, whose dirty objects are in another heap.
func (e *Engine) precede(o *Object, r *Record) {
	if r.Hist.lane == o.lane() {
		o.more.first = r
		return
	}
	links := uint8(0)
	for k, l := range e.links {
		if o.dirtyAt[k] >= 0 {
			l.dirty.set(o, false)
			links |= 1 << k
		}
	}
	o.more.first = r
	for k, l := range e.links {
		if links&(1<<k) != 0 {
			l.dirty.set(o, true)
		}
	}
}

// reweigh updates the rows of o, and its places in the heaps of dirty objects, after it was touched or is expected elsewhere.
func (e *Engine) reweigh(o *Object) {
	place, lane := o.place(), o.lane()
	for t, id := range o.copies[:len(e.tiers)] {
		if id != fragment.None {
			f := e.tiers[t].table.At(id)
			f.Touched, f.Expected, f.Lane = o.touched, place, lane
			e.tiers[t].table.Update(id)
			if t < len(e.links) {
				e.links[t].dirty.moved(o)
			}
		}
	}
}

// refer makes o an object of r as well.
func (e *Engine) refer(o *Object, r *Record) {
	m := o.extra()
	if !m.shared {
		m.shared, m.refs, m.first = true, []*Record{o.home}, o.home
	}
	m.refs = append(m.refs, r)
	e.reexpect(o, r)
}

// unlist withdraws the flushes of an object to tiers with a catalog, in which the checkpoint that was this object alone is not listed any more. Its copies
// in such tiers stay: the catalog may refer to their room until it has recorded that.
func (e *Engine) unlist(now int64, o *Object) {
	if !e.outlives {
		return
	}
	for _, l := range e.links {
		if e.tiers[l.lower].listed {
			e.unqueue(now, l, o)
		}
	}
	for t := range e.tiers {
		e.updateCopy(now, o, t)
	}
	e.wakeAll(now, o)
}

// unlisted tells whether the catalog of a tier does not list o: no checkpoint is left that is o alone. A catalog lists whole checkpoints.
func (tr *tier) unlisted(o *Object) bool {
	return tr.listed && (o.home.gone || !o.home.isWhole() || o.home.Hist.anonymous)
}

// unrefer takes away r's reference to o. An object that nobody refers to any more is gone: it is not flushed, and gives back its room, now or when its
// last reader has gone.
func (e *Engine) unrefer(now int64, o *Object, r *Record) {
	if m := o.more; m != nil && m.shared {
		i := slices.Index(m.refs, r)
		switch {
		case i < 0 && len(m.refs) > 0:
			return
		case len(m.refs) > 1:
			m.refs = slices.Delete(m.refs, i, i+1)
			if m.first == r {
				e.precede(o, m.refs[0])
			}
			e.reexpect(o, m.first)
			if r == o.home {
				e.unlist(now, o)
			}
			return
		}
		m.refs = nil
	}
	e.discardObject(now, o)
}

func (e *Engine) discardObject(now int64, o *Object) {
	o.gone = true
	for k, l := range e.links {
		if e.unqueue(now, l, o) {
			e.Stats.CancelledFlush += o.Bytes(k)
		} else if e.complete(o, k) && o.queuedOn&(1<<k) == 0 && e.lower(o, k) < 0 {
			e.Stats.AvoidedFlush += o.Bytes(k)
		}
		e.unstick(o, k)
	}
	e.withdrawClaims(now, o, false)
	e.cancelLoads(o, func(int) {}) // updateCopy frees their room
	if o.hasNeed() && o.more.needs.loose {
		e.forgetNeed(o)
	}
	for t := range e.tiers {
		e.updateCopy(now, o, t)
	}
	e.followUnneeded(now)
}

// wakeAll checks the waits for the checkpoints that refer to o.
func (e *Engine) wakeAll(now int64, o *Object) {
	for _, r := range o.Refs() {
		e.wakeWaits(now, r)
	}
}

// resumeAll retries the restores that wait for o.
func (e *Engine) resumeAll(now int64, o *Object) {
	for _, r := range o.Refs() {
		e.resume(now, r)
	}
}

// awaited tells whether restores wait for o.
func (e *Engine) awaited(o *Object) bool {
	for _, r := range o.Refs() {
		if e.Awaited(r) {
			return true
		}
	}
	return false
}

// lookAgainFor makes the prefetchers of tier t look again at the checkpoints that refer to o.
func (e *Engine) lookAgainFor(o *Object, t int) {
	for _, r := range o.Refs() {
		e.lookAgain(r.Hist, t, r.seq)
	}
}

// expectedSoon tells whether the promise of o's copy in tier t still stands. A restore order needs it again within the prefetched part, or a restore
// waits for it, or for what needs it.
func (e *Engine) expectedSoon(o *Object, t int) bool {
	for _, r := range o.Refs() {
		if e.Awaited(r) || r.seq != fragment.Unexpected && r.seq < r.Hist.promised[t] {
			return true
		}
	}
	return slices.ContainsFunc(o.users(), func(u *Object) bool { return e.expectedSoon(u, t) })
}
