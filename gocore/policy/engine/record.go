package engine

import (
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
	"velocpy/gocore/policy/plan"
)

// Record is one version of one checkpoint. It exists until it has been dropped, replaced or consumed and the last reader of its bytes has gone.
type Record struct {
	Hist      *History
	Key       model.Key
	ID        uint64 // names this version, never reused
	Size      int64  // bytes of its slot
	Align     int64
	Version   *checkpoint.Version // what its bytes are; nil in simulations
	written   int64               // Engine.count at its capture: the order of writing
	seq       int64               // place in the restore order, or fragment.Unexpected
	place     int64               // of seq on the axis of intervals, or fragment.Unexpected
	touched   int64
	ref       plan.Ref // in its history's records, while it is the checkpoint of its key
	copies    [MaxTiers]fragment.ID
	dirtyAt   [MaxTiers - 1]int32 // index in the link's heap of dirty records, or -1
	queuedOn  uint8               // bit k: a flush over link k is queued or running
	runs      uint8               // bit k: it is running
	loadRuns  uint8               // bit k: a load over link k is running
	verifying bool                // its copy in the fastest tier is being verified, and MarkUnverified has not been called since
	loadsOn   uint8               // bit k: a load over link k has been asked for (it may wait for room) or runs
	stuckOn   uint8               // bit k: the flush over link k failed
	wants     uint8               // bit t: a caller wants it durable in tier t soon
	top       uint8               // its fastest tier: a private one, or the first shared one
	leaves    uint16              // the lists of leaving that it is on, two for each tier
	copying   int32               // restores that copy out of its fastest tier
	captured  bool
	gone      bool
	hidden    bool  // Lend hides it
	spoiled   uint8 // bit t: its copy in tier t is not what was captured; it is freed when the last reader has gone
	failed    error // why its capture or its latest flush failed
}

// Top is the fastest tier that the record may be in.
func (r *Record) Top() int { return int(r.top) }

// uses tells whether r may be in tier t: its fastest, or any shared tier below.
func (e *Engine) uses(r *Record, t int) bool {
	return t == int(r.top) || t > int(r.top) && !e.tiers[t].Private
}

// Written orders records by the time of their capture.
func (r *Record) Written() int64 { return r.written }

// Shown tells whether the version is the checkpoint of its key.
func (r *Record) Shown() bool { return r.ref != plan.Nobody }

// Gone tells whether the version has been dropped, replaced or consumed.
func (r *Record) Gone() bool { return r.gone }

// Lent tells whether the version is hidden: it was lent to one caller for the last time, and that caller has not used it yet.
func (r *Record) Lent() bool { return r.hidden }

// Captured tells whether all bytes have been taken from the source.
func (r *Record) Captured() bool { return r.captured }

// Failed is why the capture or the latest flush failed, or nil.
func (r *Record) Failed() error { return r.failed }

// newRecord returns a record with a fresh ID. The low half is its slot, the high half the slot's generation.
func (e *Engine) newRecord(h *History, k model.Key, size, align int64, v *checkpoint.Version) *Record {
	r := &Record{Hist: h, Key: k, Size: max(size, 1), Align: align, Version: v, seq: fragment.Unexpected, place: fragment.Unexpected}
	for i := range r.copies {
		r.copies[i] = fragment.None
	}
	for i := range r.dirtyAt {
		r.dirtyAt[i] = -1
	}
	e.count++
	r.written, r.touched = e.count, e.count
	if n := len(e.vacant); n > 0 {
		slot := e.vacant[n-1]
		e.vacant = e.vacant[:n-1]
		r.ID = uint64(e.count&0xffffffff)<<32 | uint64(slot)
		e.slots[slot] = r
		return r
	}
	r.ID = uint64(e.count&0xffffffff)<<32 | uint64(len(e.slots))
	e.slots = append(e.slots, r)
	return r
}

// Record finds a version by its ID; nil when it is gone and has no reader any more.
func (e *Engine) Record(id uint64) *Record {
	if slot := id & 0xffffffff; slot < uint64(len(e.slots)) {
		if r := e.slots[slot]; r != nil && r.ID == id {
			return r
		}
	}
	return nil
}

// Complete tells whether tier t holds all bytes of r.
func (e *Engine) Complete(r *Record, t int) bool {
	id := r.copies[t]
	return id != fragment.None && r.spoiled&(1<<t) == 0 && e.tiers[t].table.At(id).State.HasBytes()
}

// Fastest is the fastest tier with all bytes of r, or -1.
func (e *Engine) Fastest(r *Record) int {
	for t := range e.tiers {
		if e.Complete(r, t) {
			return t
		}
	}
	return -1
}

// Fragment is the row of r's copy in tier t. There must be one.
func (e *Engine) Fragment(r *Record, t int) *fragment.Fragment[*Record] {
	return e.tiers[t].table.At(r.copies[t])
}

// step takes the copy of r in tier t through one transition of its life cycle. A transition that the state machine forbids is a defect of the engine.
// It panics, and the core turns the panic into a clean failure of every later call.
func (e *Engine) step(r *Record, t int, ev lifecycle.Event) {
	f := e.Fragment(r, t)
	next, err := f.State.Next(ev)
	if err != nil {
		panic("engine: " + r.Hist.Name + "/" + r.Key.String() + " in " + e.tiers[t].Name + ": " + err.Error())
	}
	f.State = next
}

// updateCopy updates the class of r's copy in tier t, and the state that depends on it. The copy of a record that is gone, or a spoiled copy, is freed as
// soon as it has no reader and no transfer.
func (e *Engine) updateCopy(now int64, r *Record, t int) {
	id := r.copies[t]
	if id == fragment.None {
		return
	}
	f := e.tiers[t].table.At(id)
	if r.gone || r.spoiled&(1<<t) != 0 {
		if f.Pins == 0 && f.Transfers == 0 {
			e.vacate(r, t)
			return
		}
		e.setClass(t, f, fragment.Held)
		e.tiers[t].table.Update(id)
		if t < len(e.links) {
			e.links[t].dirty.set(r, false)
		}
		return
	}
	f.Expected, f.Touched, f.Lane = r.place, r.touched, r.Hist.lane
	e.setClass(t, f, e.classify(r, t, f))
	e.tiers[t].table.Update(id)
	if t < len(e.links) {
		e.links[t].setDirty(e, r, f.Class == fragment.Dirty)
	}
	if e.tiers[t].behind(f) {
		e.tiers[t].leaving.look(r, t, f.Class)
	}
}

func (e *Engine) classify(r *Record, t int, f *fragment.Fragment[*Record]) fragment.Class {
	bit := uint8(1) << t
	switch {
	case f.Pins > 0:
		return fragment.Held
	case f.State == lifecycle.ReadComplete && f.Transfers == 0:
		return fragment.Promised
	case f.State.Evictable() && f.Transfers == 0 && !e.tiers[t].retires(f):
		return fragment.Free
	case f.State != lifecycle.WriteComplete || r.stuckOn&bit != 0 || (t < len(e.links) && !e.tiers[e.links[t].lower].fits(r)):
		return fragment.Held
	case r.queuedOn&bit != 0:
		return fragment.Flushing
	default:
		return fragment.Dirty
	}
}

func (e *Engine) setClass(t int, f *fragment.Fragment[*Record], c fragment.Class) {
	tr := e.tiers[t]
	if was := f.Class; was != c && (c == fragment.Free || was == fragment.Held || was == fragment.Flushing) && (c != fragment.Dirty || e.isFlushable(f.Owner, t)) {
		e.roomAppeared(t)
	}
	n := tr.within(f)
	tr.bytes[f.Class] -= n
	tr.bytes[c] += n
	f.Class = c
}

// isFlushable tells whether r's copy in tier t might make room by a flush.
func (e *Engine) isFlushable(r *Record, t int) bool {
	return t < len(e.links) && !e.links[t].refuses(e, r)
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

// place records that r's copy in tier t is in fragment id, and begins its life cycle there.
func (e *Engine) place(r *Record, t int, id fragment.ID, ev lifecycle.Event) {
	tr := e.tiers[t]
	f := tr.table.At(id)
	tr.bytes[fragment.Gap] -= f.Size
	tr.bytes[fragment.Held] += f.Size // room is placed before the end of the tier
	f.Born, f.Touched, f.Expected, f.Lane = uint32(e.count), r.touched, r.place, r.Hist.lane
	tr.table.Update(id)
	r.copies[t] = id
	e.tellRoom(t, f.Offset, f.Size, true)
	e.step(r, t, ev)
	e.Stats.noteUsed(t, tr.used())
}

// tellRoom tells the caller that a record got room or gave it back.
func (e *Engine) tellRoom(t int, off, n int64, taken bool) {
	if e.cfg.Room != nil {
		e.cfg.Room(t, off, n, taken)
	}
}

// free gives back r's fragment in tier t and returns the gap that it leaves, if any.
func (e *Engine) free(r *Record, t int) fragment.ID {
	tr := e.tiers[t]
	id := r.copies[t]
	f := tr.table.At(id)
	off, n := f.Offset, tr.within(f)
	e.tellRoom(t, off, f.Size, false)
	tr.bytes[f.Class] -= n
	tr.bytes[fragment.Gap] += n
	if t < len(e.links) {
		e.links[t].dirty.set(r, false)
	}
	r.copies[t] = fragment.None
	spoiled := r.spoiled&(1<<t) != 0
	r.spoiled &^= 1 << t
	gap := tr.table.Free(id)
	e.emptied(t, gap, off, n)
	if h := r.Hist; !r.gone {
		if !spoiled { // a spoiled copy would be loaded again with the same result
			e.lookAgain(h, t, r.seq)
		}
		if t == int(r.top) {
			h.readyTo = min(h.readyTo, r.seq)
		}
	}
	e.forget(r)
	return gap
}

// forget gives back the slot of a record that is gone and has bytes in no tier.
func (e *Engine) forget(r *Record) {
	if !r.gone {
		return
	}
	for t := range e.tiers {
		if r.copies[t] != fragment.None {
			return
		}
	}
	if slot := uint32(r.ID); e.slots[slot] == r {
		e.slots[slot] = nil
		e.vacant = append(e.vacant, slot)
		if e.cfg.Forget != nil {
			e.cfg.Forget(r)
		}
	}
}

// touch records that r is being restored.
func (e *Engine) touch(r *Record) {
	e.count++
	r.touched = e.count
	for t, id := range r.copies[:len(e.tiers)] {
		if id != fragment.None {
			e.tiers[t].table.At(id).Touched = r.touched
			e.tiers[t].table.Update(id)
			if t < len(e.links) {
				e.links[t].dirty.moved(r)
			}
		}
	}
}

// expect sets where the restore order needs r next.
func (e *Engine) expect(r *Record, seq int64) {
	if r.seq == seq {
		return
	}
	switch fragment.Unexpected {
	case r.seq:
		r.Hist.sweep.awaited++
	case seq:
		r.Hist.sweep.awaited--
	}
	r.seq, r.place = seq, fragment.Unexpected
	if seq != fragment.Unexpected {
		r.place = r.Hist.order.Place(seq)
	}
	for t := range e.tiers {
		if id := r.copies[t]; id != fragment.None {
			e.tiers[t].table.At(id).Expected = r.place
			e.tiers[t].table.Update(id)
			if t < len(e.links) {
				e.links[t].dirty.moved(r)
			}
		}
	}
}
