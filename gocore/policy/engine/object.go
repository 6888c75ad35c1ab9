package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
)

// Object is what is placed, moved and evicted: bytes in one form on each tier. A checkpoint refers to the objects that it consists of. An object that
// nobody refers to is gone, and its room is given back as soon as nobody reads it.
type Object struct {
	home      *Record // whose capture made it
	more      *more   // what most objects do not need
	touched   int64   // state.count at its capture, or at the latest restore
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

// objects keeps account of who refers to which object, and of who needs it first.
type objects struct {
	*state
}

// reexpect updates where a restore needs o next, after r, which refers to it, is expected elsewhere.
func (ob *objects) reexpect(o *Object, r *Record) {
	switch first := o.first(); {
	case first != r && !ob.isSooner(r, first):
	case first != r && first.Hist == r.Hist:
		ob.precede(o, r)
	case o.isShared(): // of r's history another one may be before r, which was not before the first of the other history then
		ob.precede(o, ob.soonest(o))
	}
	ob.reweigh(o)
}

// isSooner tells whether a is expected before b. Places of several histories compare as at the last time that their paces changed.
func (ob *objects) isSooner(a, b *Record) bool {
	switch {
	case a.seq == fragment.Unexpected || b.seq == fragment.Unexpected:
		return a.seq < b.seq
	case a.Hist == b.Hist:
		return a.seq < b.seq
	}
	return ob.orders.distance(a) < ob.orders.distance(b)
}

// soonest is the checkpoint of those which refer to a shared object that is expected first.
func (ob *objects) soonest(o *Object) *Record {
	first := o.more.refs[0]
	for _, r := range o.more.refs[1:] {
		if ob.isSooner(r, first) {
			first = r
		}
	}
	return first
}

// precede makes r the first checkpoint of a shared object. Its history may be another one, whose dirty objects are in another heap.
func (ob *objects) precede(o *Object, r *Record) {
	if r.Hist.lane == o.lane() {
		o.more.first = r
		return
	}
	links := uint8(0)
	for k, l := range ob.links {
		if o.dirtyAt[k] >= 0 {
			l.dirty.set(o, false)
			links |= 1 << k
		}
	}
	o.more.first = r
	for k, l := range ob.links {
		if links&(1<<k) != 0 {
			l.dirty.set(o, true)
		}
	}
}

// reweigh updates the rows of o, and its places in the heaps of dirty objects, after it was touched or is expected elsewhere.
func (ob *objects) reweigh(o *Object) {
	place, lane := o.place(), o.lane()
	for t, id := range o.copies[:len(ob.tiers)] {
		if id != fragment.None {
			f := ob.tiers[t].table.At(id)
			f.Touched, f.Expected, f.Lane = o.touched, place, lane
			ob.tiers[t].table.Update(id)
			if t < len(ob.links) {
				ob.links[t].dirty.moved(o)
			}
		}
	}
}

// refer makes o an object of r as well.
func (ob *objects) refer(o *Object, r *Record) {
	m := o.extra()
	if !m.shared {
		m.shared, m.refs, m.first = true, []*Record{o.home}, o.home
	}
	m.refs = append(m.refs, r)
	ob.reexpect(o, r)
}

// unlist withdraws the flushes of an object to tiers with a catalog, in which the checkpoint that was this object alone is not listed any more. Its copies
// in such tiers stay: the catalog may refer to their room until it has recorded that.
func (ob *objects) unlist(now int64, o *Object) {
	if !ob.outlives {
		return
	}
	for _, l := range ob.links {
		if ob.tiers[l.lower].listed {
			ob.flushes.unqueue(now, l, o)
		}
	}
	for t := range ob.tiers {
		ob.copies.updateCopy(now, o, t)
	}
	ob.wakeAll(now, o)
}

// unlisted tells whether the catalog of a tier does not list o: no checkpoint is left that is o alone. A catalog lists whole checkpoints.
func (tr *tier) unlisted(o *Object) bool {
	return tr.listed && (o.home.gone || !o.home.isWhole() || o.home.Hist.anonymous)
}

// unrefer takes away r's reference to o. An object that nobody refers to any more is gone: it is not flushed, and gives back its room, now or when its
// last reader has gone.
func (ob *objects) unrefer(now int64, o *Object, r *Record) {
	if m := o.more; m != nil && m.shared {
		i := slices.Index(m.refs, r)
		switch {
		case i < 0 && len(m.refs) > 0:
			return
		case len(m.refs) > 1:
			m.refs = slices.Delete(m.refs, i, i+1)
			if m.first == r {
				ob.precede(o, m.refs[0])
			}
			ob.reexpect(o, m.first)
			if r == o.home {
				ob.unlist(now, o)
			}
			return
		}
		m.refs = nil
	}
	ob.discardObject(now, o)
}

func (ob *objects) discardObject(now int64, o *Object) {
	o.gone = true
	for k, l := range ob.links {
		if ob.flushes.unqueue(now, l, o) {
			ob.Stats.CancelledFlush += o.Bytes(k)
		} else if ob.copies.complete(o, k) && o.queuedOn&(1<<k) == 0 && ob.copies.lower(o, k) < 0 {
			ob.Stats.AvoidedFlush += o.Bytes(k)
		}
		ob.flushes.unstick(o, k)
	}
	ob.rooms.withdrawClaims(now, o, false)
	ob.loads.cancelLoads(o, func(int) {}) // updateCopy frees their room
	if o.hasNeed() && o.more.needs.loose {
		ob.dependencies.forgetNeed(o)
	}
	for t := range ob.tiers {
		ob.copies.updateCopy(now, o, t)
	}
	ob.dependencies.followUnneeded(now)
}

// wakeAll checks the waits for the checkpoints that refer to o.
func (ob *objects) wakeAll(now int64, o *Object) {
	for _, r := range o.Refs() {
		ob.waiters.wakeWaits(now, r)
	}
}

// resumeAll retries the restores that wait for o.
func (ob *objects) resumeAll(now int64, o *Object) {
	for _, r := range o.Refs() {
		ob.restores.resume(now, r)
	}
}

// awaited tells whether restores wait for o.
func (ob *objects) awaited(o *Object) bool {
	for _, r := range o.Refs() {
		if ob.restores.Awaited(r) {
			return true
		}
	}
	return false
}

// lookAgainFor makes the prefetchers of tier t look again at the checkpoints that refer to o.
func (ob *objects) lookAgainFor(o *Object, t int) {
	for _, r := range o.Refs() {
		ob.prefetches.lookAgain(r.Hist, t, r.seq)
	}
}

// expectedSoon tells whether the promise of o's copy in tier t still stands. A restore order needs it again within the prefetched part, or a restore
// waits for it, or for what needs all of its bytes.
func (ob *objects) expectedSoon(o *Object, t int) bool {
	for _, r := range o.Refs() {
		if ob.restores.Awaited(r) || r.seq != fragment.Unexpected && r.seq < r.Hist.promised[t] {
			return true
		}
	}
	return slices.ContainsFunc(o.users(), func(u *Object) bool { return !u.needsParts() && ob.expectedSoon(u, t) })
}
