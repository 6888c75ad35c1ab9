package operation

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/path"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// fenceSources returns the event behind which a transfer may read a checkpoint from arrays on a device, if the capture may need a transfer. Its
// caller calls it before the engine begins the capture: a stream that takes no event must not leave a capture behind.
func (op *capture) fenceSources(size int64, stays bool) ([]device.Event, error) {
	s, a := op.s, op.device
	if a == nil || !stays && size+checkpoint.CacheLine <= s.Engine.Capacity(a.Tier) { // a cache line is the grain of device tiers, and a margin for their rounding
		return nil, nil
	}
	m, err := a.Fence(op.streams)
	if err != nil {
		return nil, err
	}
	return []device.Event{m}, nil
}

// stepDeviceCapture captures arrays on a device. With room in the device's tier, it queues the copy behind the caller's work and does not wait for
// it. Otherwise it copies into the host tier.
func (op *capture) stepDeviceCapture(out *Outcome) (status.Code, error) {
	if !op.placed && op.slot == nil {
		if code, err := op.lockedPoll(out); code != status.Again {
			return code, err
		}
	}
	if op.placed {
		return op.queueCapture(out)
	}
	return op.captureToHost(out)
}

// queueCapture queues the copy into the device's tier. The checkpoint counts as captured from then on, since all later accesses to the slot are
// queued behind the copy.
func (op *capture) queueCapture(out *Outcome) (status.Code, error) {
	s, a, rec := op.s, op.device, op.capture.Rec
	began := s.Now()
	b := rec.Version
	var sums device.Sums
	lane, err := a.Join(op.streams)
	if err == nil {
		var m device.Event
		m, err = a.QueueWrite(lane, devicememory.Captures, op.at, rec.Size, func() (err error) {
			sums, err = devicememory.Gather(lane, a.Address(op.at), b.Layout.Spans, op.regions, s.Set.Checksum)
			return err
		})
		if op.event = m; err == nil {
			err = a.Rejoin(op.streams, m)
		}
	}
	op.copied += s.Now() - began
	s.Host.FirstCapture()
	return op.endQueued(out, b, sums, err)
}

// endQueued tells the engine whether the copy was queued.
func (op *capture) endQueued(out *Outcome, b *checkpoint.Version, sums device.Sums, err error) (status.Code, error) {
	s := op.s
	s.Lock()
	defer s.Leave()
	s.Orphans.Sweep()
	if op.event != nil {
		b.Pending, op.event = &pending.Capture{Device: op.device, Event: op.event, Sums: sums}, nil
	}
	s.Line.Took = op.copied
	s.Engine.EndCapture(s.Now(), op.capture, err == nil)
	s.Line.Took = 0
	if err != nil {
		return op.endCapture(out, s.Explain(devicememory.Explain(err), nil))
	}
	return op.endCapture(out, nil)
}

// captureToHost copies from the device to a slot of the host tier and waits for the copy. Checksums that the device did not compute are computed on the
// CPU.
func (op *capture) captureToHost(out *Outcome) (status.Code, error) {
	b := op.capture.Rec.Version
	if op.job == nil {
		if op.async == nil {
			a, slot, spans := op.device, op.slot, b.Layout.Spans
			ready, err := a.Fence(op.streams)
			if err != nil {
				return op.endQueued(out, b, nil, err)
			}
			op.startAsync(a, ready, func(gate *borrow.Source) (err error) {
				op.hashed, err = path.CaptureToHost(op.s, a, gate, slot, spans)
				return err
			})
		}
		if done, err := op.async.ended(); !done {
			return status.Pending, nil
		} else if err != nil {
			return op.endQueued(out, b, nil, err)
		}
		if op.hashed != nil {
			return op.endHashed(out)
		}
		op.job = slots.VerifyJob(op.s, op.slot, b.Layout.Spans)
	}
	if !op.copy() {
		return status.Again, nil
	}
	defer op.freeJob()
	return op.endCopyIn(out)
}

// endHashed ends a capture whose checksums are known.
func (op *capture) endHashed(out *Outcome) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	version := op.capture.Rec.Version
	version.Keep(op.hashed.Regions)
	version.KeepLeaves(op.hashed.Leaves)
	return op.endWithBytes(out)
}
