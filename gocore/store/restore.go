package store

import (
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/copier"
)

// RestoreArgs describes a restore. The core reads Into during the call only. It writes the memory that Into names until the operation has ended.
type RestoreArgs struct {
	Key      model.Key
	Select   []int32        // indices of the regions wanted, ascending; nil: all
	Into     []model.Region // destinations, one per region wanted; nil: a lease
	Streams  []uint64       // the caller's streams; destinations on a device are written, and leases there are read, in stream order behind their work
	Lease    bool
	Expected uint64 // layout ID that the caller expects, or 0
	Last     bool
	Peek     bool
	Looped   bool // leaves the due restores of a loop over the plan unchanged
	Patient  bool
	FD       int32
}

// Restore begins a restore. A small checkpoint in the fastest tier is restored within the call.
func (h *History) Restore(a *RestoreArgs, out *Outcome) (*Op, status.Code, error) {
	op := &Op{s: h.s, kind: restoreOp, notifier: notifier{fd: a.FD}}
	returned := false
	defer op.disownUnless(&returned)
	code, err := h.openRestore(op, a, out)
	if code == status.Again {
		code, err = op.stepRestore(out)
	}
	out.Lease.noteChecksums()
	returned = true
	return op, code, err
}

// openRestore begins a restore. It returns Again when there are bytes to copy or to verify.
func (h *History) openRestore(op *Op, a *RestoreArgs, out *Outcome) (status.Code, error) {
	s := h.s
	if err := s.enter(); err != nil {
		return status.CodeOf(err), err
	}
	defer s.leave()
	if err := h.beginRestore(op, a); err != nil {
		return status.CodeOf(err), err
	}
	return op.pollRestore(out)
}

func (h *History) beginRestore(op *Op, a *RestoreArgs) error {
	s := h.s
	if a.Last && s.set.ReadOnly {
		return status.New(status.ReadOnly, "the store in %q is open for reading only: nothing can be restored for the last time", s.set.Path)
	}
	if err := s.deferred.takeFinding(h.h, false); err != nil {
		return err
	}
	rec := h.h.Get(a.Key)
	if rec == nil || rec.Lent() {
		return h.notFound(a.Key)
	}
	l := rec.Version.Layout
	if err := l.Undescribed(); err != nil {
		return err
	}
	if a.Expected != 0 && a.Expected != l.ID {
		return status.New(status.Changed, "the checkpoint has another layout than expected")
	}
	want, err := selection(l, a)
	if err != nil {
		return err
	}
	if err := checkMemory(a.Into); err != nil {
		return err
	}
	home := s.deviceOf(rec)
	if op.device, err = s.deviceOfRegions(a.Into); err != nil {
		return err
	}
	op.streams = append([]uint64(nil), a.Streams...)
	op.looped = a.Looped || a.Peek
	if op.want, op.lends = want, a.Lease; !a.Lease {
		op.regions = model.CloneRegions(a.Into)
	}
	r, err := s.eng.BeginRestore(s.now(), h.h, a.Key, engine.RestoreOptions{
		Last: a.Last, Peek: a.Peek, Partial: len(want) < len(l.Spans) && home == nil, Into: !a.Lease, Patient: a.Patient,
		Past: home != nil && home.Device.Lost() != nil,
	})
	if err != nil {
		return s.explain(err, rec)
	}
	r.Notify = op
	op.restore = r
	op.live()
	return nil
}

// selection checks the regions wanted, and their destinations.
func selection(l *checkpoint.Layout, a *RestoreArgs) ([]int32, error) {
	want := a.Select
	if want == nil {
		want = l.All()
	} else {
		want = append([]int32(nil), want...)
	}
	before := int32(-1)
	for _, i := range want {
		if i <= before || int(i) >= len(l.Spans) {
			return nil, status.New(status.Invalid, "region indices must ascend below %d", len(l.Spans))
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
		if a.Into[j].Bytes != l.Spans[i].Bytes {
			return nil, status.New(status.Invalid, "destination of %s for a region of %s", quantity.Exact(a.Into[j].Bytes), quantity.Exact(l.Spans[i].Bytes)).AtRegion(int(i))
		}
	}
	return want, nil
}

// stepRestore verifies and copies once the bytes are in the tier that the restore reads.
func (op *Op) stepRestore(out *Outcome) (status.Code, error) {
	for {
		if op.slot == nil && !op.placed {
			if code, err := op.lockedLookAtRestore(out); code != status.Again {
				return op.afterRestore(code, err)
			}
		}
		if op.placed {
			return op.afterRestore(op.stepDeviceRestore(out))
		}
		if op.sent {
			return op.afterRestore(op.stepSent(out))
		}
		if op.job == nil {
			op.prepare()
		}
		if !op.copy() {
			return status.Again, nil
		}
		code, err := op.endCopyOut(out)
		op.freeJob()
		if code == status.Again && op.sendsToDevice() {
			continue
		}
		if code != status.Again {
			return op.afterRestore(code, err)
		}
	}
}

func (op *Op) lockedLookAtRestore(out *Outcome) (status.Code, error) {
	op.s.mu.Lock()
	defer op.s.leave()
	return op.pollRestore(out)
}

// afterRestore unmaps the private mapping of an operation that has ended. The lock is not held.
func (op *Op) afterRestore(code status.Code, err error) (status.Code, error) {
	if code != status.Pending && code != status.Again {
		op.unmap()
	}
	return code, err
}

// pollRestore ends the operation if it failed, or if there is nothing to copy or to verify. Otherwise it returns Again once the bytes are available,
// and Pending before. The lock is held.
func (op *Op) pollRestore(out *Outcome) (status.Code, error) {
	s, r := op.s, op.restore
	now := s.now()
	switch {
	case r.Err != nil:
		return op.failRestore(s.explain(r.Err, r.Rec))
	case r.Phase == engine.Waiting && s.closing:
		return op.failRestore(errClosed)
	case r.Phase == engine.Waiting:
		return op.waits(now)
	}
	op.woke(now)
	if a := s.deviceTier(r.Tier); a != nil && !r.Direct {
		return op.pollOnDevice(out, a)
	}
	op.check, op.alone = op.needsVerification(), op.needsOwnBytes()
	if op.lends && !op.check && !op.alone {
		return op.endRestore(out)
	}
	if r.Direct {
		op.slot = op.private.Bytes(0, op.private.Size())
	} else {
		op.slot = s.slot(r.Rec, r.Tier)
	}
	return status.Again, nil
}

// needsVerification tells whether the bytes are verified before they are handed over. Copies verify in the same pass. Bytes of a lease are verified
// unless they were since they came to the tier. The lock is held.
func (op *Op) needsVerification() bool {
	r, b := op.restore, op.restore.Rec.Version
	switch {
	case op.s.set.verify == verifyOff || b.Sums == nil || r.Direct: // a fetch has verified the bytes
		return false
	case !op.lends && !op.sendsToDevice() || op.s.set.verify == verifyAlways:
		return true
	}
	return !op.s.eng.Fragment(r.Rec, r.Tier).Verified
}

// needsOwnBytes tells whether a lease needs a private copy. A lease for the last time is writable, so it needs one while another restore or lease
// reads the bytes in the cache. The lock is held.
func (op *Op) needsOwnBytes() bool {
	r := op.restore
	return op.lends && r.Last && op.private == nil && !op.shared && op.s.eng.Fragment(r.Rec, r.Tier).Pins > 1
}

// prepare creates the job that verifies and copies.
func (op *Op) prepare() {
	base, dir := op.ownBytes(), copier.Scatter
	if op.lends && base == nil || op.sendsToDevice() {
		dir = copier.Verify
	}
	spans := op.restore.Rec.Version.Layout.Spans
	var few [16]copier.Piece
	pieces := few[:0]
	for j, i := range op.want {
		p := copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(op.slot[spans[i].Offset:])), Bytes: spans[i].Bytes}
		if !op.lends && !op.sendsToDevice() {
			p.Mem = op.regions[j].Mem
		} else if base != nil {
			p.Mem.Base = unsafe.Add(base, spans[i].Offset)
		}
		pieces = append(pieces, p)
	}
	op.job = copier.NewJob(dir, pieces, copier.Options{Checksum: op.check, Pool: op.s.pool})
}

// ownBytes maps the private memory of a lease that needs it; nil for all others. If no memory can be mapped, the lease becomes a shared one.
func (op *Op) ownBytes() unsafe.Pointer {
	if !op.alone {
		return nil
	}
	m, err := memory.Map("private lease", max(op.restore.Rec.Version.Layout.Slot, 1))
	if err != nil {
		op.alone, op.shared = false, true
		return nil
	}
	op.private = m
	return m.Base()
}

// endCopyOut hands over the bytes that the job has copied, or returns the error of their verification. It returns Again if the operation has to go
// on. One such case is a lease whose bytes another restore began to read during its verification: it needs a private copy now.
func (op *Op) endCopyOut(out *Outcome) (status.Code, error) {
	s, r := op.s, op.restore
	b := r.Rec.Version
	s.mu.Lock()
	defer s.leave()
	if op.check {
		for j, sum := range op.job.Sums() {
			if sum == b.Sums[op.want[j]] {
				continue
			}
			bad := s.corrupt(r.Rec, int(op.want[j]), r.Tier)
			if op.restoreFromBelow(bad) {
				return status.Again, nil
			}
			return op.failRestore(bad)
		}
		if len(op.want) == len(b.Layout.Spans) {
			s.eng.Fragment(r.Rec, r.Tier).Verified = true
		}
		op.check = false
	}
	if op.sendsToDevice() && !op.sent {
		op.sent = true
		return status.Again, nil
	}
	if op.needsOwnBytes() {
		op.alone = true
		return status.Again, nil
	}
	return op.endRestore(out)
}

// restoreFromBelow continues a restore from a lower tier, if one has the bytes, when those of the fastest tier are wrong. It logs a warning. The lock
// is held.
func (op *Op) restoreFromBelow(bad *status.Error) bool {
	s, r := op.s, op.restore
	if !s.eng.RestoreFromBelow(s.now(), r) {
		return false
	}
	logring.Add(logring.Warning, bad.Error()+"; it is restored from the tier below")
	op.unmap()
	op.slot, op.check, op.alone = nil, false, false
	return true
}

// endRestore hands the bytes over. The lock is held.
func (op *Op) endRestore(out *Outcome) (status.Code, error) {
	s, r := op.s, op.restore
	b := r.Rec.Version
	if op.lends {
		out.Lease = op.lend()
	} else {
		op.handOver()
		s.eng.EndRestore(s.now(), r)
	}
	out.Layout, out.Slot, out.Meta = b.Layout.ID, b.Layout.Slot, int64(len(b.Meta))
	out.Ticket, out.Hit = r.Rec.ID, r.Hit
	if !op.looped {
		r.Rec.Hist.Due().Met(r.Rec.Key)
	}
	out.HintsLeft = int64(r.Rec.Hist.HintsLeft())
	op.end()
	out.Waited = op.waited
	return status.OK, nil
}

// handOver tells the engine that the caller has the bytes. The lock is held.
func (op *Op) handOver() {
	s := op.s
	s.line.took = op.copied
	s.eng.HandOver(s.now(), op.restore)
	s.line.took = 0
}

// give tells the engine that the caller was given a lease. The lock is held.
func (op *Op) give(l *Lease) {
	s := op.s
	s.line.took = op.copied
	s.eng.Lend(s.now(), op.restore)
	s.line.took = 0
	if op.restore.Last {
		l.untaken, l.Last = op.restore, true
	}
}

// Take tells the store that the caller uses the bytes. A checkpoint that was lent for the last time is consumed then; a lease that is released before
// returns it. Take has no effect on other leases, nor in a closed store.
func (l *Lease) Take() error {
	s := l.s
	if err := s.enter(); err != nil {
		if status.CodeOf(err) == status.Closed {
			return nil
		}
		return err
	}
	defer s.leave()
	if l.untaken != nil {
		s.eng.Consume(s.now(), l.untaken)
		l.untaken = nil
	}
	return nil
}

// failRestore ends the operation with an error. The lock is held.
func (op *Op) failRestore(err *status.Error) (status.Code, error) {
	op.s.eng.EndRestore(op.s.now(), op.restore)
	op.end()
	return err.Code, err
}

// Lease is a checkpoint's bytes lent to the caller. It may be released in any goroutine, once, also after the store was closed.
type Lease struct {
	s *Store
	// untaken is the restore of a lease for the last time until Take; otherwise nil. The store's lock guards it.
	untaken  *engine.Restore
	restore  *engine.Restore      // nil: the bytes are private
	device   *devicememory.Memory // where Base lies; nil for host memory
	offset   int64                // … in the device's tier
	private  *memory.Mapping
	layout   *checkpoint.Layout
	meta     string
	sums     []uint64 // debug mode: checksums that the bytes must still have at the release
	Base     unsafe.Pointer
	Writable bool
	Last     bool // Take consumes the checkpoint
}

// lend turns a restore that is Ready into a lease. The lock is held.
func (op *Op) lend() *Lease {
	s, r := op.s, op.restore
	b := r.Rec.Version
	l := &Lease{s: s, layout: b.Layout, meta: b.Meta, Writable: r.Last}
	b.Layout.Share()
	s.users++
	if op.private != nil {
		l.private, op.private = op.private, nil
		l.Base = l.private.Base()
		op.give(l)
		s.eng.EndRestore(s.now(), r)
		return l
	}
	l.restore = r
	l.Writable = r.Last && s.eng.Fragment(r.Rec, r.Tier).Pins == 1
	if l.device = s.deviceTier(r.Tier); l.device != nil {
		l.offset = op.at
		l.Base = devicememory.Pointer(l.device.Address(op.at))
		if !l.Writable {
			l.sums = op.lent
		}
		op.give(l)
		return l
	}
	l.Base = unsafe.Pointer(unsafe.SliceData(s.slot(r.Rec, r.Tier)))
	if s.set.Debug && !l.Writable {
		l.sums = b.Sums
	}
	op.give(l)
	return l
}

// Meta returns the annotation of the checkpoint.
func (l *Lease) Meta() string { return l.meta }

// Release returns the bytes. streams are all that read a lease on a device. In debug mode Release waits for them and returns an error if the holder
// wrote into shared bytes. While one of the streams is being captured into a graph, it does not wait; the error is logged later.
func (l *Lease) Release(streams ...uint64) error {
	var err error
	if l.device == nil {
		err = l.verify()
	} else {
		recording, failed := l.device.NoteReads(streams, l.offset, l.layout.Slot)
		if len(recording) > 0 {
			l.releaseWhenRecorded(streams, recording)
			return failed
		}
		if err = failed; err == nil {
			err = l.verifyOnDevice(streams)
		}
	}
	l.giveBack(err != nil)
	if l.private != nil {
		_ = l.private.Unmap() // no other goroutine uses the mapping
	}
	return err
}

func (l *Lease) giveBack(damaged bool) {
	s, r := l.s, l.restore
	s.mu.Lock()
	defer s.leave()
	if l.untaken != nil {
		s.eng.Return(s.now(), l.untaken)
		l.untaken = nil
	}
	if r != nil {
		if damaged {
			s.eng.MarkUnverified(r.Rec, r.Tier) // the next lease of it must verify, and fail
		}
		s.eng.EndRestore(s.now(), r)
	}
	s.layouts.Give(l.layout)
	s.users--
}

// noteChecksums computes, in debug mode, the checksums of a lease in host memory whose capture took none. The lock is not held. l may be nil.
func (l *Lease) noteChecksums() {
	if l == nil || !l.s.set.Debug || l.sums != nil || l.restore == nil || l.device != nil || l.Writable {
		return
	}
	slot := l.slot()
	for _, span := range l.layout.Spans {
		l.sums = append(l.sums, checksum.Sum(slot[span.Offset:span.Offset+span.Bytes]))
	}
}

// slot returns the memory of a lease in host memory.
func (l *Lease) slot() []byte { return unsafe.Slice((*byte)(l.Base), l.layout.Slot) }

// verify compares, in debug mode, the bytes of a lease in host memory with those that were lent.
func (l *Lease) verify() error {
	if l.sums == nil {
		return nil
	}
	b := checkpoint.Version{Layout: l.layout, Sums: l.sums}
	if bad := b.Mismatch(l.slot(), l.layout.All()); bad >= 0 {
		return l.written(bad, status.TierHost)
	}
	return nil
}

// written is the error of a lease whose holder wrote into it.
func (l *Lease) written(region, tier int) *status.Error {
	rec := l.restore.Rec
	return status.New(status.Corrupt, "history %q, checkpoint %s: a caller wrote into a lease that others may share, and the checkpoint is damaged in this tier",
		rec.Hist.Name, rec.Key).AtTier(tier).AtRegion(region)
}
