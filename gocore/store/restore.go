package store

import (
	"unsafe"

	"velocpy/gocore/copier"
	"velocpy/gocore/engine"
	"velocpy/gocore/memory"
	"velocpy/gocore/plan"
	"velocpy/gocore/status"
)

// RestoreArgs describes a restore. Into is read during the call only; the memory it names until the operation has ended.
type RestoreArgs struct {
	Key      plan.Key
	Select   []int32  // indices of the regions wanted, ascending; nil: all
	Into     []Region // destinations, one per region wanted; nil: a lease
	Lease    bool
	Expected uint64 // layout id, or 0
	Last     bool
	Peek     bool
	Patient  bool
	FD       int32
}

// Restore begins a restore; what lies in the fastest tier and is small ends in the same call.
func (h *History) Restore(a *RestoreArgs, out *Outcome) (*Op, status.Code, error) {
	s := h.s
	if err := s.enter(); err != nil {
		return nil, status.Closed, err
	}
	op, err := h.beginRestore(a)
	s.leave()
	if err != nil {
		return nil, status.Invalid, err
	}
	code, err := op.stepRestore(out)
	return op, code, err
}

func (h *History) beginRestore(a *RestoreArgs) (*Op, error) {
	s := h.s
	rec := h.h.Get(a.Key)
	if rec == nil {
		return nil, h.notFound(a.Key)
	}
	l := rec.Body.(*body).layout
	if a.Expected != 0 && a.Expected != l.id {
		return nil, status.New(status.Changed, "the checkpoint has another layout than expected")
	}
	want, err := l.selection(a)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(a.Into); err != nil {
		return nil, err
	}
	op := &Op{s: s, kind: restoreOp, fd: a.FD, began: s.now(), want: want}
	if !a.Lease {
		op.regions = keep(a.Into)
	}
	r, err := s.eng.BeginRestore(op.began, h.h, a.Key, engine.RestoreOptions{
		Last: a.Last, Peek: a.Peek, Partial: len(want) < len(l.spans), Into: !a.Lease, Patient: a.Patient,
	})
	if err != nil {
		return nil, s.explain(err, rec)
	}
	r.Notify = op
	op.restore = r
	op.live()
	return op, nil
}

// selection checks the regions asked for, and their destinations.
func (l *layout) selection(a *RestoreArgs) ([]int32, error) {
	want := a.Select
	if want == nil {
		want = l.all()
	} else {
		want = append([]int32(nil), want...)
	}
	before := int32(-1)
	for _, i := range want {
		if i <= before || int(i) >= len(l.spans) {
			return nil, status.New(status.Invalid, "region indices must ascend below %d", len(l.spans))
		}
		before = i
	}
	if a.Lease {
		return want, nil
	}
	if len(a.Into) != len(want) {
		return nil, status.New(status.Invalid, "%d destinations for %d regions", len(a.Into), len(want))
	}
	for j, i := range want {
		if a.Into[j].Bytes != l.spans[i].Bytes {
			return nil, status.New(status.Invalid, "destination of %d bytes for a region of %d", a.Into[j].Bytes, l.spans[i].Bytes).AtRegion(int(i))
		}
	}
	return want, nil
}

// stepRestore verifies and copies when the bytes have come.
func (op *Op) stepRestore(out *Outcome) (status.Code, error) {
	s, r := op.s, op.restore
	s.mu.Lock()
	now := s.now()
	switch {
	case r.Err != nil:
		return op.failRestore(s.explain(r.Err, r.Rec))
	case r.Phase == engine.Waiting && s.closing:
		return op.failRestore(errClosed)
	case r.Phase == engine.Waiting:
		s.mu.Unlock()
		return op.waits(now)
	}
	op.woke(now)
	check := op.mustCheck()
	slot := op.bytes()
	s.mu.Unlock()
	if op.job == nil && (op.regions != nil || check) {
		op.job = op.copyOut(slot, check)
	}
	if op.job != nil {
		if !op.copy(r.Rec.Size) {
			return status.Again, nil
		}
		if bad := op.mismatch(); bad >= 0 {
			s.mu.Lock()
			return op.failRestore(s.corrupt(r.Rec, int(op.want[bad]), r.Tier))
		}
	}
	s.mu.Lock()
	return op.endRestore(out)
}

// bytes are the slot's bytes: in the cache, or beside it.
func (op *Op) bytes() []byte {
	if op.restore.Direct {
		return op.private.Bytes(0, op.private.Size())
	}
	return op.s.slot(op.restore.Rec, op.restore.Tier)
}

// mustCheck tells whether the bytes are verified before they are handed over. Copies into arrays verify in the same pass; a lease
// only what has not been verified since it came to the tier.
func (op *Op) mustCheck() bool {
	r, b := op.restore, op.restore.Rec.Body.(*body)
	switch {
	case op.s.set.verify == verifyOff || b.sums == nil || r.Direct: // a fetch has verified
		return false
	case op.regions != nil || op.s.set.verify == verifyAlways:
		return true
	}
	return !op.s.eng.Fragment(r.Rec, r.Tier).Verified
}

func (op *Op) copyOut(slot []byte, check bool) *copier.Job {
	spans := op.restore.Rec.Body.(*body).layout.spans
	pieces := make([]copier.Piece, len(op.want))
	for j, i := range op.want {
		pieces[j] = copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(slot[spans[i].Offset:])), Bytes: spans[i].Bytes}
		if op.regions != nil {
			pieces[j].Mem = op.regions[j].Mem
		}
	}
	dir := copier.Scatter
	if op.regions == nil {
		dir = copier.Verify
	}
	return copier.NewJob(dir, pieces, copier.Options{Checksum: check, Pool: op.s.pool})
}

// mismatch is the first of the regions wanted whose bytes are not what was captured, or -1.
func (op *Op) mismatch() int {
	b := op.restore.Rec.Body.(*body)
	if b.sums == nil || op.s.set.verify == verifyOff || op.restore.Direct {
		return -1
	}
	for j, sum := range op.job.Sums() {
		if sum != b.sums[op.want[j]] {
			return j
		}
	}
	return -1
}

// endRestore hands the bytes over; the lock is held and given back.
func (op *Op) endRestore(out *Outcome) (status.Code, error) {
	s, r := op.s, op.restore
	now := s.now()
	b := r.Rec.Body.(*body)
	if !r.Direct && op.job != nil && len(op.want) == len(b.layout.spans) {
		s.eng.Fragment(r.Rec, r.Tier).Verified = true
	}
	if op.regions == nil {
		out.Lease = op.lend(now)
	} else {
		s.eng.HandOver(now, r)
		s.eng.EndRestore(now, r)
	}
	out.Layout, out.Slot, out.Meta = b.layout.id, b.layout.slot, int64(len(b.meta))
	out.Ticket, out.Hit = r.Rec.ID, r.Hit
	out.HintsLeft = int64(r.Rec.Hist.Queued())
	op.end()
	out.Waited = op.waited
	s.leave()
	if op.job != nil {
		op.job.Free()
	}
	op.release()
	return status.OK, nil
}

// failRestore ends the operation with an error; the lock is held and given back.
func (op *Op) failRestore(err *status.Error) (status.Code, error) {
	s := op.s
	s.eng.EndRestore(s.now(), op.restore)
	op.end()
	s.leave()
	if op.job != nil {
		op.job.Free()
	}
	op.release()
	return err.Code, err
}

func (op *Op) cancelRestore() {
	s := op.s
	if op.job != nil {
		op.job.Free()
	}
	s.mu.Lock()
	if !op.over {
		s.eng.EndRestore(s.now(), op.restore)
	}
	op.end()
	s.leave()
}

// Lease is a checkpoint's bytes lent to the caller. It may be released in any goroutine, once, also after the store was closed.
type Lease struct {
	s        *Store
	restore  *engine.Restore // nil: the bytes are private
	private  *memory.Mapping
	layout   *layout
	meta     string
	sums     []uint64 // debug: what the bytes must still be when it comes back
	Base     unsafe.Pointer
	Writable bool
}

// empty is where the bytes of a checkpoint without bytes are.
var empty [1]byte

// lend turns a restore that is Ready into a lease. The lock is held.
func (op *Op) lend(now int64) *Lease {
	s, r := op.s, op.restore
	b := r.Rec.Body.(*body)
	l := &Lease{s: s, layout: b.layout, meta: b.meta, Writable: r.Last}
	b.layout.users++
	s.hold()
	switch {
	case r.Direct:
		l.private, op.private = op.private, nil
		l.Base, l.Writable = l.private.Base(), r.Last
		s.eng.HandOver(now, r)
		s.eng.EndRestore(now, r)
	case r.Last && s.eng.Fragment(r.Rec, r.Tier).Pins > 1 && l.copyPrivate(s.slot(r.Rec, r.Tier)):
		s.eng.HandOver(now, r)
		s.eng.EndRestore(now, r)
	default:
		l.Writable = r.Last && s.eng.Fragment(r.Rec, r.Tier).Pins == 1
		l.restore = r
		l.Base = unsafe.Pointer(unsafe.SliceData(s.slot(r.Rec, r.Tier)))
		s.eng.HandOver(now, r)
		if s.set.Debug && !l.Writable {
			l.sums = b.sums
		}
	}
	return l
}

// copyPrivate gives the lease bytes of its own: others are reading the slot.
func (l *Lease) copyPrivate(slot []byte) bool {
	m, err := memory.Map("private lease", int64(len(slot)))
	if err != nil {
		return false
	}
	copy(m.Bytes(0, m.Size()), slot)
	l.private, l.Base = m, m.Base()
	return true
}

// Meta is what the checkpoint was annotated with.
func (l *Lease) Meta() string { return l.meta }

// LayoutText describes the regions, as they were when the lease was given.
func (l *Lease) LayoutText() string { return l.layout.text }

// Release gives the bytes back. In debug mode it tells when the holder wrote into bytes that were not its own.
func (l *Lease) Release() error {
	err := l.inspect()
	s := l.s
	s.mu.Lock()
	if l.restore != nil {
		s.eng.EndRestore(s.now(), l.restore)
	}
	s.layouts.give(l.layout)
	s.leave()
	if l.private != nil {
		_ = l.private.Unmap() // the lease alone had it
	}
	s.drop()
	return err
}

func (l *Lease) inspect() error {
	if l.sums == nil {
		return nil
	}
	b := body{layout: l.layout, sums: l.sums}
	slot := unsafe.Slice((*byte)(l.Base), l.layout.slot)
	if bad := b.mismatch(slot, l.layout.all()); bad >= 0 {
		return status.New(status.Corrupt, "somebody wrote into a lease that others may share; the checkpoint is damaged in the host tier").
			AtTier(status.TierHost).AtRegion(bad)
	}
	return nil
}
