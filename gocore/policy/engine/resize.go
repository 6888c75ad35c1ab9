package engine

import (
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// A tier that shrinks takes nothing behind its new end any more. Drain frees the copies there: evictable ones at once, others after a flush if no
// lower tier has them, or when their readers and transfers have ended. Reach tells the progress. Captures pay nothing for it.

// leaving lists the objects behind the end of a tier that Drain has to look at.
type leaving struct {
	next  []*Object // for any step; the last one first, since memory is given back from the end
	dirty []*Object // for a flush, when few urgent flushes wait
}

// onNext and onDirty are the bits in Object.leaves for the two lists of tier t.
func onNext(t int) uint16  { return 1 << (2 * t) }
func onDirty(t int) uint16 { return 2 << (2 * t) }

func (l *leaving) add(list *[]*Object, on uint16, o *Object) {
	if o.leaves&on == 0 {
		o.leaves |= on
		*list = append(*list, o)
	}
}

func (l *leaving) take(list *[]*Object, on uint16) *Object {
	n := len(*list) - 1
	o := (*list)[n]
	(*list)[n] = nil
	*list = (*list)[:n]
	o.leaves &^= on
	return o
}

// look records that o's copy behind the end may be evicted, or has to be flushed.
func (l *leaving) look(o *Object, t int, c fragment.Class) {
	if c == fragment.Free || c == fragment.Promised || c == fragment.Dirty {
		l.add(&l.next, onNext(t), o)
	}
}

// behind tells whether a fragment ends behind the tier's end.
func (tr *tier) behind(f *fragment.Fragment[*Object]) bool { return f.Offset+f.Size > tr.Capacity }

// within is how many bytes of a fragment are before the tier's end.
func (tr *tier) within(f *fragment.Fragment[*Object]) int64 {
	return max(min(f.Size, tr.Capacity-f.Offset), 0)
}

// budgets changes how much room the tiers have, and which ranges of it: growth, shrinking, ranges that are given back or reserved.
type budgets struct {
	*state

	owed int // releases of room that the caller has under way
}

// Grow tells the engine that tier t has become larger: capacity is its new size in bytes.
func (bs *budgets) Grow(now int64, t int, capacity int64) {
	tr := bs.tiers[t]
	if capacity <= tr.Capacity {
		return
	}
	tr.table.Behind(func(id fragment.ID) bool { // the copy may stay, and be promised again
		if o := tr.table.At(id).Owner; !o.gone && o.next() != fragment.Unexpected {
			bs.objects.lookAgainFor(o, t)
		}
		return true
	})
	tr.resize(capacity)
	for _, s := range tr.retired {
		bs.retire(t, tr.table.First(), s.from, min(s.end, capacity))
	}
	bs.refit(now, t)
	bs.copies.roomAppeared(t)
	bs.makeProgress(now)
}

// Shrink makes tier t smaller. It must not be a durable one. Nothing is placed behind the new end, and
// Drain empties that part. Shrinking to the present capacity retries the failed flushes of the copies still behind the end.
func (bs *budgets) Shrink(now int64, t int, capacity int64) {
	tr := bs.tiers[t]
	if capacity = max(capacity, 0); capacity > tr.Capacity {
		return
	}
	tr.resize(capacity)
	tr.table.Behind(func(id fragment.ID) bool {
		f := tr.table.At(id)
		tr.leaving.look(f.Owner, t, f.Class)
		if f.Class == fragment.Flushing || f.Owner.stuckOn&(1<<t) != 0 {
			tr.leaving.add(&tr.leaving.dirty, onDirty(t), f.Owner)
		}
		return true
	})
	bs.refit(now, t)
	for i := 0; i < tr.claims.len(); i++ {
		if c := tr.claims.at(i); !c.over && !tr.fits(c.obj) && (c.below == nil || !c.below(now)) {
			c.deny(now, full(t, "%s wanted, and the tier has shrunk to %s", quantity.Exact(c.obj.Bytes(t)), quantity.Exact(capacity)))
		}
	}
	bs.makeProgress(now)
}

// refit updates the tiers above tier t for its capacity: copies that it is too small for cannot be flushed, copies that it has become large enough
// for can.
func (bs *budgets) refit(now int64, t int) {
	for _, l := range bs.links {
		if l.lower != t {
			continue
		}
		table, all := bs.tiers[l.upper].table, []*Object(nil)
		for id := table.First(); id != fragment.None; id = table.Next(id) {
			if f := table.At(id); f.Class != fragment.Gap && f.Owner != nil {
				all = append(all, f.Owner)
			}
		}
		for _, o := range all {
			if !bs.tiers[t].fits(o) {
				bs.flushes.unqueue(now, l, o)
			}
			bs.copies.updateCopy(now, o, l.upper)
			bs.objects.wakeAll(now, o)
		}
	}
}

// resize moves the end of the tier and updates the byte counts per class.
func (tr *tier) resize(capacity int64) {
	before := tr.Capacity
	recount := func() {
		tr.table.Behind(func(id fragment.ID) bool {
			f := tr.table.At(id)
			tr.Capacity = before
			tr.bytes[f.Class] -= tr.within(f)
			tr.Capacity = capacity
			tr.bytes[f.Class] += tr.within(f)
			return true
		})
	}
	if capacity > before {
		recount()
	}
	tr.bytes[fragment.Gap] += tr.table.Resize(capacity)
	if capacity < before {
		recount()
	}
	tr.Capacity, tr.hand = capacity, fragment.None
}

// Reach is where the memory of tier t may end: no fragment is behind it, and none will be.
func (bs *budgets) Reach(t int) int64 { return bs.tiers[t].table.Reach() }

// Behind is how many bytes of copies are still behind the end of tier t.
func (bs *budgets) Behind(t int) (bytes int64) {
	tr := bs.tiers[t]
	tr.table.Behind(func(id fragment.ID) bool {
		f := tr.table.At(id)
		bytes += f.Size - tr.within(f)
		return true
	})
	return bytes
}

// Stranded counts the copies behind the end of tier t that exist nowhere else and cannot be flushed, since no lower tier takes them.
func (bs *budgets) Stranded(t int) (records int, bytes int64) {
	tr := bs.tiers[t]
	tr.table.Behind(func(id fragment.ID) bool {
		if f := tr.table.At(id); f.Class == fragment.Dirty {
			records, bytes = records+1, bytes+f.Size
		}
		return true
	})
	return records, bytes
}

// Drain empties the part of tier t behind its end, in at most so many steps. The caller repeats it while Draining is true.
func (bs *budgets) Drain(now int64, t int, steps int) {
	// Without an eviction nothing has become possible for others, and makeProgress might put the same objects back on the list.
	if bs.drain(now, t, steps) {
		bs.makeProgress(now)
	}
}

func (bs *budgets) drain(now int64, t int, steps int) (evicted bool) {
	l := &bs.tiers[t].leaving
	for ; steps > 0 && bs.Draining(t); steps-- {
		if len(l.next) > 0 {
			evicted = bs.leave(now, l.take(&l.next, onNext(t)), t) || evicted
		} else {
			bs.flushOut(now, l.take(&l.dirty, onDirty(t)), t)
		}
	}
	return evicted
}

// Draining tells whether Drain has work now.
func (bs *budgets) Draining(t int) bool {
	l := &bs.tiers[t].leaving
	return len(l.next) > 0 || len(l.dirty) > 0 && t < len(bs.links) && bs.links[t].idles(bs.state)
}

// idles tells whether few enough urgent flushes wait: more must not delay those that a claim waits for.
func (l *link) idles(s *state) bool {
	return len(l.refused) == 0 && min(l.urgent.len(), l.queued-l.flushing) < 2*s.cfg.Workers
}

// leave moves a copy behind the end as far as it can go now, and tells whether it was evicted.
func (bs *budgets) leave(now int64, o *Object, t int) (evicted bool) {
	tr := bs.tiers[t]
	if o.gone || o.copies[t] == fragment.None {
		return false
	}
	switch f := bs.copies.row(o, t); {
	case !tr.behind(f):
	case f.Class == fragment.Promised:
		bs.Stats.BrokenPromises++
		bs.rooms.release(now, o, t)
	case f.Class == fragment.Free:
		bs.copies.step(o, t, lifecycle.Evict)
		bs.Stats.Tiers[t].Evicted += o.Bytes(t)
		bs.traceMove(now, Evicted, o, t, 0)
		bs.copies.free(o, t)
		return true
	case f.Class == fragment.Dirty:
		tr.leaving.add(&tr.leaving.dirty, onDirty(t), o)
	}
	return false
}

// flushOut makes the flush of a copy behind the end urgent.
func (bs *budgets) flushOut(now int64, o *Object, t int) {
	if !o.gone && o.copies[t] != fragment.None && bs.tiers[t].behind(bs.copies.row(o, t)) {
		bs.flushes.queueFlush(now, t, o, true)
	}
}

// Settled tells whether the copies behind the end of tier t stay there for now. They stay until the application releases them, or until room appears
// in a lower tier that has refused some of them.
func (bs *budgets) Settled(t int) bool {
	settled, moving := !bs.Draining(t), bs.progressing() // otherwise a load from there waits for room that leases take
	bs.tiers[t].table.Behind(func(id fragment.ID) bool {
		f := bs.tiers[t].table.At(id)
		switch {
		case f.Transfers > 0, f.State.Busy(), f.Class == fragment.Flushing, f.Owner.copying > 0:
			settled = settled && !moving
		case f.Class == fragment.Dirty:
			settled = settled && (t >= len(bs.links) || len(bs.links[t].refused) > 0)
		}
		return settled
	})
	return settled
}
