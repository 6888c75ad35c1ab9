package operation

import (
	"errors"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// pollOnDevice continues a restore whose bytes lie on a device. It gives a lease without reading the bytes: they were captured there, or a load
// brought them and the device verifies it, before or afterwards. In debug mode, and with VerifyAlways, the bytes are read first. The lock is held.
func (op *restore) pollOnDevice(out *Outcome, a *devicememory.Memory) (status.Code, error) {
	if err := op.wrong(); err != nil {
		return op.failRestore(op.s.Explain(err, op.restore.Rec))
	}
	op.at, op.placed = op.s.Engine.Fragment(op.restore.Rec, op.restore.Tier).Offset, true
	if op.lends && !op.readsBeforeLending() {
		if err := op.lendOn(a); err != nil {
			return op.failRestore(op.s.Explain(devicememory.Explain(err), op.restore.Rec))
		}
		return op.giveFromDevice(out)
	}
	return status.Again, nil
}

// readsBeforeLending tells whether bytes on a device are read before they are handed over: to verify them, or, in debug mode, to compare them when
// the lease ends.
func (op *restore) readsBeforeLending() bool {
	return op.s.Set.Verifies == config.VerifyAlways || op.s.Set.Debug && op.lends
}

// lendOn makes the caller's streams wait for the work that writes the slot. If the caller may write into the lease, the streams also wait for the
// work that reads the slot.
func (op *restore) lendOn(a *devicememory.Memory) error {
	streams := op.streams
	if len(streams) == 0 {
		streams = []uint64{0}
	}
	return a.Lend(streams, op.at, op.restore.Rec.Size, op.restore.Last)
}

// stepDeviceRestore restores bytes that lie on a device. Copies within the device are queued in the order of the caller's streams; other copies go
// through host memory.
func (op *restore) stepDeviceRestore(out *Outcome) (status.Code, error) {
	a := op.s.DeviceOf(op.restore.Rec)
	if op.readsBeforeLending() && !op.check {
		if code, err := op.verifySlot(out, a); code != status.Again {
			return code, err
		}
	}
	if op.lends {
		return op.endWithSlot(out, op.lendOn(a))
	}
	if op.device == a && allOnDevice(op.regions) && op.extracted(a) {
		return op.endWithSlot(out, op.scatter(a))
	}
	return op.stageToHost(out, a)
}

// verifySlot computes the checksums of a slot, waits for them and verifies them. In debug mode it keeps them for the lease.
func (op *restore) verifySlot(out *Outcome, a *devicememory.Memory) (status.Code, error) {
	s, rec := op.s, op.restore.Rec
	b := rec.Version
	if err := pending.Complete(s, a, b); err != nil {
		return op.endOnDevice(out, err)
	}
	if b.Sums == nil && !s.Set.Debug {
		op.check = true
		return status.Again, nil
	}
	var sums []uint64
	err := a.InOwnLane(func(lane device.Lane) (err error) {
		sums, err = a.Checksums(lane, op.at, &b.Layout.Layout)
		return err
	})
	if err != nil {
		return op.endOnDevice(out, err)
	}
	if b.Sums != nil && s.Set.Verifies != config.VerifyOff {
		if bad := checkpoint.Differing(sums, b.Sums); len(bad) > 0 {
			return op.endOnDevice(out, s.Mismatch(rec, int(bad[0]), op.restore.Tier))
		}
	}
	op.check, op.lent = true, sums
	return status.Again, nil
}

// allOnDevice tells whether all destinations lie on the device.
func allOnDevice(regions []model.Region) bool {
	for i := range regions {
		if regions[i].Place == 0 && regions[i].Bytes > 0 {
			return false
		}
	}
	return true
}

// scatter queues the copy into the destinations behind the caller's work.
func (op *restore) scatter(a *devicememory.Memory) error {
	lane, err := a.Join(op.streams)
	if err != nil {
		return err
	}
	began := op.s.Now()
	spans := op.restore.Rec.Version.Layout.Spans
	m, err := a.QueueRead(lane, devicememory.Restores, op.at, op.restore.Rec.Size, func() error {
		if op.parts != nil {
			return op.extract(a, lane)
		}
		return lane.Scatter(devicememory.Pieces(a.Address(op.at), spans, op.want, op.regions))
	})
	op.copied += op.s.Now() - began
	if m != nil {
		defer m.Drop()
	}
	if err != nil {
		return err
	}
	return a.Rejoin(op.streams, m)
}

func (op *restore) endOnDevice(out *Outcome, err error) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	if err != nil {
		return op.failRestore(op.s.Explain(devicememory.Explain(err), op.restore.Rec))
	}
	return op.endRestore(out)
}

// endWithSlot is endOnDevice for bytes that were lent or copied from their slot. It fails if a verification has found them wrong meanwhile.
func (op *restore) endWithSlot(out *Outcome, err error) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	if err == nil {
		err = op.wrong()
	}
	if err != nil {
		return op.failRestore(op.s.Explain(devicememory.Explain(err), op.restore.Rec))
	}
	return op.giveFromDevice(out)
}

// giveFromDevice hands over bytes whose copy to the device, or whose verification there, may not have ended. The lock is held.
func (op *restore) giveFromDevice(out *Outcome) (status.Code, error) {
	if r := op.restore; !op.check && op.s.Engine.Loading(r.Rec, r.Tier) {
		op.s.Findings.Lend(r.Rec, op.want)
	}
	return op.endRestore(out)
}

// stageToHost copies the bytes to a private mapping in host memory. The restore continues from there.
func (op *restore) stageToHost(out *Outcome, a *devicememory.Memory) (status.Code, error) {
	if op.parts != nil {
		if code, err := op.stageParts(out, a); code != status.Again {
			return code, err
		}
		return op.staged()
	}
	l := op.restore.Rec.Version.Layout
	if op.private == nil {
		m, err := memory.Map("private restore", max(l.Slot, 1))
		if err != nil {
			return op.endOnDevice(out, status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(l.Slot)))
		}
		op.private = m
	}
	bytes := op.private.Bytes(0, op.private.Size())
	if op.async == nil {
		at, spans := op.at, slots.Selected(l.Spans, op.want)
		op.startAsync(a, nil, func(gate *borrow.Source) error { return slots.Bring(op.s, a, gate, bytes, at, spans) })
	}
	done, err := op.async.ended()
	switch {
	case !done:
		return status.Pending, nil
	case err != nil:
		return op.endOnDevice(out, err)
	}
	op.async = nil
	if err := pending.Complete(op.s, a, op.restore.Rec.Version); err != nil {
		return op.endOnDevice(out, err)
	}
	return op.staged()
}

// staged continues with the bytes in the private mapping.
func (op *restore) staged() (status.Code, error) {
	op.placed, op.slot = false, op.private.Bytes(0, op.private.Size())
	op.check = op.restore.Rec.Version.Sums != nil && op.s.Set.Verifies != config.VerifyOff
	return status.Again, nil
}

// sendsToDevice tells whether destinations lie on a device while the bytes do not.
func (op *restore) sendsToDevice() bool { return op.device != nil && !op.placed && !op.lends }

// stepSent ends a restore whose bytes go from host memory to a device: in the order of the caller's streams if the device can access the bytes, and
// otherwise through a bounce buffer.
func (op *restore) stepSent(out *Outcome) (status.Code, error) {
	a := op.device
	if op.event == nil && op.async == nil {
		if err := op.dispatch(a); err != nil {
			return op.endOnDevice(out, err)
		}
	}
	if op.async != nil {
		done, err := op.async.ended()
		if !done {
			return status.Pending, nil
		}
		return op.endOnDevice(out, err)
	}
	passed, err := op.event.Passed()
	if err == nil && !passed {
		return status.Pending, nil // the bytes are in memory of the store, which must stay until the device has read them
	}
	op.dropEvent()
	return op.endOnDevice(out, errors.Join(op.failed, err))
}

// dispatch begins the copies to the destinations.
func (op *restore) dispatch(a *devicememory.Memory) error {
	s, slot, spans := op.s, op.slot, op.sources()
	if !slots.Reaches(s, slot) {
		ready, err := a.Fence(op.streams)
		if err == nil {
			op.startAsync(a, ready, func(gate *borrow.Source) error { return slots.ScatterFromHost(s, a, gate, slot, spans) })
		}
		return err
	}
	lane, err := a.Join(op.streams)
	if err != nil {
		return err
	}
	op.failed = slots.SendFromHost(s, lane, slot, spans, op.regions)
	m, err := lane.Event()
	if err != nil {
		return errors.Join(op.failed, err)
	}
	op.watch(a, m)
	if op.failed == nil {
		op.failed = a.Rejoin(op.streams, m)
	}
	return nil
}

// releaseLater keeps the bytes that a device still reads for a restore that was given up, until the device has finished. The lock is held.
func (op *restore) releaseLater() {
	s, a, m, private := op.s, op.device, op.event, op.private
	op.event, op.private = nil, nil
	s.Users++
	safego.Go("lingering copy", func() {
		_ = a.Wait(m) // no caller is left to receive an error
		if private != nil {
			_ = private.Unmap() // no other goroutine uses the mapping
		}
		s.Lock()
		defer s.Leave()
		s.Engine.EndRestore(s.Now(), op.restore)
		s.Users--
	})
}

// sources returns the spans in host memory of what goes to the destinations, in their order.
func (op *restore) sources() []model.Span {
	if op.parts != nil {
		return op.packs
	}
	return slots.Selected(op.restore.Rec.Version.Layout.Spans, op.want)
}

// wrong returns the error of a load that a restore has waited for; nil when its bytes may be handed over.
func (op *restore) wrong() error {
	s, r := op.s, op.restore
	if s.Engine.Complete(r.Rec, r.Tier) {
		return nil
	}
	if why := s.Findings.Suspect(r.Rec); why != nil {
		return s.Explain(why, r.Rec)
	}
	return s.Mismatch(r.Rec, status.RegionNone, r.Tier) // the copy went because the store was closed meanwhile
}
