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
	c := s.unsettled(b)
	if c != nil {
		defer c.settling.Unlock()
		if err := a.wait(c.mark.Keep()); err != nil {
			return err
		}
	}
	x.Begun(s.now())
	slot := s.host.Bytes(x.ToOff, x.Rec.Size)
	var last device.Mark
	err := c.fetch(lane) // no turn of its own: the link would change over to it and back
	if err == nil {
		last, err = a.inCuts(b.layout.end(), cut, func(from, n int64) (device.Mark, error) {
			return a.reading(lane, x.FromOff+from, n, func() error { return lane.Copy(device.AddressOf(slot[from:]), a.at(x.FromOff+from), n) })
		})
	}
	if last == nil {
		last, err = behindAll(lane, err) // the checksums may be on their way
	}
	if err = deviceError(a.finish(last, err)); err == nil {
		s.arrived(b, c)
	}
	return err
}

// settleCapture waits until a device has taken the bytes of a capture, fetches their checksums and takes them over.
func (s *Store) settleCapture(a *accelerator, b *body) error {
	c := s.unsettled(b)
	if c == nil {
		return nil
	}
	defer c.settling.Unlock()
	err := a.now(func(lane device.Lane) error { return errors.Join(lane.After(c.mark), c.fetch(lane)) })
	if err == nil {
		s.arrived(b, c)
	}
	return err
}

// unsettled is the capture that a device took and of which the checksums are still to be taken over, or nil. Who gets it settles it, alone: nobody
// lets go of its mark and its checksums meanwhile, as a record stays for as long as something reads it.
func (s *Store) unsettled(b *body) *coming {
	for {
		s.mu.Lock()
		c := b.coming
		s.mu.Unlock()
		if c == nil || c.mark == nil {
			return nil
		}
		c.settling.Lock()
		s.mu.Lock()
		still := b.coming == c
		s.mu.Unlock()
		if still {
			return c
		}
		c.settling.Unlock()
	}
}

// fetch queues the way of the checksums to the host.
func (c *coming) fetch(lane device.Lane) error {
	if c == nil || c.sums == nil {
		return nil
	}
	return c.sums.Fetch(lane)
}

// arrived takes over checksums that have been fetched.
func (s *Store) arrived(b *body, c *coming) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.sums != nil {
		b.keep(c.sums.Take())
	}
	c.mark.Drop()
	b.coming = nil
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
