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
func (e *Engine) Reserve(t int, ranges func(yield func(from, end int64) bool)) {
	tr := e.tiers[t]
	gap := tr.table.First()
	for from, end := range ranges {
		var id fragment.ID
		id, gap = tr.table.PlaceFrom(gap, from, end-from, nil)
		tr.bytes[fragment.Gap] -= end - from
		tr.bytes[fragment.Held] += end - from
		tr.reserved.Set(from, id)
	}
	e.Stats.noteUsed(t, tr.used())
}

// Written is the number of the latest capture; later captures have larger ones.
func (e *Engine) Written() int64 { return e.count }

// Renumber gives a record the next capture number: larger than those of earlier captures, smaller than those of later ones.
func (e *Engine) Renumber(r *Record) int64 {
	e.count++
	r.written = e.count
	return e.count
}

// Redo takes the place of Done for a flush whose bytes cannot be found where they were written, although writing them elsewhere may help. The flush
// is repeated.
func (e *Engine) Redo(now int64, x *Transfer) {
	e.ended(x)
	o := x.Obj
	e.endFlush(x)
	e.step(o, x.To, lifecycle.Abort)
	e.vacate(o, x.To)
	e.updateCopy(now, o, x.From)
	e.queueFlush(now, x.From, o, true)
	e.wakeAll(now, o)
	e.makeProgress(now)
}

// Flushes tells whether a flush of o's copy in tier t is under way.
func (e *Engine) Flushes(o *Object, t int) bool { return o.runs&(1<<t) != 0 }

// CanFlushFirst tells whether FlushFirst helps: what the object of a flush needs can go to the tier first. Each object asks for that once.
func (e *Engine) CanFlushFirst(of *Object, x *Transfer) bool {
	l := e.links[x.From]
	return !of.gone && !x.Obj.asked() && !l.refuses(e, of) && e.complete(of, x.From) && e.lower(of, x.From) < 0
}

// FlushFirst takes the place of Done for a flush that is better carried out behind that of what its object needs. It is repeated behind that.
func (e *Engine) FlushFirst(now int64, x *Transfer) {
	o := x.Obj
	if of := o.Source(x.From); of != nil {
		o.more.needs.asked = true
		e.queueFlush(now, x.From, of, true)
	}
	e.Redo(now, x)
}

// Continue makes the engine count its captures from where an earlier engine stopped.
func (e *Engine) Continue(written int64) { e.count = max(e.count, written) }

// ContinueKeys sets the number at which the automatic keys of a history begin.
func (h *History) ContinueKeys(auto int64) { h.auto = max(h.auto, auto) }

// Adopt makes a record of a checkpoint whose room is reserved, and which is the current one of its key.
func (e *Engine) Adopt(h *History, k model.Key, s Stored) *Record {
	t := s.Tier
	tr := e.tiers[t]
	id, ok := tr.reserved.at(tr, s.Offset)
	if !ok {
		panic("engine: a checkpoint was to be adopted whose room is not reserved")
	}
	r := e.newRecord(h, k, s.Size, s.Align, s.Version)
	o := &r.own
	r.written, r.top, o.top, o.captured = s.Written, uint8(s.Top), uint8(s.Top), true
	if o.reform(s.Shape); s.Shape != nil {
		o.shape().known = 1<<MaxTiers - 1
	}
	id = tr.cutFrom(&tr.reserved, id, s.Offset, tr.extent(o))
	f := tr.table.At(id)
	f.Owner, f.State, f.Born = o, lifecycle.Init, uint32(s.Written)
	o.copies[t] = id
	e.step(o, t, lifecycle.BeginWrite)
	e.step(o, t, lifecycle.WriteDone)
	h.records.put(r)
	if seq, ok := h.order.Seq(k); ok {
		e.expect(r, seq)
	}
	e.updateCopy(0, o, t)
	return r
}

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

// vacate gives back o's room in tier t, unless the caller's catalog keeps it reserved, and the rooms that were kept for o alone.
func (e *Engine) vacate(o *Object, t int) {
	if !e.asksKeeper(t) {
		e.free(o, t)
		return
	}
	if e.cfg.Catalog.Keeps(o.home, t, e.row(o, t).Offset) {
		e.reserveRoom(o, t)
	} else {
		e.free(o, t)
	}
	for off, n, ok := e.cfg.Catalog.Freed(t); ok; off, n, ok = e.cfg.Catalog.Freed(t) {
		e.unreserve(t, off, n)
	}
}

// reserveRoom takes o's room in tier t from it. The room stays reserved.
func (e *Engine) reserveRoom(o *Object, t int) {
	tr, id := e.tiers[t], o.copies[t]
	f := tr.table.At(id)
	e.setClass(t, f, fragment.Held)
	f.Owner, f.State, f.Expected, f.Pins, f.Transfers, f.Verified = nil, lifecycle.Init, fragment.Unexpected, 0, 0, false
	tr.table.Update(id)
	tr.reserved.Set(f.Offset, id)
	if t < len(e.links) {
		e.links[t].dirty.set(o, false)
	}
	o.copies[t] = fragment.None
	e.forget(o.home)
}

// Release gives back the room of a checkpoint in durable tier t that the catalog does not refer to any more. It returns false while a record has the
// room: then that record gives it back.
func (e *Engine) Release(now int64, t int, off, size int64) bool {
	if !e.unreserve(t, off, size) {
		return false
	}
	e.makeProgress(now)
	return true
}

// IsReserved tells whether the room at an offset of tier t is reserved: no record has it.
func (e *Engine) IsReserved(t int, off int64) bool {
	_, ok := e.tiers[t].reserved.at(e.tiers[t], off)
	return ok
}

func (e *Engine) unreserve(t int, off, size int64) bool {
	tr := e.tiers[t]
	id, ok := tr.reserved.at(tr, off)
	if !ok {
		return false
	}
	g := max(tr.Grain, 1)
	id = tr.cutFrom(&tr.reserved, id, off, (max(size, 1)+g-1)/g*g)
	n := tr.within(tr.table.At(id))
	tr.bytes[fragment.Held] -= n
	tr.bytes[fragment.Gap] += n
	e.emptied(t, tr.table.Free(id), off, n)
	return true
}

// ExpectReleases changes the number of releases that the caller has under way. Claims that wait for room in a durable tier wait for
// them.
func (e *Engine) ExpectReleases(now int64, n int) {
	none := e.owed == 0
	e.owed += n
	if none != (e.owed == 0) { // refused flushes may wait again, or waiting ones have nothing left to wait for
		for t, tr := range e.tiers {
			if tr.Durable {
				e.roomAppeared(t)
			}
		}
	}
	if n < 0 {
		e.makeProgress(now)
	}
}
