package engine

import (
	"slices"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
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
	written    int64               // Engine.count at its capture: the order of writing
	seq        int64               // place in the restore order, or fragment.Unexpected
	place      int64               // of seq on the axis of intervals, or fragment.Unexpected
	ref        plan.Ref            // in its history's records, while it is the checkpoint of its key
	top        uint8               // the fastest tier that it may be in: a private one, or the first shared one
	gone       bool
	hidden     bool   // Lend hides it
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

// newRecord returns a record with an object of its own, and a fresh ID. The low half is its slot, the high half the slot's generation.
func (e *Engine) newRecord(h *History, k model.Key, size, align int64, v *checkpoint.Version) *Record {
	e.count++
	r := &Record{Hist: h, Key: k, Size: max(size, 1), Align: align, Version: v, seq: fragment.Unexpected, place: fragment.Unexpected, written: e.count}
	r.own.init(r, e.count)
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
	for _, o := range r.Objects() {
		if !e.complete(o, t) {
			return false
		}
	}
	return true
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

// Fragment is the row of r's copy in tier t, for a checkpoint that is one object. There must be one.
func (e *Engine) Fragment(r *Record, t int) *fragment.Fragment[*Object] {
	return e.row(r.Objects()[0], t)
}

// HasRoom tells whether o has room in tier t: its bytes are there, or on their way.
func (e *Engine) HasRoom(o *Object, t int) bool { return o.copies[t] != fragment.None }

// mayRead tells whether restores of r may find its bytes in tier t: its fastest, or any shared tier below.
func (e *Engine) mayRead(r *Record, t int) bool {
	return t == int(r.top) || t > int(r.top) && !e.tiers[t].Private
}

// forget gives back the slot of a record that is gone, once no tier holds bytes of its own object.
func (e *Engine) forget(r *Record) {
	if !r.gone || !r.own.gone || r.duplicates > 0 || e.hasRoom(&r.own) {
		return
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
	for _, o := range r.Objects() {
		o.touched = e.count
		e.reweigh(o)
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
	if r.seq, r.place = seq, fragment.Unexpected; seq != fragment.Unexpected {
		r.place = r.Hist.order.Place(seq)
	}
	for _, o := range r.Objects() {
		e.reexpect(o, r)
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
func (e *Engine) Refer(now int64, h *History, k model.Key, size int64, v *checkpoint.Version, objects []*Object) (*Record, error) {
	if err := referable(objects); err != nil {
		return nil, err
	}
	r := e.newRecord(h, k, size, 1, v)
	r.own.home, r.own.gone = nil, true
	r.top = objects[0].top
	e.chain(r, objects)
	e.Stats.Captures++
	e.trace(now, Captured, r, r.Top(), 0)
	e.publish(now, r, r.Top())
	e.makeProgress(now)
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
func (e *Engine) chain(r *Record, objects []*Object) {
	all := make([]*Object, 0, len(objects))
	for _, o := range objects {
		if !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	r.own.extra().chain = all
	for _, o := range all {
		if o != &r.own {
			e.refer(o, r)
		}
	}
}
