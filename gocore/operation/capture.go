package operation

import (
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
	"velocpy/gocore/transfer/path"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// CheckpointArgs describes a checkpoint. The core reads Layout and the shapes in Regions during the call only. It reads the regions' bytes until the
// operation has ended. With SourceStays it reads them until the ticket is captured or gone.
type CheckpointArgs struct {
	Key         model.Key
	AutoKey     bool
	Regions     []model.Region
	Layout      []byte
	Slot        int64
	Meta        []byte
	SourceStays bool
	Patient     bool
	Streams     []uint64 // the caller's streams; regions on a device are read in stream order behind their work
	Tier        int      // a tier of the contract, or TierNone
	FD          int32
}

// capture is the operation of a checkpoint.
type capture struct {
	copying
	capture *engine.Capture
	asked   int64          // time of the call, ns
	source  *borrow.Source // the caller's memory that a transfer reads, when the operation itself copies nothing
	time    moment         // of the group that the capture is made with; zero: the clocks tell
	hashed  *path.Sums     // computed by the device; written by the goroutine of async until it has ended

	blocker      engine.Blocker         // cause of the present wait for room …
	blockedSince int64                  // … and since when; the time before that is in blocked
	blocked      [engine.Blockers]int64 // ns of waited, by cause
}

func newCapture(s *cache.Cache, fd int32) *capture {
	op := &capture{copying: copying{watching: watching{Op: begun(s, fd)}}}
	op.does = op
	return op
}

// undo is part of operation.
func (op *capture) undo() (taken *Outcome) {
	if op.cancelCapture() {
		taken = new(Outcome)
		_, _ = op.endCapture(taken, nil) // err is nil: the code is OK
	}
	return taken
}

// release is part of operation.
func (op *capture) release() {
	op.freeJob()
	op.dropEvent()
}

// disown is part of operation.
func (op *capture) disown() {
	if op.source != nil {
		op.source.Abandon()
	}
	op.halt()
}

// account is part of operation.
func (op *capture) account(c *figures.Counters) {
	op.woke(op.now())
	c.CaptureWait += op.waited
	c.CaptureCopy += op.copied
	op.s.Causes.Add(op.blocked)
}

// waits records that the caller is about to wait for room, and for which cause.
func (op *capture) waits(now int64) (status.Code, error) {
	if op.since == 0 {
		op.blocker, op.blockedSince = op.s.Engine.Blocker(op.capture), now
		op.s.Blocked[op] = struct{}{}
	}
	return op.Op.waits(now)
}

// woke records that the wait is over.
func (op *capture) woke(now int64) {
	op.endBlocked(now)
	op.Op.woke(now, op.capture.Rec)
}

// Checkpoint begins a checkpoint. A small one that finds room ends within the call.
func Checkpoint(s *cache.Cache, h History, a *CheckpointArgs, out *Outcome) (*Op, status.Code, error) {
	op := newCapture(s, a.FD)
	returned := false
	defer op.disownUnless(&returned)
	if !a.SourceStays { // otherwise the device tier is only the last resort
		if err := s.GrowFor(a.Regions, a.Slot); err != nil {
			return &op.Op, status.CodeOf(err), err
		}
	}
	code, err := op.open(h, a, out)
	if code == status.Again {
		code, err = op.copyIn(out)
	}
	returned = true
	return &op.Op, code, err
}

// open begins a capture. It returns Again when the copy can begin.
func (op *capture) open(h History, a *CheckpointArgs, out *Outcome) (status.Code, error) {
	s := op.s
	if err := s.EnterToWrite(); err != nil {
		return status.CodeOf(err), err
	}
	defer s.Leave()
	if err := op.begin(h.Engine(), a); err != nil {
		return status.CodeOf(err), err
	}
	return op.pollCapture(out)
}

func (op *capture) begin(h *engine.History, a *CheckpointArgs) error {
	s := op.s
	if a.Slot < 0 || a.Slot > config.MostBytes {
		return status.New(status.Invalid, "a slot of %s", quantity.Exact(a.Slot))
	}
	if err := checkMemory(a.Regions); err != nil {
		return err
	}
	dev, err := s.DeviceOfRegions(a.Regions)
	if err != nil {
		return err
	}
	if dev != nil && dev.Device.Lost() != nil {
		return devicememory.Explain(dev.Device.Lost())
	}
	down, err := s.TierIndex(a.Tier)
	if err != nil {
		return err
	}
	l, err := s.Layouts.Take(a.Layout, a.Regions, a.Slot)
	if err != nil {
		return err
	}
	key := a.Key
	if a.AutoKey {
		key = s.Engine.AutoKey(h)
	}
	size, align := checkpoint.Room(a.Slot)
	b := &checkpoint.Version{Layout: l, Meta: string(a.Meta), Time: op.wall()}
	o := engine.CaptureOptions{SourceStays: a.SourceStays, Patient: a.Patient, Down: down, Top: len(s.Devices)}
	if dev != nil {
		o.Top = dev.Tier
	}
	o.Shape = s.ShapeOf(h.Name, l, size, o.Top)
	op.device, op.streams, op.asked = dev, append([]uint64(nil), a.Streams...), op.now()
	ready, err := op.fenceSources(size, a.SourceStays)
	if err != nil {
		s.Layouts.Give(l)
		return err
	}
	s.RetryForCaller()
	c, err := s.Engine.BeginCapture(op.now(), h, key, size, align, b, o)
	if err != nil || !c.Spill || c.Err != nil {
		devicememory.DropAll(ready)
	}
	if err != nil {
		return s.Explain(err, nil)
	}
	op.capture, op.regions = c, a.Regions
	if dev != nil && o.Shape != nil && !c.Spill {
		s.BeginScheduled(h.Name, b, size)
	}
	switch {
	case c.Spill && c.Err == nil:
		op.source = borrow.New(a.Regions)
		if len(ready) > 0 {
			op.source.Ready = ready[0]
		}
		b.Pending, op.regions = &pending.Capture{Source: op.source}, nil
	case c.Phase == engine.Waiting || size > oneSlice:
		op.regions = model.CloneRegions(a.Regions)
	}
	if !a.SourceStays || !c.Spill { // otherwise the caller does not wait for the transfer
		c.Notify = &op.Op
	}
	op.live()
	return nil
}

// checkMemory rejects regions whose shape and size disagree. It cannot tell whether the addresses are mapped.
func checkMemory(regions []model.Region) error {
	for i := range regions {
		if err := regions[i].Mem.Check(regions[i].Bytes); err != nil {
			return status.Wrap(status.Invalid, err, "the shape and the size disagree").AtRegion(i)
		}
		if regions[i].Bytes > 0 && regions[i].Mem.Base == nil {
			return status.New(status.Invalid, "a null pointer with %s", quantity.Exact(regions[i].Bytes)).AtRegion(i)
		}
	}
	return nil
}

// step is part of operation. A source whose capture has failed is not read any more.
func (op *capture) step(out *Outcome) (status.Code, error) {
	code, err := op.copyIn(out)
	if err != nil && op.source != nil {
		op.source.Abandon()
	}
	return code, err
}

// copyIn copies the bytes once there is room.
func (op *capture) copyIn(out *Outcome) (status.Code, error) {
	if op.device != nil {
		return op.stepDeviceCapture(out)
	}
	if op.slot == nil {
		if code, err := op.lockedPoll(out); code != status.Again {
			return code, err
		}
	}
	if op.job == nil {
		op.job = slots.GatherJob(op.s, op.slot, op.regions)
	}
	if !op.copy() {
		return status.Again, nil
	}
	defer op.freeJob()
	return op.endCopyIn(out)
}

func (op *capture) lockedPoll(out *Outcome) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	return op.pollCapture(out)
}

// pollCapture ends the operation if it succeeded or failed without a copy by this operation. It returns Again when a copy can begin, and Pending
// while the capture waits for room. The lock is held.
func (op *capture) pollCapture(out *Outcome) (status.Code, error) {
	s, c := op.s, op.capture
	now := op.now()
	switch {
	case op.failed != nil:
		return op.endCapture(out, s.Explain(op.failed, nil))
	case c.Err != nil:
		return op.endCapture(out, s.Explain(c.Err, nil))
	case c.Phase == engine.Ended || c.Notify == nil:
		return op.endCapture(out, nil)
	case c.Phase == engine.Waiting && s.Closing:
		if op.cancelCapture() {
			return op.endCapture(out, nil)
		}
		return op.endCapture(out, cache.ErrClosed)
	case c.Phase == engine.Waiting:
		return op.waits(now)
	}
	op.woke(now)
	if s.DeviceTier(c.Tier) != nil {
		op.at, op.placed = s.Engine.Fragment(c.Rec, c.Tier).Offset, true
	} else {
		op.slot = slots.Slot(s, c.Rec, c.Tier)
	}
	return status.Again, nil
}

// endCopyIn tells the engine that the bytes are in the slot.
func (op *capture) endCopyIn(out *Outcome) (status.Code, error) {
	s, c := op.s, op.capture
	s.Lock()
	defer s.Leave()
	if s.Set.Checksum {
		c.Rec.Version.Keep(op.job.Sums())
		slots.KeepLeaves(c.Rec.Version, op.job)
	}
	return op.endWithBytes(out)
}

// endWithBytes tells the engine that the bytes are in the slot. The version has their checksums, and the lock is held.
func (op *capture) endWithBytes(out *Outcome) (status.Code, error) {
	s, c := op.s, op.capture
	if s.Set.Verifies == config.VerifyMoved && !sampled(c.Rec.ID) {
		s.Engine.Fragment(c.Rec, c.Tier).Verified = true
	}
	s.Line.Took = op.copied
	s.Engine.EndCapture(op.now(), c, true)
	s.Line.Took = 0
	return op.endCapture(out, nil)
}

// sampled tells whether the first lease of a checkpoint is verified when the bytes are still in the memory where they were captured. It selects one
// checkpoint in 16, spread over the ticket numbers, so that a pattern in the application does not decide which.
//
// Such a verification reads the bytes that the application is about to read. On two processors that share the memory's bandwidth, verifying all
// leases took half as long again as reading the bytes.
func sampled(id uint64) bool {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: its multiples spread evenly over the 64-bit range
	return id*golden>>60 == 0
}

// endCapture ends the operation. The lock is held.
func (op *capture) endCapture(out *Outcome, err *status.Error) (status.Code, error) {
	rec := op.capture.Rec
	op.end()
	if !op.s.IsDurable() {
		op.s.Counted(rec)
	}
	l := rec.Version.Layout
	out.Ticket, out.Key, out.Waited, out.Layout, out.Slot = rec.ID, rec.Key, op.waited, l.ID, l.Slot
	out.HintsLeft = int64(rec.Hist.HintsLeft())
	op.s.EndScheduled(rec, err == nil && op.s.DeviceTier(op.capture.Tier) != nil)
	if err != nil {
		return err.Code, err
	}
	if op.device != nil {
		op.s.Host.Captured(op.asked, op.s.Now(), rec.Size)
	}
	return status.OK, nil
}

// cancelCapture undoes a capture. It returns true when it cannot, because the bytes were taken and are being made durable. A transfer that already
// reads the source ends by itself after the source was abandoned. The lock is held.
func (op *capture) cancelCapture() (taken bool) {
	s, c := op.s, op.capture
	switch {
	case c.Phase == engine.Ended:
		return c.Err == nil
	case c.Rec.Version.Serial != 0:
		s.Disk.Show(c.Rec)
		c.Notify, taken = nil, true
	case !s.Engine.CancelCapture(s.Now(), c):
		c.Notify = nil
	}
	return taken
}

// refuse is part of operation. A capture whose bytes are written and being made durable succeeds: its ticket tells when they are durable.
func (op *capture) refuse(why error) {
	if op.over || op.failed != nil || !op.capture.Spill || op.s.Engine.IsMemory(op.capture.Tier) {
		return
	}
	if !op.cancelCapture() {
		op.failed = why
		op.source.Refuse()
	}
	op.notifier.notify()
}

// UpdateCause updates the cause for which the capture waits. The lock is held.
func (op *capture) UpdateCause(now int64) {
	if op.capture.Phase == engine.Waiting {
		op.noteBlocked(now, op.s.Engine.Blocker(op.capture))
	}
}

// Cause returns the cause for which the capture waits.
func (op *capture) Cause() engine.Blocker { return op.blocker }

func (op *capture) noteBlocked(now int64, by engine.Blocker) {
	op.blocked[op.blocker] += now - op.blockedSince
	op.blocker, op.blockedSince = by, now
}

func (op *capture) endBlocked(now int64) {
	if _, waits := op.s.Blocked[op]; waits {
		op.noteBlocked(now, op.blocker)
		delete(op.s.Blocked, op)
	}
}
