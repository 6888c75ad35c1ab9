package engine

import (
	"slices"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
	"velocpy/gocore/policy/plan"
)

// Record is one version of one checkpoint, and refers to the objects that hold its bytes. It exists until it has been dropped, replaced or consumed and
// the last reader of its bytes has gone.
type Record struct {
	Hist       *History
	Key        model.Key
	ID         uint64 // names this version, never reused
	Size       int64  // bytes of the checkpoint
	Align      int64
	Version    *checkpoint.Version // what its bytes are; nil in simulations
	written    int64               // state.count at its capture: the order of writing
	seq        int64               // place in the restore order, or fragment.Unexpected
	place      int64               // of seq on the axis of intervals, or fragment.Unexpected
	ref        plan.Ref            // in its history's records, while it is the checkpoint of its key
	top        uint8               // the fastest tier that it may be in: a private one, or the first shared one
	gone       bool
	hidden     bool   // Lend hides it
	streamed   bool   // a restore has streamed it past the cache
	duplicates uint8  // second places of its own object (relocate.go)
	own        Object // what its capture placed; part of the record, so that a checkpoint costs one allocation
}

// Objects are what the checkpoint consists of, in the order in which a restore needs them.
func (r *Record) Objects() []*Object {
	if r.own.more != nil && r.own.more.chain != nil {
		return r.own.more.chain
	}
	return []*Object{&r.own}
}

// isWhole tells whether the checkpoint is its own object, and nothing else.
func (r *Record) isWhole() bool { return r.own.more == nil || r.own.more.chain == nil }

// Top is the fastest tier that the record may be in.
func (r *Record) Top() int { return int(r.top) }

// Written orders records by the time of their capture.
func (r *Record) Written() int64 { return r.written }

// Shown tells whether the version is the checkpoint of its key.
func (r *Record) Shown() bool { return r.ref != plan.Nobody }

// Gone tells whether the version has been dropped, replaced or consumed.
func (r *Record) Gone() bool { return r.gone }

// Lent tells whether the version is hidden: it was lent to one caller for the last time, and that caller has not used it yet.
func (r *Record) Lent() bool { return r.hidden }

// Captured tells whether all bytes have been taken from the source.
func (r *Record) Captured() bool {
	for _, o := range r.Objects() {
		if !o.captured {
			return false
		}
	}
	return true
}

// Failed is why the capture or the latest flush failed, or nil.
func (r *Record) Failed() error {
	for _, o := range r.Objects() {
		if err := o.failed(); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints makes the records of checkpoints, finds them by their numbers and removes them.
type checkpoints struct {
	*state

	slots  []*Record
	vacant []uint32
	owners *History // of objects without a checkpoint; nil: there were none
}

// newRecord returns a record with an object of its own, and a fresh ID. The low half is its slot, the high half the slot's generation.
func (ck *checkpoints) newRecord(h *History, k model.Key, size, align int64, v *checkpoint.Version) *Record {
	ck.count++
	r := &Record{Hist: h, Key: k, Size: max(size, 1), Align: align, Version: v, seq: fragment.Unexpected, place: fragment.Unexpected, written: ck.count}
	r.own.init(r, ck.count)
	if n := len(ck.vacant); n > 0 {
		slot := ck.vacant[n-1]
		ck.vacant = ck.vacant[:n-1]
		r.ID = uint64(ck.count&0xffffffff)<<32 | uint64(slot)
		ck.slots[slot] = r
		return r
	}
	r.ID = uint64(ck.count&0xffffffff)<<32 | uint64(len(ck.slots))
	ck.slots = append(ck.slots, r)
	return r
}

// Record finds a version by its ID; nil when it is gone and has no reader any more.
func (ck *checkpoints) Record(id uint64) *Record {
	if slot := id & 0xffffffff; slot < uint64(len(ck.slots)) {
		if r := ck.slots[slot]; r != nil && r.ID == id {
			return r
		}
	}
	return nil
}

// Complete tells whether tier t holds all bytes of r.
func (ck *checkpoints) Complete(r *Record, t int) bool {
	for _, o := range r.Objects() {
		if !ck.copies.complete(o, t) {
			return false
		}
	}
	return true
}

// Fastest is the fastest tier with all bytes of r, or -1.
func (ck *checkpoints) Fastest(r *Record) int {
	for t := range ck.tiers {
		if ck.Complete(r, t) {
			return t
		}
	}
	return -1
}

// mayRead tells whether restores of r may find its bytes in tier t: its fastest, or any shared tier below.
func (ck *checkpoints) mayRead(r *Record, t int) bool {
	return t == int(r.top) || t > int(r.top) && !ck.tiers[t].Private
}

// below tells whether tiers below t have all bytes of rec.
func (ck *checkpoints) below(rec *Record, t int) bool {
	return !slices.ContainsFunc(rec.Objects(), func(o *Object) bool { return ck.copies.lower(o, t) < 0 })
}

// Fragment is the row of r's copy in tier t, for a checkpoint that is one object. There must be one.
func (ck *checkpoints) Fragment(r *Record, t int) *fragment.Fragment[*Object] {
	return ck.copies.row(r.Objects()[0], t)
}

// forget gives back the slot of a record that is gone, once no tier holds bytes of its own object.
func (ck *checkpoints) forget(r *Record) {
	if !r.gone || !r.own.gone || r.duplicates > 0 || ck.copies.hasAnyRoom(&r.own) {
		return
	}
	if slot := uint32(r.ID); ck.slots[slot] == r {
		ck.slots[slot] = nil
		ck.vacant = append(ck.vacant, slot)
		if ck.cfg.Forget != nil {
			ck.cfg.Forget(r)
		}
	}
}

// touch records that r is being restored.
func (ck *checkpoints) touch(r *Record) {
	ck.count++
	for _, o := range r.Objects() {
		o.touched = ck.count
		ck.objects.reweigh(o)
	}
}

// expect sets where the restore order needs r next.
func (ck *checkpoints) expect(r *Record, seq int64) {
	if r.seq == seq {
		return
	}
	switch fragment.Unexpected {
	case r.seq:
		r.Hist.sweep.awaited++
	case seq:
		r.Hist.sweep.awaited--
	}
	if r.seq, r.place = seq, fragment.Unexpected; seq != fragment.Unexpected {
		r.place = r.Hist.order.Place(seq)
	}
	for _, o := range r.Objects() {
		ck.objects.reexpect(o, r)
	}
}

// capturedBytes is how many bytes the capture of r brought into tier t.
func (r *Record) capturedBytes(t int) int64 {
	if r.own.home == nil {
		return 0
	}
	return r.own.Bytes(t)
}

// Refer makes a checkpoint of objects that there are already, in the order in which a restore needs them: chunks that other checkpoints have too, an
// object in which several checkpoints were accumulated, a pack. It places nothing. size is that of the checkpoint. All objects must be captured, and have
// the same fastest tier.
func (ck *checkpoints) Refer(now int64, h *History, k model.Key, size int64, v *checkpoint.Version, objects []*Object) (*Record, error) {
	if err := referable(objects); err != nil {
		return nil, err
	}
	r := ck.newRecord(h, k, size, 1, v)
	r.own.home, r.own.gone = nil, true
	r.top = objects[0].top
	ck.chain(r, objects)
	ck.Stats.Captures++
	ck.trace(now, Captured, r, r.Top(), 0)
	ck.captures.publish(now, r, r.Top())
	ck.makeProgress(now)
	return r, nil
}

// referable tells why no checkpoint can be made of some objects.
func referable(objects []*Object) error {
	if len(objects) == 0 {
		return ErrNotFound
	}
	for _, o := range objects {
		switch {
		case o.gone:
			return ErrDropped
		case !o.captured:
			return ErrNotCaptured
		case o.top != objects[0].top:
			return ErrApart
		}
	}
	return nil
}

// chain makes r refer to objects, each once.
func (ck *checkpoints) chain(r *Record, objects []*Object) {
	all := make([]*Object, 0, len(objects))
	for _, o := range objects {
		if !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	r.own.extra().chain = all
	for _, o := range all {
		if o != &r.own {
			ck.objects.refer(o, r)
		}
	}
}

// AutoKey is an integer key that the history does not use.
func (ck *checkpoints) AutoKey(h *History) model.Key {
	for {
		k := model.Key{Number: h.auto}
		h.auto++
		if _, used := h.Lookup(k); !used {
			return k
		}
	}
}

// abandon removes a record whose capture failed.
func (ck *checkpoints) abandon(now int64, r *Record, err error) {
	r.own.fail(err)
	if !r.gone && r.ref != plan.Nobody {
		ck.remove(now, r)
		return
	}
	ck.discard(now, r)
}

// Drop removes a checkpoint; false when there is none.
func (ck *checkpoints) Drop(now int64, h *History, k model.Key) bool {
	r := h.Get(k)
	if r == nil {
		return false
	}
	ck.count++
	ck.forecasts.surprised()
	ck.trace(now, Dropped, r, -1, 0)
	ck.remove(now, r)
	ck.makeProgress(now)
	return true
}

// Clear removes all checkpoints of a history and its plan.
func (ck *checkpoints) Clear(now int64, h *History) {
	h.order.Clear()
	h.due.Clear()
	h.Each(func(r *Record) { ck.remove(now, r) })
	ck.orders.resetPlan(now, h)
	ck.makeProgress(now)
}

// remove takes r out of its history. It gives back all room of r, now or when its last reader has gone. A removed record is not flushed.
func (ck *checkpoints) remove(now int64, r *Record) { ck.replace(now, r, nil) }

// replace is remove with the version that takes r's place; nil for none.
func (ck *checkpoints) replace(now int64, r, by *Record) {
	if ck.cfg.Catalog != nil {
		ck.cfg.Catalog.Removed(r, by)
	}
	r.Hist.order.Dropped(r.Key)
	ck.restores.unhide(r)
	r.Hist.records.take(r)
	if r.seq != fragment.Unexpected {
		r.Hist.sweep.awaited--
	}
	ck.forecasts.foresee(r.Hist)
	ck.orders.followLater(r.Hist)
	ck.discard(now, r)
}

func (ck *checkpoints) discard(now int64, r *Record) {
	r.gone = true
	ck.rooms.noteGone(r)
	for _, o := range r.Objects() {
		ck.objects.unrefer(now, o, r)
	}
	why := ErrDropped
	if err := r.own.failed(); !r.own.captured && err != nil {
		why = err // acknowledged before its bytes were taken, and then taking them failed
	}
	ck.restores.failWaiting(now, r, why)
	ck.waiters.wakeWaits(now, r)
	ck.forget(r)
}

// Renumber gives a record the next capture number: larger than those of earlier captures, smaller than those of later ones.
func (ck *checkpoints) Renumber(r *Record) int64 {
	ck.count++
	r.written = ck.count
	return ck.count
}

// Adopt makes a record of a checkpoint whose room is reserved, and which is the current one of its key.
func (ck *checkpoints) Adopt(h *History, k model.Key, s Stored) *Record {
	t := s.Tier
	tr := ck.tiers[t]
	id, ok := tr.reserved.at(tr, s.Offset)
	if !ok {
		panic("engine: a checkpoint was to be adopted whose room is not reserved")
	}
	r := ck.newRecord(h, k, s.Size, s.Align, s.Version)
	o := &r.own
	r.written, r.top, o.top, o.captured = s.Written, uint8(s.Top), uint8(s.Top), true
	if o.reform(s.Shape); s.Shape != nil {
		o.shape().known = 1<<MaxTiers - 1
	}
	id = tr.cutFrom(&tr.reserved, id, s.Offset, tr.extent(o))
	f := tr.table.At(id)
	f.Owner, f.State, f.Born = o, lifecycle.Init, uint32(s.Written)
	o.copies[t] = id
	ck.copies.step(o, t, lifecycle.BeginWrite)
	ck.copies.step(o, t, lifecycle.WriteDone)
	h.records.put(r)
	if seq, ok := h.order.Seq(k); ok {
		ck.expect(r, seq)
	}
	ck.copies.updateCopy(0, o, t)
	return r
}
