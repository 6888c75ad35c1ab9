package engine

import (
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"

	"github.com/tidwall/btree"
)

// A durable tier outlives the engine, and its caller keeps a catalog of the checkpoints in it. Room that the catalog refers to, and that no record
// has, is reserved: it is in the table without an owner. So a version can stay until its replacement is in the catalog too. And a checkpoint of an
// earlier process becomes a record only when an operation asks for it.

// Stored is a checkpoint in a durable tier that the catalog lists.
type Stored struct {
	Tier                int
	Size, Align, Offset int64
	Top                 int   // the fastest tier that it may be in
	Written             int64 // Record.Written of the engine that captured it
	Version             *checkpoint.Version
	Shape               *Shape // how it is kept in each tier; its sizes are exact. nil: raw everywhere
}

// reserved finds fragments without an owner by their offsets.
type reserved struct {
	btree.Map[int64, fragment.ID]
}

// at is the fragment that contains the byte at off.
func (rs *reserved) at(tr *tier, off int64) (id fragment.ID, ok bool) {
	rs.Descend(off, func(_ int64, found fragment.ID) bool {
		id, ok = found, true
		return false
	})
	if !ok {
		return fragment.None, false
	}
	f := tr.table.At(id)
	return id, off < f.Offset+f.Size
}

// Reserve tells the engine, before anything else, which ranges of tier t the caller's catalog refers to. They must ascend, must not touch each other,
// and must be inside the tier.
func (bs *budgets) Reserve(t int, ranges func(yield func(from, end int64) bool)) {
	tr := bs.tiers[t]
	gap := tr.table.First()
	for from, end := range ranges {
		var id fragment.ID
		id, gap = tr.table.PlaceFrom(gap, from, end-from, nil)
		tr.bytes[fragment.Gap] -= end - from
		tr.bytes[fragment.Held] += end - from
		tr.reserved.Set(from, id)
	}
	bs.Stats.noteUsed(t, tr.used())
}

// Written is the number of the latest capture; later captures have larger ones.
func (s *state) Written() int64 { return s.count }

// Continue makes the engine count its captures from where an earlier engine stopped.
func (s *state) Continue(written int64) { s.count = max(s.count, written) }

// ContinueKeys sets the number at which the automatic keys of a history begin.
func (h *History) ContinueKeys(auto int64) { h.auto = max(h.auto, auto) }

// Wrote tells the restore order of a history that a checkpoint was written. It is for checkpoints that are adopted before anything else, in the order
// of their writing.
func (h *History) Wrote(k model.Key) { h.order.Written(k) }

// cutFrom takes a range out of a list of reserved fragments, as a fragment of its own.
func (tr *tier) cutFrom(rs *reserved, id fragment.ID, off, size int64) fragment.ID {
	start := tr.table.At(id).Offset
	part, behind := tr.table.Cut(id, off, size)
	if part == id {
		rs.Delete(start)
	}
	if behind != fragment.None {
		rs.Set(tr.table.At(behind).Offset, behind)
	}
	return part
}

// reserveRoom takes o's room in tier t from it. The room stays reserved.
func (bs *budgets) reserveRoom(o *Object, t int) {
	tr, id := bs.tiers[t], o.copies[t]
	f := tr.table.At(id)
	bs.copies.setClass(t, f, fragment.Held)
	f.Owner, f.State, f.Expected, f.Pins, f.Transfers, f.Verified = nil, lifecycle.Init, fragment.Unexpected, 0, 0, false
	tr.table.Update(id)
	tr.reserved.Set(f.Offset, id)
	if t < len(bs.links) {
		bs.links[t].dirty.set(o, false)
	}
	o.copies[t] = fragment.None
	bs.checkpoints.forget(o.home)
}

// Release gives back the room of a checkpoint in durable tier t that the catalog does not refer to any more. It returns false while a record has the
// room: then that record gives it back.
func (bs *budgets) Release(now int64, t int, off, size int64) bool {
	if !bs.unreserve(t, off, size) {
		return false
	}
	bs.makeProgress(now)
	return true
}

// IsReserved tells whether the room at an offset of tier t is reserved: no record has it.
func (bs *budgets) IsReserved(t int, off int64) bool {
	_, ok := bs.tiers[t].reserved.at(bs.tiers[t], off)
	return ok
}

func (bs *budgets) unreserve(t int, off, size int64) bool {
	tr := bs.tiers[t]
	id, ok := tr.reserved.at(tr, off)
	if !ok {
		return false
	}
	g := max(tr.Grain, 1)
	id = tr.cutFrom(&tr.reserved, id, off, (max(size, 1)+g-1)/g*g)
	n := tr.within(tr.table.At(id))
	tr.bytes[fragment.Held] -= n
	tr.bytes[fragment.Gap] += n
	bs.emptied(t, tr.table.Free(id), off, n)
	return true
}

// ExpectReleases changes the number of releases that the caller has under way. Claims that wait for room in a durable tier wait for
// them.
func (bs *budgets) ExpectReleases(now int64, n int) {
	none := bs.owed == 0
	bs.owed += n
	if none != (bs.owed == 0) { // refused flushes may wait again, or waiting ones have nothing left to wait for
		for t, tr := range bs.tiers {
			if tr.Durable {
				bs.copies.roomAppeared(t)
			}
		}
	}
	if n < 0 {
		bs.makeProgress(now)
	}
}
