package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// copies keeps account of the copies of objects on the tiers: what they are good for, and whether they can be evicted.
type copies struct {
	*state
}

// pinCopy changes the number of readers that pin a copy in tier t.
func (cp *copies) pinCopy(t int, id fragment.ID, readers int32) {
	f := cp.tiers[t].table.At(id)
	was := f.Pins > 0
	f.Pins += readers
	switch now := f.Pins > 0; {
	case now && !was:
		cp.tiers[t].pinned += f.Size
	case was && !now:
		cp.tiers[t].pinned -= f.Size
	}
}

// isPinned tells whether a restore reads o in any tier.
func (cp *copies) isPinned(o *Object) bool {
	for t, id := range o.copies[:len(cp.tiers)] {
		if id != fragment.None && cp.tiers[t].table.At(id).Pins > 0 {
			return true
		}
	}
	return false
}

// holds is the fastest tier from t on that is large enough for o, or -1.
func (cp *copies) holds(o *Object, t int) int {
	for t >= 0 && !cp.tiers[t].fits(o) {
		t = cp.Below(t)
	}
	return t
}

// Offset is where o's copy in tier t lies, which it has.
func (cp *copies) Offset(o *Object, t int) int64 { return cp.row(o, t).Offset }

// uses tells whether o may be in tier t: its fastest, or any shared tier below.
func (cp *copies) uses(o *Object, t int) bool {
	return t == int(o.top) || t > int(o.top) && !cp.tiers[t].Private
}

// complete tells whether tier t holds all bytes of o.
func (cp *copies) complete(o *Object, t int) bool {
	id := o.copies[t]
	return id != fragment.None && o.spoiled&(1<<t) == 0 && cp.tiers[t].table.At(id).State.HasBytes()
}

// fastest is the fastest tier with all bytes of o, or -1.
func (cp *copies) fastest(o *Object) int { return cp.lower(o, -1) }

// hasAnyRoom tells whether o has room in any tier.
func (cp *copies) hasAnyRoom(o *Object) bool {
	for t := range cp.tiers {
		if o.copies[t] != fragment.None {
			return true
		}
	}
	return false
}

// row is the row of o's copy in tier t. There must be one.
func (cp *copies) row(o *Object, t int) *fragment.Fragment[*Object] {
	return cp.tiers[t].table.At(o.copies[t])
}

// step takes the copy of o in tier t through one transition of its life cycle. A transition that the state machine forbids is a defect of the engine.
// It panics, and the core turns the panic into a clean failure of every later call.
func (cp *copies) step(o *Object, t int, ev lifecycle.Event) {
	f := cp.row(o, t)
	next, err := f.State.Next(ev)
	if err != nil {
		panic("engine: " + o.home.Hist.Name + "/" + o.home.Key.String() + " in " + cp.tiers[t].Name + ": " + err.Error())
	}
	f.State = next
}

// updateCopy updates the class of o's copy in tier t, and the state that depends on it. The copy of an object that is gone, or a spoiled copy, is freed as
// soon as it has no reader and no transfer.
func (cp *copies) updateCopy(now int64, o *Object, t int) {
	id := o.copies[t]
	if id == fragment.None {
		return
	}
	f := cp.tiers[t].table.At(id)
	if o.gone || o.spoiled&(1<<t) != 0 {
		if f.Pins == 0 && f.Transfers == 0 {
			if !o.isNeeded(t) {
				cp.vacate(o, t)
				return
			}
			cp.dependencies.endParts(o, t)
		}
		cp.setClass(t, f, fragment.Held)
		cp.tiers[t].table.Update(id)
		if t < len(cp.links) {
			cp.links[t].dirty.set(o, false)
		}
		return
	}
	f.Expected, f.Touched, f.Lane = o.place(), o.touched, o.lane()
	cp.setClass(t, f, cp.classify(o, t, f))
	cp.tiers[t].table.Update(id)
	if t < len(cp.links) {
		cp.links[t].setDirty(cp.state, o, f.Class == fragment.Dirty)
	}
	if cp.tiers[t].behind(f) {
		cp.tiers[t].leaving.look(o, t, f.Class)
	}
}

func (cp *copies) classify(o *Object, t int, f *fragment.Fragment[*Object]) fragment.Class {
	bit := uint8(1) << t
	switch {
	case f.Pins > 0:
		return fragment.Held
	case f.State == lifecycle.ReadComplete && f.Transfers == 0:
		return fragment.Promised
	case f.State.Evictable() && f.Transfers == 0 && !cp.tiers[t].retires(f) && !cp.tiers[t].unlisted(o) && !o.isNeeded(t):
		return fragment.Free
	case f.State != lifecycle.WriteComplete || o.stuckOn&bit != 0 || (t < len(cp.links) && !cp.tiers[cp.links[t].lower].fits(o)):
		return fragment.Held
	case o.queuedOn&bit != 0:
		return fragment.Flushing
	default:
		return fragment.Dirty
	}
}

func (cp *copies) setClass(t int, f *fragment.Fragment[*Object], c fragment.Class) {
	tr := cp.tiers[t]
	if was := f.Class; was != c && (c == fragment.Free || was == fragment.Held || was == fragment.Flushing) && (c != fragment.Dirty || cp.isFlushable(f.Owner, t)) {
		cp.roomAppeared(t)
	}
	n := tr.within(f)
	tr.bytes[f.Class] -= n
	tr.bytes[c] += n
	f.Class = c
}

// isFlushable tells whether o's copy in tier t might make room by a flush.
func (cp *copies) isFlushable(o *Object, t int) bool {
	return t < len(cp.links) && !cp.links[t].refuses(cp.state, o)
}

// roomAppeared records that tier t may have room where it had none. Claims and flushes that waited for room are tried again, also in the tiers above,
// whose flushes tier t may have refused.
func (cp *copies) roomAppeared(t int) {
	cp.tiers[t].version++
	for k, l := range cp.links[:min(t, len(cp.links))] {
		if l.lower == t && len(l.refused) > 0 {
			l.retryRefused(boundless)
			cp.roomAppeared(k)
		}
	}
}

// place records that o's copy in tier t is in fragment id, and begins its life cycle there.
func (cp *copies) place(o *Object, t int, id fragment.ID, ev lifecycle.Event) {
	tr := cp.tiers[t]
	f := tr.table.At(id)
	tr.bytes[fragment.Gap] -= f.Size
	tr.bytes[fragment.Held] += f.Size // room is placed before the end of the tier
	f.Born, f.Touched, f.Expected, f.Lane = uint32(cp.count), o.touched, o.place(), o.lane()
	tr.table.Update(id)
	o.copies[t] = id
	cp.tellRoom(t, f.Offset, f.Size, true)
	cp.step(o, t, ev)
	cp.Stats.noteUsed(t, tr.used())
}

// tellRoom tells the caller that an object got room or gave it back.
func (cp *copies) tellRoom(t int, off, n int64, taken bool) {
	if cp.cfg.Room != nil {
		cp.cfg.Room(t, off, n, taken)
	}
}

// free gives back o's fragment in tier t and returns the gap that it leaves, if any.
func (cp *copies) free(o *Object, t int) fragment.ID {
	tr := cp.tiers[t]
	id := o.copies[t]
	f := tr.table.At(id)
	off, n := f.Offset, tr.within(f)
	cp.tellRoom(t, off, f.Size, false)
	tr.bytes[f.Class] -= n
	tr.bytes[fragment.Gap] += n
	if t < len(cp.links) {
		cp.links[t].dirty.set(o, false)
	}
	o.copies[t] = fragment.None
	cp.dependencies.releaseNeeded(o, t)
	o.forgetSize(t)
	spoiled := o.spoiled&(1<<t) != 0
	o.spoiled &^= 1 << t
	gap := tr.table.Free(id)
	cp.budgets.emptied(t, gap, off, n)
	if !spoiled { // a spoiled copy would be loaded again with the same result
		cp.objects.lookAgainFor(o, t)
	}
	if t == int(o.top) {
		for _, r := range o.Refs() {
			r.Hist.readyTo = min(r.Hist.readyTo, r.seq)
		}
	}
	if o != &o.home.own {
		o.home.duplicates--
	}
	cp.checkpoints.forget(o.home)
	return gap
}

// vacate gives back o's room in tier t, unless the caller's catalog keeps it reserved, and the rooms that were kept for o alone.
func (cp *copies) vacate(o *Object, t int) {
	if !cp.asksKeeper(t) {
		cp.free(o, t)
		return
	}
	if cp.cfg.Catalog.Keeps(o.home, t, cp.row(o, t).Offset) {
		cp.budgets.reserveRoom(o, t)
	} else {
		cp.free(o, t)
	}
	for off, n, ok := cp.cfg.Catalog.Freed(t); ok; off, n, ok = cp.cfg.Catalog.Freed(t) {
		cp.budgets.unreserve(t, off, n)
	}
}

// HasRoom tells whether o has room in tier t: its bytes are there, or on their way.
func (cp *copies) HasRoom(o *Object, t int) bool { return o.copies[t] != fragment.None }

// goesTo tells whether a version is being captured straight into tier t.
func (cp *copies) goesTo(r *Record, t int) bool {
	return slices.ContainsFunc(r.Objects(), func(o *Object) bool { return !o.captured && o.copies[t] != fragment.None })
}

// lower is the fastest tier below t with all bytes of o, or -1.
func (cp *copies) lower(o *Object, t int) int {
	for t++; t < len(cp.tiers); t++ {
		if cp.complete(o, t) {
			return t
		}
	}
	return -1
}

// pinnedBytes is how many bytes of tier t are being read, by leases and by copies out.
func (cp *copies) pinnedBytes(t int) (bytes int64) {
	tr := cp.tiers[t]
	for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
		if f := tr.table.At(id); f.Pins > 0 {
			bytes += tr.within(f)
		}
	}
	return bytes
}
