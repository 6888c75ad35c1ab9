package store

import (
	"unsafe"

	"velocpy/gocore/copier"
	"velocpy/gocore/engine"
	"velocpy/gocore/plan"
	"velocpy/gocore/status"
)

// CheckpointArgs describes a checkpoint. Layout and the shapes in Regions are read during the call only; the regions' bytes until the
// operation has ended (or, with SourceStays, until the ticket is captured).
type CheckpointArgs struct {
	Key         plan.Key
	AutoKey     bool
	Regions     []Region
	Layout      []byte
	Slot        int64
	Meta        []byte
	SourceStays bool
	Patient     bool
	Tier        int // of the contract, or TierNone
	FD          int32
}

// direct I/O and huge pages want whole pages; below this size that would waste more than it gives.
const wholePages = 64 << 10

// Checkpoint begins a checkpoint; small ones that find room end in the same call.
func (h *History) Checkpoint(a *CheckpointArgs, out *Outcome) (*Op, status.Code, error) {
	s := h.s
	if err := s.enter(); err != nil {
		return nil, status.Closed, err
	}
	op, err := h.beginCapture(a, out)
	s.leave()
	if err != nil {
		return nil, status.Invalid, err
	}
	code, err := op.stepCapture(out)
	return op, code, err
}

func (h *History) beginCapture(a *CheckpointArgs, out *Outcome) (*Op, error) {
	s := h.s
	if err := checkMemory(a.Regions); err != nil {
		return nil, err
	}
	l, err := s.layouts.take(a.Layout, a.Regions, a.Slot)
	if err != nil {
		return nil, err
	}
	if a.AutoKey {
		a.Key = s.eng.AutoKey(h.h)
	}
	out.Key = a.Key
	size, align := a.Slot, int64(hostGrain)
	if size >= wholePages {
		align = diskGrain
		size = (size + diskGrain - 1) / diskGrain * diskGrain
	}
	b := &body{layout: l, meta: string(a.Meta)}
	o := engine.CaptureOptions{SourceStays: a.SourceStays, Patient: a.Patient}
	if t, err := s.tierIndex(a.Tier); err == nil {
		o.Down = t
	}
	op := &Op{s: s, kind: captureOp, fd: a.FD, began: s.now(), regions: a.Regions}
	c, err := s.eng.BeginCapture(op.began, h.h, a.Key, size, align, b, o)
	if err != nil {
		return nil, s.explain(err, nil)
	}
	op.capture = c
	c.Notify = op
	if c.Phase == engine.Waiting || size > oneSlice {
		op.regions = keep(a.Regions)
	}
	if c.Spill {
		b.source = newSource(op.regions)
	}
	if a.SourceStays {
		c.Notify = nil // nobody waits for it
	}
	op.live()
	return op, nil
}

// checkMemory refuses shapes that do not add up; whether the addresses exist cannot be told.
func checkMemory(regions []Region) error {
	for i := range regions {
		if err := regions[i].Mem.Check(regions[i].Bytes); err != nil {
			return status.Wrap(status.Invalid, err, "the shape and the size disagree").AtRegion(i)
		}
		if regions[i].Bytes > 0 && regions[i].Mem.Base == nil {
			return status.New(status.Invalid, "a null pointer with %d bytes", regions[i].Bytes).AtRegion(i)
		}
	}
	return nil
}

// keep copies what the caller's arguments say of the regions, for use after the call.
func keep(regions []Region) []Region {
	kept := append([]Region(nil), regions...)
	for i := range kept {
		m := &kept[i].Mem
		m.Shape = append([]int64(nil), m.Shape...)
		m.Strides = append([]int64(nil), m.Strides...)
	}
	return kept
}

// stepCapture copies when there is room.
func (op *Op) stepCapture(out *Outcome) (status.Code, error) {
	s, c := op.s, op.capture
	s.mu.Lock()
	now := s.now()
	phase := c.Phase
	switch {
	case c.Err != nil:
		return op.endCapture(now, out, s.explain(c.Err, nil))
	case phase == engine.Ended || c.Notify == nil:
		return op.endCapture(now, out, nil)
	case phase == engine.Waiting && s.closing:
		s.eng.CancelCapture(now, c)
		return op.endCapture(now, out, errClosed)
	case phase == engine.Waiting:
		s.mu.Unlock()
		return op.waits(now)
	}
	op.woke(now)
	slot := s.slot(c.Rec, c.Tier)
	s.mu.Unlock()
	if op.job == nil {
		op.job = s.gather(slot, op.regions)
	}
	if !op.copy(op.capture.Rec.Size) {
		return status.Again, nil
	}
	s.mu.Lock()
	if s.set.Checksum {
		c.Rec.Body.(*body).sums = append([]uint64(nil), op.job.Sums()...)
	}
	op.job.Free()
	s.eng.EndCapture(s.now(), c, true)
	return op.endCapture(s.now(), out, nil)
}

// endCapture ends the operation; the lock is held and given back.
func (op *Op) endCapture(now int64, out *Outcome, err error) (status.Code, error) {
	s := op.s
	op.woke(now)
	rec := op.capture.Rec
	out.Ticket, out.Key, out.Waited = rec.ID, rec.Key, op.waited
	out.HintsLeft = int64(rec.Hist.Queued())
	op.end()
	s.leave()
	op.release()
	if err != nil {
		return codeOf(err), err
	}
	return status.OK, nil
}

func (op *Op) cancelCapture() {
	s := op.s
	var spilling *source
	if op.job != nil {
		op.job.Free()
	}
	s.mu.Lock()
	if !op.over && !s.eng.CancelCapture(s.now(), op.capture) {
		op.capture.Notify = nil
		spilling = op.capture.Rec.Body.(*body).source
	}
	op.end()
	s.leave()
	if spilling != nil {
		spilling.abandon()
	}
}

// slot is the memory of r's copy in the host tier.
func (s *Store) slot(r *engine.Record, t int) []byte {
	f := s.eng.Fragment(r, t)
	return s.host.Bytes(f.Offset, f.Size)
}

// gather is the job that copies regions into a slot.
func (s *Store) gather(slot []byte, regions []Region) *copier.Job {
	pieces := make([]copier.Piece, len(regions))
	for i := range regions {
		r := &regions[i]
		pieces[i] = copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(slot[r.Offset:])), Bytes: r.Bytes, Mem: r.Mem}
	}
	return copier.NewJob(copier.Gather, pieces, copier.Options{Checksum: s.set.Checksum, Pool: s.pool})
}
