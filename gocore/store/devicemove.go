package store

import (
	"velocpy/gocore/device"
	"velocpy/gocore/engine"
)

// cut is how much of a transfer is put into a lane at once: what somebody waits for, in another lane, gets its turn in between.
const cut = 32 << 20

// move carries a transfer out, whatever it takes. It runs in a worker, without the lock: the engine holds both places for it.
func (w *worker) move(x *engine.Transfer) *moved {
	a := w.crew.device
	if a == nil || x.Kind != engine.Flush && x.Kind != engine.Load {
		return w.s.move(x)
	}
	lane, err := w.laneOf(a)
	if err != nil {
		return &moved{err: err}
	}
	switch b := x.Rec.Body.(*body); x.Kind {
	case engine.Flush:
		return &moved{err: w.s.flushFrom(a, lane, x, b)}
	default:
		return &moved{err: w.s.loadTo(a, lane, x, b)}
	}
}

// laneOf is the worker's own lane.
func (w *worker) laneOf(a *accelerator) (device.Lane, error) {
	if w.lane != nil {
		return w.lane, nil
	}
	priority := device.Behind
	if w.crew.direction == engine.Up {
		priority = device.Ahead
	}
	lane, err := a.dev.Lane(priority)
	if err != nil {
		return nil, deviceError(err, a.tier)
	}
	w.lane = lane
	return lane, nil
}

// flushFrom copies a checkpoint from a device to the host tier and takes over the checksums that the device took with the capture.
func (s *Store) flushFrom(a *accelerator, lane device.Lane, x *engine.Transfer, b *body) error {
	slot := s.host.Bytes(x.ToOff, x.Rec.Size)
	for from, end := int64(0), b.layout.end(); from < end; from += cut {
		n := min(cut, end-from)
		m, err := a.reading(lane, x.FromOff+from, n, func() error { return lane.Copy(addressOf(slot[from:]), a.at(x.FromOff+from), n) })
		if err := a.finish(m, err); err != nil {
			return err
		}
	}
	return s.settleCapture(a, b)
}

// settleCapture waits until a device has taken the bytes of a capture and takes their checksums over.
func (s *Store) settleCapture(a *accelerator, b *body) error {
	s.mu.Lock()
	var mark device.Mark
	if b.coming != nil && b.coming.mark != nil {
		mark = b.coming.mark.Keep()
	}
	s.mu.Unlock()
	if mark == nil {
		return nil
	}
	if err := a.wait(mark); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.arrived()
	return nil
}

// loadTo copies a checkpoint from the host tier to a device and has the device verify it.
func (s *Store) loadTo(a *accelerator, lane device.Lane, x *engine.Transfer, b *body) error {
	slot := s.host.Bytes(x.FromOff, x.Rec.Size)
	for from, end := int64(0), b.layout.end(); from < end; from += cut {
		n := min(cut, end-from)
		m, err := a.writing(lane, x.ToOff+from, n, func() error { return lane.Copy(a.at(x.ToOff+from), addressOf(slot[from:]), n) })
		if err := a.finish(m, err); err != nil {
			return err
		}
	}
	if s.set.verify == verifyOff || b.sums == nil {
		return nil
	}
	bad, err := s.inspectOn(a, lane, x.ToOff, b)
	if err != nil {
		return err
	}
	return damaged(bad)
}

// inspectOn takes the checksums of a slot on its device and returns the first region that is not what was captured, or -1.
func (s *Store) inspectOn(a *accelerator, lane device.Lane, offset int64, b *body) (int, error) {
	var sums device.Sums
	m, err := a.reading(lane, offset, b.layout.slot, func() (err error) {
		sums, err = lane.Hash(dense(a.at(offset), b.layout.spans))
		return err
	})
	if err := a.finish(m, err); err != nil {
		return -1, err
	}
	for i, sum := range sums.Take() {
		if sum != b.sums[i] {
			return i, nil
		}
	}
	return -1, nil
}
