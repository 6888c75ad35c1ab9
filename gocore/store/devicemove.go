package store

import (
	"velocpy/gocore/device"
	"velocpy/gocore/engine"
	"velocpy/gocore/memory"
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
		if err != nil {
			return err
		}
		if err := a.wait(m); err != nil {
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
		if err != nil {
			return err
		}
		if err := a.wait(m); err != nil {
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
	if err != nil {
		return -1, err
	}
	if err := a.wait(m); err != nil {
		return -1, err
	}
	for i, sum := range sums.Take() {
		if sum != b.sums[i] {
			return i, nil
		}
	}
	return -1, nil
}

// spillFromDevice takes a checkpoint that no tier of memory can hold from the caller's arrays on a device to the disk, window by window.
func (s *Store) spillFromDevice(x *engine.Transfer, src *source) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+diskGrain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here, seen by nobody else
	w := spillWriter{s: s, src: src, at: x.ToOff, buf: buf.Bytes(0, window+diskGrain)}
	sums := make([]uint64, len(src.regions))
	for i := range src.regions {
		if sums[i], err = s.spillRegion(&w, s.home(x.Rec), &src.regions[i]); err != nil {
			return nil, err
		}
	}
	if err := w.flush(); err != nil || !s.set.Checksum {
		return nil, err
	}
	return sums, nil
}

// spillRegion brings one region to host memory beside the cache and appends it.
func (s *Store) spillRegion(w *spillWriter, a *accelerator, r *Region) (uint64, error) {
	if r.Place == 0 || r.Bytes == 0 {
		return w.region(r)
	}
	m, err := memory.Map("spill gather", r.Bytes)
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Unmap() }() // mapped for this region, seen by nobody else
	if err := a.bring(m, r, w.src); err != nil {
		return 0, err
	}
	if err := w.seek(r.Offset); err != nil {
		return 0, err
	}
	return w.bytes(m.Bytes(0, r.Bytes), func(piece func()) error {
		piece()
		return nil
	})
}

// bring copies a region of the caller's, behind what the caller had queued when it asked, to host memory that is pinned for it.
func (a *accelerator) bring(m *memory.Mapping, r *Region, src *source) error {
	if err := a.dev.Pin(m, 0, r.Bytes); err != nil {
		return deviceError(err, a.tier)
	}
	defer func() { _ = a.dev.Unpin(m, 0, r.Bytes) }()
	a.ownLane.Lock()
	defer a.ownLane.Unlock()
	return src.during(func() error {
		if err := a.own.After(src.ready); err != nil {
			return deviceError(err, a.tier)
		}
		if _, err := a.own.Gather([]device.Piece{{Slot: device.Address(m.Base()), Bytes: r.Bytes, Mem: r.Mem}}, false); err != nil {
			return deviceError(err, a.tier)
		}
		mark, err := a.own.Mark()
		if err != nil {
			return deviceError(err, a.tier)
		}
		return a.wait(mark)
	})
}
