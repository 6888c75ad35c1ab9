package workers

import (
	"errors"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/pending"
)

func (s *Workers) oneCut() int64 { return s.Set.Cut }

// laneOf returns the worker's own lane.
func (w *worker) laneOf(a *devicememory.Memory) (device.Lane, error) {
	if w.lane != nil {
		return w.lane, nil
	}
	priority := device.Behind
	switch {
	case w.pool.demanded:
		priority = device.Waited
	case w.pool.direction == engine.Up:
		priority = device.Ahead
	}
	lane, err := a.Device.Lane(priority)
	if err != nil {
		return nil, devicememory.Explain(err)
	}
	w.lane = lane
	return lane, nil
}

// flushFrom copies a checkpoint from a device to the host tier, behind the checksums that the device computed with the capture. The time waiting for
// the capture does not count as the link's.
func (s *Workers) flushFrom(a *devicememory.Memory, lane device.Lane, x *engine.Transfer, b *checkpoint.Version) error {
	end := b.Layout.End()
	s.Host.Watermark().Await(x.ToOff + min(s.oneCut(), end)) // first: from pending.Begin on, restores may have to wait for this goroutine
	t := pending.Begin(s, a, b)
	if err := t.AwaitCopy(); err != nil {
		return err
	}
	x.Begun(s.Now())
	if err := t.QueueChecksums(lane); err != nil { // in the flush's own lane: a separate one would make the link switch over and back
		return err
	}
	slot := s.Host.Bytes(x.ToOff, x.Rec.Size)
	last, err := a.CopyInCuts(end, s.oneCut, func(from, n int64) (device.Event, error) {
		if b.Gone.Load() {
			return nil, engine.ErrStopped
		}
		if from > 0 { // while the first cut is being copied, so that the link is not idle
			if err := t.AwaitChecksums(); err != nil {
				return nil, err
			}
			x.Rested(int64(s.Host.Watermark().Await(x.ToOff + from + n)))
		}
		return a.QueueRead(lane, devicememory.Flushes, x.FromOff+from, n, func() error { return lane.Copy(device.AddressOf(slot[from:]), a.Address(x.FromOff+from), n) })
	})
	return a.Finish(last, errors.Join(err, t.AwaitChecksums()))
}

// loadTo copies a checkpoint from the host tier to a device, and the device verifies it. Restores may use the copy as soon as all of this is queued,
// because their callers' streams then wait for it. A verification error that comes later is reported as a deferred one.
func (s *Workers) loadTo(a *devicememory.Memory, lane device.Lane, x *engine.Transfer, b *checkpoint.Version) *moved {
	slot := s.Host.Bytes(x.FromOff, x.Rec.Size)
	last, err := a.CopyInCuts(b.Layout.End(), func() int64 { return s.cutOf(x) }, func(from, n int64) (device.Event, error) {
		return a.QueueWrite(lane, devicememory.Loads, x.ToOff+from, n, func() error { return lane.Copy(a.Address(x.ToOff+from), device.AddressOf(slot[from:]), n) })
	})
	if err != nil {
		return &moved{err: a.Finish(last, err)}
	}
	if s.Set.Verifies == config.VerifyOff || b.Sums == nil {
		s.queued(x)
		if err = a.Finish(last, nil); err != nil {
			err = errors.Join(err, a.AwaitRange(x.ToOff, x.Rec.Size)) // the source of the copy must stay until the copy has ended
		}
		return &moved{err: err}
	}
	sums, m, err := a.QueueChecksums(lane, devicememory.Loads, x.ToOff, &b.Layout.Layout)
	if err != nil {
		return &moved{err: a.Finish(last, err)}
	}
	if last != nil {
		last.Drop() // the checksums follow it in the same lane
	}
	if s.Set.Verifies != config.VerifyAlways { // with VerifyAlways every restore verifies for itself, and waits
		s.queued(x)
	}
	there, err := a.AwaitChecksums(sums, m)
	if err != nil {
		return &moved{err: errors.Join(err, a.AwaitRange(x.ToOff, x.Rec.Size))} // the source of the copy must stay until the copy has ended
	}
	bad := checkpoint.Differing(there, b.Sums)
	if len(bad) > 0 {
		err = checkpoint.Damaged(int(bad[0]), s.Tiers[x.From])
	}
	return &moved{bad: bad, err: err}
}

// cutOf returns how many bytes of a load are queued next: all that are left once a restore waits for them.
func (s *Workers) cutOf(x *engine.Transfer) int64 {
	s.Lock()
	defer s.Unlock()
	if x.Urgent || s.Engine.Awaited(x.Rec) {
		return max(x.Rec.Size, 1)
	}
	return s.Set.Cut
}

// queued lets restores use a load whose copies are queued, unless the previous load of the record was wrong.
func (s *Workers) queued(x *engine.Transfer) {
	s.Lock()
	defer s.Leave()
	if s.Findings.Suspect(x.Rec) == nil {
		s.Engine.Queued(s.Now(), x)
	}
}
