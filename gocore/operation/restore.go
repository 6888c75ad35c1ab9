package operation

import (
	"slices"
	"unsafe"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/slots"
)

// RestoreArgs describes a restore. The core reads Into during the call only. It writes the memory that Into names until the operation has ended.
type RestoreArgs struct {
	Key      model.Key
	Select   []int32        // indices of the regions wanted, ascending; nil: all
	Into     []model.Region // destinations, one per region wanted; nil: a lease
	Parts    []model.Part   // what of each region wanted goes to its destination; nil: all of it
	Streams  []uint64       // the caller's streams; destinations on a device are written, and leases there are read, in stream order behind their work
	Lease    bool
	Expected uint64 // layout ID that the caller expects, or 0
	Last     bool
	Peek     bool
	Looped   bool // leaves the due restores of a loop over the plan unchanged
	Patient  bool
	FD       int32
}

// restore is the operation of a restore: it ends with a copy to regions, or with a lease.
type restore struct {
	copying
	reads  *engine.Restore // holds the bytes, once they are there
	looped bool            // leaves the due restores of a loop over the plan unchanged
	want   []int32         // indices of the regions wanted
	check  bool            // the job verifies checksums

	lends   bool            // ends with a lease instead of a copy to regions
	private *memory.Mapping // memory beside the cache that has the bytes
	alone   bool            // the lease gets a private copy, because other callers read the bytes in the cache
	shared  bool            // no memory could be mapped for a private copy

	gate   borrow.Source // guards the regions, if a transfer may write to them
	gated  bool          // a transfer may
	filled bool          // a transfer has written all of them

	partial partial
	source  deviceSource
	target  deviceTarget
}

// Wants returns what a fetch brings.
func (op *restore) Wants() checkpoint.Selection { return op.partial.selected() }

// Took takes over the memory that a fetch has filled, unless the operation has ended. The lock is held.
func (op *restore) Took(m *memory.Mapping) bool {
	if op.over {
		return false
	}
	op.private = m
	return true
}

// Into returns the regions, if a transfer may write to them.
func (op *restore) Into() *borrow.Source {
	if !op.gated {
		return nil
	}
	return &op.gate
}

// Filled notes that a transfer has written the regions. The lock is held.
func (op *restore) Filled() { op.filled = true }

// takeBack makes sure that no transfer writes to the regions any more. It waits for one piece of a copy at most.
func (op *restore) takeBack() {
	if op.gated {
		op.gate.Abandon()
	}
}

// halt is part of operation.
func (op *restore) halt() {
	op.takeBack()
	op.copying.halt()
}

// disown is part of operation.
func (op *restore) disown() { op.halt() }

// undo is part of operation.
func (op *restore) undo() *Outcome {
	if op.event != nil {
		op.target.releaseLater()
	} else {
		op.s.Engine.EndRestore(op.s.Now(), op.reads)
	}
	return nil
}

// release is part of operation.
func (op *restore) release() {
	op.freeJob()
	op.unmap()
	op.dropEvent()
}

// account is part of operation.
func (op *restore) account(c *figures.Counters) {
	op.woke(op.s.Now(), op.reads.Rec)
	c.RestoreWait += op.waited
	c.RestoreCopy += op.copied
}

// unmap unmaps the operation's private mapping, if it still has one. The operation has ended, and the lock is not held.
func (op *restore) unmap() {
	for _, m := range []**memory.Mapping{&op.private, &op.partial.packed} {
		if *m != nil {
			_ = (*m).Unmap() // only this operation used the mapping, and no caller is left to receive an error
			*m = nil
		}
	}
}

// Restore begins a restore. A small checkpoint in the fastest tier is restored within the call.
func Restore(s *cache.Cache, h History, a *RestoreArgs, out *Outcome) (*Op, status.Code, error) {
	op := &restore{copying: copying{watching: watching{Op: begun(s, a.FD)}}}
	op.partial.restore, op.source.restore, op.target.restore = op, op, op
	op.does = op
	returned := false
	defer op.disownUnless(&returned)
	code, err := op.open(h, a, out)
	if code == status.Again {
		code, err = op.copyOut(out)
	}
	out.Lease.noteChecksums()
	returned = true
	return &op.Op, code, err
}

// open begins a restore. It returns Again when there are bytes to copy or to verify.
func (op *restore) open(h History, a *RestoreArgs, out *Outcome) (status.Code, error) {
	s := op.s
	if err := s.Enter(); err != nil {
		return status.CodeOf(err), err
	}
	defer s.Leave()
	if err := op.begin(h.Engine(), a); err != nil {
		return status.CodeOf(err), err
	}
	return op.pollRestore(out)
}

func (op *restore) begin(h *engine.History, a *RestoreArgs) error {
	s := op.s
	if a.Last && s.Set.ReadOnly {
		return status.New(status.ReadOnly, "the store in %q is open for reading only: nothing can be restored for the last time", s.Set.Path)
	}
	if err := s.Findings.TakeFinding(h, false); err != nil {
		return err
	}
	rec := h.Get(a.Key)
	if rec == nil || rec.Lent() {
		return cache.NotFound(h, a.Key)
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
	home := s.DeviceOf(rec)
	if op.device, err = s.DeviceOfRegions(a.Into); err != nil {
		return err
	}
	op.streams = append([]uint64(nil), a.Streams...)
	op.looped = a.Looped || a.Peek
	if op.want, op.lends = want, a.Lease; !a.Lease {
		op.regions, op.partial.parts = model.CloneRegions(a.Into), model.CloneParts(a.Parts)
	}
	if op.partial.parts != nil && s.Disk != nil {
		s.Disk.AdoptLeaves(rec)
	}
	if op.gated = op.mayBeFilled(); op.gated {
		op.gate.Regions = op.regions
	}
	r, err := s.Engine.BeginRestore(s.Now(), h, a.Key, engine.RestoreOptions{
		Last: a.Last, Peek: a.Peek, Partial: op.partial.parts != nil || len(want) < len(l.Spans) && home == nil, Into: !a.Lease, Patient: a.Patient,
		Streams: op.gated && s.Disk.Space.Streams(),
		Past:    home != nil && home.Device.Lost() != nil,
	})
	if err != nil {
		return s.Explain(err, rec)
	}
	r.Notify = op
	op.reads = r
	op.live()
	return nil
}

// mayBeFilled tells whether a transfer from the disk may write to the regions. Strided parts of regions are cut from the bytes of whole leaves, and memory of a
// device is written by copies of the device.
func (op *restore) mayBeFilled() bool {
	return op.s.Disk != nil && !op.lends && op.device == nil &&
		!slices.ContainsFunc(op.partial.parts, func(p model.Part) bool { return len(p.Shape) > 0 })
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
		if a.Parts != nil {
			return nil, status.New(status.Invalid, "a lease has whole regions, not parts of them")
		}
		return want, nil
	}
	if len(a.Into) != len(want) {
		return nil, status.New(status.Invalid, "%d destinations for %d regions", len(a.Into), len(want))
	}
	if a.Parts != nil {
		return want, checkParts(l, want, a)
	}
	for j, i := range want {
		if a.Into[j].Bytes != l.Spans[i].Bytes {
			return nil, status.New(status.Invalid, "destination of %s for a region of %s", quantity.Exact(a.Into[j].Bytes), quantity.Exact(l.Spans[i].Bytes)).AtRegion(int(i))
		}
	}
	return want, nil
}

// step is part of operation.
func (op *restore) step(out *Outcome) (status.Code, error) {
	code, err := op.copyOut(out)
	out.Lease.noteChecksums()
	return code, err
}

// copyOut verifies and copies once the bytes are in the tier that the restore reads.
func (op *restore) copyOut(out *Outcome) (status.Code, error) {
	for {
		if op.slot == nil && !op.placed {
			if code, err := op.lockedLookAtRestore(out); code != status.Again {
				return op.afterRestore(code, err)
			}
		}
		if op.placed {
			return op.afterRestore(op.source.stepDeviceRestore(out))
		}
		if op.target.sent {
			return op.afterRestore(op.target.stepSent(out))
		}
		if op.job == nil {
			if err := op.prepare(); err != nil {
				return op.afterRestore(op.refuseRestore(err))
			}
		}
		if !op.copy() {
			return status.Again, nil
		}
		code, err := op.endCopyOut(out)
		op.freeJob()
		if code == status.Again && op.target.sendsToDevice() {
			continue
		}
		if code != status.Again {
			return op.afterRestore(code, err)
		}
	}
}

func (op *restore) lockedLookAtRestore(out *Outcome) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	return op.pollRestore(out)
}

// afterRestore unmaps the private mapping of an operation that has ended. The lock is not held.
func (op *restore) afterRestore(code status.Code, err error) (status.Code, error) {
	if code != status.Pending && code != status.Again {
		op.unmap()
	}
	return code, err
}

// pollRestore ends the operation if it failed, or if there is nothing to copy or to verify. Otherwise it returns Again once the bytes are available,
// and Pending before. The lock is held.
func (op *restore) pollRestore(out *Outcome) (status.Code, error) {
	s, r := op.s, op.reads
	now := s.Now()
	switch {
	case r.Err != nil:
		return op.failRestore(s.Explain(r.Err, r.Rec))
	case r.Phase == engine.Waiting && s.Closing:
		return op.failRestore(cache.ErrClosed)
	case r.Phase == engine.Waiting:
		return op.waits(now)
	}
	op.woke(now, r.Rec)
	if r.Direct && op.filled {
		return op.endRestore(out)
	}
	if a := s.DeviceTier(r.Tier); a != nil && !r.Direct {
		return op.source.pollOnDevice(out, a)
	}
	op.check, op.alone = op.needsVerification(), op.needsOwnBytes()
	if op.lends && !op.check && !op.alone {
		return op.endRestore(out)
	}
	if r.Direct {
		op.slot = op.private.Bytes(0, op.private.Size())
	} else {
		op.slot = slots.Slot(s, r.Rec, r.Tier)
	}
	return status.Again, nil
}

// needsVerification tells whether the bytes are verified before they are handed over. Copies verify in the same pass. Bytes of a lease are verified
// unless they were since they came to the tier. The lock is held.
func (op *restore) needsVerification() bool {
	r, b := op.reads, op.reads.Rec.Version
	switch {
	case op.s.Set.Verifies == config.VerifyOff || b.Sums == nil || r.Direct: // a fetch has verified the bytes
		return false
	case !op.lends && !op.target.sendsToDevice() || op.s.Set.Verifies == config.VerifyAlways:
		return true
	}
	return !op.s.Engine.Fragment(r.Rec, r.Tier).Verified
}

// needsOwnBytes tells whether a lease needs a private copy. A lease for the last time is writable, so it needs one while another restore or lease
// reads the bytes in the cache. The lock is held.
func (op *restore) needsOwnBytes() bool {
	r := op.reads
	return op.lends && r.Last && op.private == nil && !op.shared && op.s.Engine.Fragment(r.Rec, r.Tier).Pins > 1
}

// prepare creates the job that verifies and copies.
func (op *restore) prepare() error {
	if op.partial.parts != nil {
		return op.partial.prepareParts()
	}
	base, dir := op.ownBytes(), copier.Scatter
	if op.lends && base == nil || op.target.sendsToDevice() {
		dir = copier.Verify
	}
	spans := op.reads.Rec.Version.Layout.Spans
	var few [16]copier.Piece
	pieces := few[:0]
	for j, i := range op.want {
		p := copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(op.slot[spans[i].Offset:])), Bytes: spans[i].Bytes}
		if !op.lends && !op.target.sendsToDevice() {
			p.Mem = op.regions[j].Mem
		} else if base != nil {
			p.Mem.Base = unsafe.Add(base, spans[i].Offset)
		}
		pieces = append(pieces, p)
	}
	op.job = copier.NewJob(dir, pieces, copier.Options{Checksum: op.check, Pool: op.s.Copiers})
	return nil
}

// ownBytes maps the private memory of a lease that needs it; nil for all others. If no memory can be mapped, the lease becomes a shared one.
func (op *restore) ownBytes() unsafe.Pointer {
	if !op.alone {
		return nil
	}
	m, err := memory.Map("private lease", max(op.reads.Rec.Version.Layout.Slot, 1))
	if err != nil {
		op.alone, op.shared = false, true
		return nil
	}
	op.private = m
	return m.Base()
}

// endCopyOut hands over the bytes that the job has copied, or returns the error of their verification. It returns Again if the operation has to go
// on. One such case is a lease whose bytes another restore began to read during its verification: it needs a private copy now.
func (op *restore) endCopyOut(out *Outcome) (status.Code, error) {
	s, r := op.s, op.reads
	b := r.Rec.Version
	s.Lock()
	defer s.Leave()
	if op.partial.parts != nil {
		return op.partial.endParts(out)
	}
	if op.check {
		for j, sum := range op.job.Sums() {
			if sum != b.Sums[op.want[j]] {
				return op.damaged(int(op.want[j]))
			}
		}
		if len(op.want) == len(b.Layout.Spans) {
			s.Engine.Fragment(r.Rec, r.Tier).Verified = true
		}
		op.check = false
	}
	if op.target.sendsToDevice() && !op.target.sent {
		op.target.sent = true
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
func (op *restore) restoreFromBelow(bad *status.Error) bool {
	s, r := op.s, op.reads
	if !s.Engine.RestoreFromBelow(s.Now(), r) {
		return false
	}
	logring.Add(logring.Warning, bad.Error()+"; it is restored from the tier below")
	op.unmap()
	op.slot, op.check, op.alone, op.partial.reading = nil, false, false, nil
	return true
}

// endRestore hands the bytes over. The lock is held.
func (op *restore) endRestore(out *Outcome) (status.Code, error) {
	s, r := op.s, op.reads
	b := r.Rec.Version
	if op.lends {
		out.Lease = op.lend()
	} else {
		op.handOver()
		s.Engine.EndRestore(s.Now(), r)
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
func (op *restore) handOver() {
	s := op.s
	s.Line.Took = op.copied
	s.Engine.HandOver(s.Now(), op.reads)
	s.Line.Took = 0
}

// endOnDevice ends the operation after work of a device that came to err.
func (op *restore) endOnDevice(out *Outcome, err error) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	if err != nil {
		return op.failRestore(op.s.Explain(devicememory.Explain(err), op.reads.Rec))
	}
	return op.endRestore(out)
}

// refuseRestore ends the operation because memory beside the cache is missing.
func (op *restore) refuseRestore(err error) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	return op.failRestore(op.s.Explain(err, op.reads.Rec))
}

// failRestore ends the operation with an error. The lock is held.
func (op *restore) failRestore(err *status.Error) (status.Code, error) {
	//mutation:memory-not-taken-back
	op.takeBack()
	op.s.Engine.EndRestore(op.s.Now(), op.reads)
	op.end()
	return err.Code, err
}

// damaged continues a restore whose bytes have a wrong checksum from a lower tier, or ends it. The lock is held.
func (op *restore) damaged(region int) (status.Code, error) {
	bad := op.s.Mismatch(op.reads.Rec, region, op.reads.Tier)
	if op.restoreFromBelow(bad) {
		return status.Again, nil
	}
	return op.failRestore(bad)
}
