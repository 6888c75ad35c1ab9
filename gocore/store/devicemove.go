package store

import (
	"errors"

	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// cut is how much of a transfer is put into a lane at once. Half as much costs a few hundredths of the rate both ways.
const cut = 32 << 20

func (s *Store) oneCut() int64 { return s.set.Cut }

// move carries a transfer out, whatever it takes. It runs in a worker, without the lock: the engine holds both places for it.
func (w *worker) move(x *engine.Transfer) *moved {
	a := w.pool.device
	if a == nil || x.Kind == engine.Fetch || x.Kind == engine.Spill && w.s.deviceOf(x.Rec) != a {
		return w.moveByHost(x)
	}
	lane, err := w.laneOf(a)
	if err != nil {
		return &moved{err: err}
	}
	switch b := x.Rec.Body.(*body); x.Kind {
	case engine.Spill:
		return w.s.moveBorrowed(a, lane, x, b)
	case engine.Flush:
		return &moved{err: w.s.flushFrom(a, lane, x, b)}
	default:
		return w.s.loadTo(a, lane, x, b)
	}
}

// laneOf is the worker's own lane.
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

// flushFrom copies a checkpoint from a device to the host tier, behind the checksums that the device took with the capture. The time that it waits
// for the capture is not the link's.
func (s *Store) flushFrom(a *devicememory.Memory, lane device.Lane, x *engine.Transfer, b *body) error {
	end := b.layout.end()
	s.host.Watermark().Await(x.ToOff + min(s.oneCut(), end)) // before restores have to wait for what this settles
	t := s.beginCompletion(a, b)
	if err := t.awaitCopy(); err != nil {
		return err
	}
	x.Begun(s.now())
	if err := t.queueChecksums(lane); err != nil { // no turn of its own: the link would change over to it and back
		return err
	}
	slot := s.host.Bytes(x.ToOff, x.Rec.Size)
	last, err := a.CopyInCuts(end, s.oneCut, func(from, n int64) (device.Mark, error) {
		if b.gone.Load() {
			return nil, engine.ErrStopped
		}
		if from > 0 { // with the first cut on its way, so that the link does not rest
			if err := t.awaitChecksums(); err != nil {
				return nil, err
			}
			x.Rested(int64(s.host.Watermark().Await(x.ToOff + from + n)))
		}
		return a.QueueRead(lane, devicememory.Flushes, x.FromOff+from, n, func() error { return lane.Copy(device.AddressOf(slot[from:]), a.Address(x.FromOff+from), n) })
	})
	return a.Finish(last, errors.Join(err, t.awaitChecksums()))
}

// loadTo copies a checkpoint from the host tier to a device and has the device verify it. Restores are given it as soon as all of that is in the
// lane, as the work of their callers' streams is then put behind it; what the device finds out later is told belatedly.
func (s *Store) loadTo(a *devicememory.Memory, lane device.Lane, x *engine.Transfer, b *body) *moved {
	slot := s.host.Bytes(x.FromOff, x.Rec.Size)
	last, err := a.CopyInCuts(b.layout.end(), func() int64 { return s.cutOf(x) }, func(from, n int64) (device.Mark, error) {
		return a.QueueWrite(lane, devicememory.Loads, x.ToOff+from, n, func() error { return lane.Copy(a.Address(x.ToOff+from), device.AddressOf(slot[from:]), n) })
	})
	if err != nil {
		return &moved{err: a.Finish(last, err)}
	}
	if s.set.verify == verifyOff || b.sums == nil {
		s.queued(x)
		if err = a.Finish(last, nil); err != nil {
			err = errors.Join(err, a.AwaitRange(x.ToOff, x.Rec.Size)) // what is copied must stay until it has been
		}
		return &moved{err: err}
	}
	sums, m, err := a.QueueChecksums(lane, devicememory.Loads, x.ToOff, &b.layout.Layout)
	if err != nil {
		return &moved{err: a.Finish(last, err)}
	}
	if last != nil {
		last.Drop() // the checksums are behind it in the same lane
	}
	if s.set.verify != verifyAlways { // or else every restore takes them itself, and waits
		s.queued(x)
	}
	there, err := a.AwaitChecksums(sums, m)
	if err != nil {
		return &moved{err: errors.Join(err, a.AwaitRange(x.ToOff, x.Rec.Size))} // what is copied must stay until it has been
	}
	bad := differing(there, b.sums)
	if len(bad) > 0 {
		err = damaged(int(bad[0]), s.tiers[x.From])
	}
	return &moved{bad: bad, err: err}
}

// cutOf is how much of a load goes into its lane next: all that is left once somebody waits for it.
func (s *Store) cutOf(x *engine.Transfer) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.Urgent || s.eng.Awaited(x.Rec) {
		return max(x.Rec.Size, 1)
	}
	return s.set.Cut
}

// queued lets restores have what a load has put into its lane, unless it was wrong the last time.
func (s *Store) queued(x *engine.Transfer) {
	s.mu.Lock()
	defer s.leave()
	if s.deferred.suspects[x.Rec] == nil {
		s.eng.Queued(s.now(), x)
	}
}

// differing returns the regions whose checksums are not the same.
func differing(sums, other []uint64) (bad []int32) {
	for i, sum := range sums {
		if sum != other[i] {
			bad = append(bad, int32(i))
		}
	}
	return bad
}
