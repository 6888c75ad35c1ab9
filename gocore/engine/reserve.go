package engine

import (
	"velocpy/gocore/fragment"
	"velocpy/gocore/lifecycle"
	"velocpy/gocore/plan"

	"github.com/tidwall/btree"
)

// A tier may outlive the engine, and its caller keep a catalog of what lies there. Room that the catalog still counts on, and no record has, is
// reserved: it is in the table, without an owner. So a version can stay until the one that replaces it is in the catalog too, and a checkpoint of an
// earlier process becomes a record only when somebody asks for it.

// Settled is a checkpoint that lies in the last tier, and that the catalog knows.
type Settled struct {
	Size, Align, Offset int64
	Top                 int   // the fastest tier that it may lie in
	Written             int64 // by Record.Written of the engine that captured it
	Body                any
}

// reserved finds the reserved fragments of a tier by their offsets.
type reserved struct {
	btree.Map[int64, fragment.ID]
}

// at is the reserved fragment that has the byte at off.
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

// Reserve notes, before anything else, that the caller's catalog counts on ranges of tier t, which must ascend and neither touch nor leave the tier.
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
	e.Stats.noteUsed(t, tr.table.Used())
}

// Written is the number of the latest capture: those to come have larger ones.
func (e *Engine) Written() int64 { return e.count }

// Renumber gives a record the next number of a capture: it is larger than those of all before, and smaller than those to come.
func (e *Engine) Renumber(r *Record) int64 {
	e.count++
	r.written = e.count
	return e.count
}

// Redo takes the place of Done for a flush whose bytes nobody will find where they were written, although writing elsewhere may help: it is done again.
func (e *Engine) Redo(now int64, x *Transfer) {
	e.running--
	rec := x.Rec
	e.endFlush(x)
	e.step(rec, x.To, lifecycle.Abort)
	e.vacate(rec, x.To)
	e.settle(now, rec, x.From)
	e.queueFlush(now, x.From, rec, true)
	e.wakeWaits(now, rec)
	e.pump(now)
}

// Continue makes the engine count its captures from where an earlier one has stopped, and automatic keys of a history begin at one.
func (e *Engine) Continue(written int64) { e.count = max(e.count, written) }

// ContinueKeys makes the automatic keys of a history begin at a number.
func (h *History) ContinueKeys(auto int64) { h.auto = max(h.auto, auto) }

// Adopt makes a record of a checkpoint whose room is reserved, and which is that of its key.
func (e *Engine) Adopt(h *History, k plan.Key, s Settled) *Record {
	t := len(e.tiers) - 1
	tr := e.tiers[t]
	id, ok := tr.reserved.at(tr, s.Offset)
	if !ok {
		panic("engine: a checkpoint was to be adopted whose room is not reserved")
	}
	r := e.newRecord(h, k, s.Size, s.Align, s.Body)
	r.written, r.top, r.captured = s.Written, uint8(s.Top), true
	id = e.cutReserved(t, id, s.Offset, tr.extent(r))
	f := tr.table.At(id)
	f.Owner, f.State, f.Born = r, lifecycle.Init, uint32(s.Written)
	r.copies[t] = id
	e.step(r, t, lifecycle.BeginWrite)
	e.step(r, t, lifecycle.WriteDone)
	h.records.put(r)
	if seq, ok := h.order.Seq(k); ok {
		e.expect(r, seq)
	}
	e.settle(0, r, t)
	return r
}

// Wrote tells the restore order of a history that a checkpoint was written; for those that are adopted before anything else, in the order of their writing.
func (h *History) Wrote(k plan.Key) { h.order.Written(k) }

// cutReserved takes a range out of what is reserved, as a fragment of its own.
func (e *Engine) cutReserved(t int, id fragment.ID, off, size int64) fragment.ID {
	tr := e.tiers[t]
	start := tr.table.At(id).Offset
	part, behind := tr.table.Cut(id, off, size)
	if part == id {
		tr.reserved.Delete(start)
	}
	if behind != fragment.None {
		tr.reserved.Set(tr.table.At(behind).Offset, behind)
	}
	return part
}

// vacate gives r's room in tier t back, unless the caller's catalog counts on it.
func (e *Engine) vacate(r *Record, t int) {
	if e.cfg.Keep == nil || t != len(e.tiers)-1 || !e.cfg.Keep(r) {
		e.free(r, t)
		return
	}
	tr := e.tiers[t]
	id := r.copies[t]
	f := tr.table.At(id)
	e.setClass(t, f, fragment.Held)
	f.Owner, f.State, f.Seq, f.Pins, f.Transfers, f.Verified = nil, lifecycle.Init, fragment.Unexpected, 0, 0, false
	tr.table.Update(id)
	tr.reserved.Set(f.Offset, id)
	r.copies[t] = fragment.None
	e.forget(r)
}

// Release gives the room of a checkpoint in the last tier back that the catalog does not count on any more. While a record has it, it is that record's
// to give back: false.
func (e *Engine) Release(now, off, size int64) bool {
	t := len(e.tiers) - 1
	tr := e.tiers[t]
	id, ok := tr.reserved.at(tr, off)
	if !ok {
		return false
	}
	g := max(tr.Grain, 1)
	id = e.cutReserved(t, id, off, (max(size, 1)+g-1)/g*g)
	n := tr.within(tr.table.At(id))
	tr.bytes[fragment.Held] -= n
	tr.bytes[fragment.Gap] += n
	e.emptied(t, tr.table.Free(id), off, n)
	e.pump(now)
	return true
}

// Owe tells how many more releases the caller has under way, or fewer: who waits for room there waits for them.
func (e *Engine) Owe(now int64, n int) {
	none := e.owed == 0
	e.owed += n
	if none != (e.owed == 0) { // flushes that were refused may wait again, or those that wait have nothing to wait for
		e.roomier(len(e.tiers) - 1)
	}
	if n < 0 {
		e.pump(now)
	}
}

// Retire reserves a range of the last tier for good, and returns how many bytes of it were free. What others have there follows when they give it
// back.
func (e *Engine) Retire(from, end int64) (bytes int64) {
	t := len(e.tiers) - 1
	tr := e.tiers[t]
	end = min(end, tr.Capacity)
	tr.retired = append(tr.retired, span{from, end})
	return e.retire(t, tr.table.First(), from, end)
}

// span is a range of a tier's bytes.
type span struct{ from, end int64 }

// retire reserves what is free of a range, which does not begin before the fragment id.
func (e *Engine) retire(t int, id fragment.ID, from, end int64) (bytes int64) {
	tr := e.tiers[t]
	for ; id != fragment.None && tr.table.At(id).Offset < end; id = tr.table.Next(id) {
		f := tr.table.At(id)
		a, b := max(f.Offset, from), min(f.Offset+f.Size, end)
		if f.Class != fragment.Gap || a >= b {
			continue
		}
		id, _ = tr.table.PlaceFrom(id, a, b-a, nil)
		tr.bytes[fragment.Gap] -= b - a
		tr.bytes[fragment.Held] += b - a
		tr.reserved.Set(a, id)
		bytes += b - a
	}
	return bytes
}

// emptied notes that bytes of tier t have been given back, which lie in a gap now: what is retired of them goes to nobody.
func (e *Engine) emptied(t int, gap fragment.ID, off, size int64) {
	tr := e.tiers[t]
	tr.hand = gap
	for _, s := range tr.retired {
		e.retire(t, gap, max(s.from, off), min(s.end, off+size))
	}
	e.roomier(t)
}
