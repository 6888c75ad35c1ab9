package store

import (
	"errors"

	"velocpy/gocore/device"
	"velocpy/gocore/engine"
)

// cut is how much of a transfer is put into a lane at once, and two cuts are in the lane at a time: the link never rests, and what somebody
// waits for, in another lane and in one piece, gets its turn in between. Half as much costs a few hundredths of the rate both ways.
const cut = 32 << 20

// inCuts puts the copy of end bytes into a lane, cut by cut, and returns the last one's mark. After an error nothing of it is under way.
func (a *accelerator) inCuts(end, size int64, put func(from, n int64) (device.Mark, error)) (device.Mark, error) {
	var last device.Mark
	for from := int64(0); from < end; from += size {
		m, err := put(from, min(size, end-from))
		if last != nil {
			if waited := a.finish(last, nil); err == nil {
				err = waited
			}
		}
		if err != nil {
			return nil, a.finish(m, err)
		}
		last = m
	}
	return last, nil
}

// move carries a transfer out, whatever it takes. It runs in a worker, without the lock: the engine holds both places for it.
func (w *worker) move(x *engine.Transfer) *moved {
	a := w.crew.device
	if a == nil || x.Kind == engine.Fetch || x.Kind == engine.Spill && w.s.home(x.Rec) != a {
		return w.s.move(x)
	}
	lane, err := w.laneOf(a)
	if err != nil {
		return &moved{err: err}
	}
	switch b := x.Rec.Body.(*body); x.Kind {
	case engine.Spill:
		return w.s.goStraight(a, lane, x, b)
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
	switch {
	case w.crew.demanded:
		priority = device.Waited
	case w.crew.direction == engine.Up:
		priority = device.Ahead
	}
	lane, err := a.dev.Lane(priority)
	if err != nil {
		return nil, deviceError(err)
	}
	w.lane = lane
	return lane, nil
}

// flushFrom copies a checkpoint from a device to the host tier, behind the checksums that the device took with the capture. The time that it waits
// for the capture is not the link's.
func (s *Store) flushFrom(a *accelerator, lane device.Lane, x *engine.Transfer, b *body) error {
	t := s.unsettled(a, b)
	if err := t.taken(); err != nil {
		return err
	}
	x.Begun(s.now())
	if err := t.fetch(lane); err != nil { // no turn of its own: the link would change over to it and back
		return err
	}
	slot := s.host.Bytes(x.ToOff, x.Rec.Size)
	last, err := a.inCuts(b.layout.end(), cut, func(from, n int64) (device.Mark, error) {
		if from > 0 { // with the first cut on its way, so that the link does not rest
			if err := t.arrived(); err != nil {
				return nil, err
			}
		}
		return a.reading(lane, x.FromOff+from, n, func() error { return lane.Copy(device.AddressOf(slot[from:]), a.at(x.FromOff+from), n) })
	})
	return a.finish(last, errors.Join(err, t.arrived()))
}

// loadTo copies a checkpoint from the host tier to a device and has the device verify it.
func (s *Store) loadTo(a *accelerator, lane device.Lane, x *engine.Transfer, b *body) error {
	slot := s.host.Bytes(x.FromOff, x.Rec.Size)
	size := int64(cut)
	if x.Urgent {
		size = max(b.layout.end(), 1)
	}
	last, err := a.inCuts(b.layout.end(), size, func(from, n int64) (device.Mark, error) {
		return a.writing(lane, x.ToOff+from, n, func() error { return lane.Copy(a.at(x.ToOff+from), device.AddressOf(slot[from:]), n) })
	})
	if err != nil || s.set.verify == verifyOff || b.sums == nil {
		return a.finish(last, err)
	}
	if last != nil {
		last.Drop() // the inspection is behind it in the same lane
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
