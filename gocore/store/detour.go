package store

import (
	"errors"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/numa"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
)

// A kernel reaches only pinned memory of the host. What lies elsewhere (the host tier while it is being pinned, or where that was refused;
// memory beside the cache) goes by way of a window: one per device, pinned when it is first needed.

// detour is the window of a device.
type detour struct {
	mapping *memory.Mapping
	pinned  bool
}

// inLane puts work into some lane and waits for it, also for what had been queued before an error.
type inLane func(work func(device.Lane) error) error

// now is such a way, for what somebody waits for.
func (a *accelerator) now(work func(device.Lane) error) error {
	a.ownLane.Lock()
	m, err := behindAll(a.own, work(a.own))
	a.ownLane.Unlock()
	return deviceError(a.finish(m, err))
}

// behindAll is the mark behind everything in a lane, also of work that failed: some of it may have been queued. It is asked for twice, as
// without one nobody knows when the memory is free.
func behindAll(lane device.Lane, failed error) (device.Mark, error) {
	m, err := lane.Mark()
	if err == nil {
		return m, failed
	}
	failed = errors.Join(failed, err)
	if m, err = lane.Mark(); err == nil {
		return m, failed
	}
	return nil, failed
}

// flip changes one bit of the tier: for tests of what happens then.
func (a *accelerator) flip(offset int64) error {
	var one [1]byte
	if err := a.read(one[:], offset); err != nil {
		return err
	}
	one[0] ^= 1
	a.ownLane.Lock()
	m, err := a.writing(a.own, checks, offset, 1, func() error { return a.own.Copy(a.at(offset), device.AddressOf(one[:]), 1) })
	a.ownLane.Unlock()
	return a.finish(m, err)
}

// openWindow makes the window. The lock of windows is held.
func (a *accelerator) openWindow() error {
	if a.window.mapping != nil {
		return nil
	}
	m, err := memory.Map("device window", window)
	if err != nil {
		return status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(int64(window)))
	}
	numa.Place("a device's window", m.Bytes(0, m.Size()), device.Nodes([]device.Device{a.dev})...)
	a.window.mapping, a.window.pinned = m, a.dev.Pin(m, 0, window) == nil
	return nil
}

// passing takes a region of the caller's through the window: move is given one part after the other and the window's bytes for it.
func (a *accelerator) passing(r *model.Region, move func(part []byte, m model.Strided) error) error {
	return parts(r.Mem, r.Bytes, func(m model.Strided, n int64) error {
		a.windows.Lock()
		defer a.windows.Unlock()
		if err := a.openWindow(); err != nil {
			return err
		}
		return move(a.window.mapping.Bytes(0, n), m)
	})
}

// fetch brings a region of the caller's to host memory in parts of at most one window and shows each to use, in their order.
func (a *accelerator) fetch(gate *borrow.Source, r *model.Region, use func(part []byte) error) error {
	return a.passing(r, func(part []byte, m model.Strided) error {
		err := gate.During(func() error {
			return a.now(func(lane device.Lane) error { return a.window.in(lane, part, m) })
		})
		if err != nil {
			return err
		}
		return use(part)
	})
}

// deliver fills a region of the caller's from host memory, the same way.
func (a *accelerator) deliver(gate *borrow.Source, r *model.Region, from []byte) error {
	return a.passing(r, func(part []byte, m model.Strided) error {
		return gate.During(func() error {
			from = from[copy(part, from):]
			return a.now(func(lane device.Lane) error { return a.window.out(lane, part, m) })
		})
	})
}

// in queues what fills a part of the window from an array.
func (d *detour) in(lane device.Lane, part []byte, m model.Strided) error {
	at, n := device.AddressOf(part), int64(len(part))
	if m.Contiguous() {
		return lane.Copy(at, device.Address(m.Base), n)
	}
	if !d.pinned {
		return errUnpinned
	}
	_, err := lane.Gather([]device.Piece{{Slot: at, Bytes: n, Mem: m}}, false)
	return err
}

// out queues what fills an array from a part of the window.
func (d *detour) out(lane device.Lane, part []byte, m model.Strided) error {
	at, n := device.AddressOf(part), int64(len(part))
	if m.Contiguous() {
		return lane.Copy(device.Address(m.Base), at, n)
	}
	if !d.pinned {
		return errUnpinned
	}
	return lane.Scatter([]device.Piece{{Slot: at, Bytes: n, Mem: m}})
}

var errUnpinned = status.New(status.Unavailable, "no host memory can be pinned, which arrays on a device that do not lie together need: make them contiguous, or raise the limits of locked memory").
	AtTier(status.TierDevice)

// closeWindow gives the window back when the device has been closed.
func (a *accelerator) closeWindow() error {
	if a.window.mapping == nil {
		return nil
	}
	return a.window.mapping.Unmap()
}

// parts calls f for parts of an array of at most one window each, in the order of their bytes.
func parts(m model.Strided, bytes int64, f func(model.Strided, int64) error) error {
	return partsOf(m, bytes, window, f)
}

func partsOf(m model.Strided, bytes, most int64, f func(model.Strided, int64) error) error {
	if bytes == 0 {
		return nil
	}
	if m.Contiguous() {
		for off := int64(0); off < bytes; off += most {
			n := min(most, bytes-off)
			if err := f(model.Strided{Base: unsafe.Add(m.Base, off)}, n); err != nil {
				return err
			}
		}
		return nil
	}
	if bytes <= most {
		return f(m, bytes)
	}
	axis := 0
	for m.Shape[axis] == 1 {
		axis++
	}
	n, half := m.Shape[axis], m.Shape[axis]/2
	first, second := m, m
	first.Shape, second.Shape = append([]int64(nil), m.Shape...), append([]int64(nil), m.Shape...)
	first.Shape[axis], second.Shape[axis] = half, n-half
	second.Base = unsafe.Add(m.Base, half*m.Strides[axis])
	if err := partsOf(first, bytes/n*half, most, f); err != nil {
		return err
	}
	return partsOf(second, bytes/n*(n-half), most, f)
}

// reaches tells whether every device reaches bytes of the host tier with its kernels.
func (s *Store) reaches(slot []byte) bool {
	return s.host != nil && s.host.Reaches(slot)
}

// gatherToHost copies the regions named to a slot of the host tier, in that lane as far as the device reaches the slot.
func (s *Store) gatherToHost(a *accelerator, now inLane, gate *borrow.Source, slot []byte, spans []model.Span, which []int32) error {
	if s.reaches(slot) && len(which) > 0 {
		return gate.During(func() error {
			return now(func(lane device.Lane) error {
				_, err := lane.Gather(pieces(device.AddressOf(slot), spans, which, chosen(gate.Regions, which)), false)
				return err
			})
		})
	}
	for _, i := range which {
		r := &gate.Regions[i]
		to := slot[spans[i].Offset : spans[i].Offset+r.Bytes]
		if r.Place == 0 {
			if err := s.copyHere(copier.Gather, gate, r, to); err != nil {
				return err
			}
			continue
		}
		err := a.fetch(gate, r, func(part []byte) error {
			to = to[copy(to, part):]
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func chosen[T any](all []T, which []int32) []T {
	some := make([]T, len(which))
	for j, i := range which {
		some[j] = all[i]
	}
	return some
}

// scatterFromHost copies host memory to destinations, some of which lie on a device.
func (s *Store) scatterFromHost(a *accelerator, gate *borrow.Source, slot []byte, spans []model.Span, want []int32) error {
	for j, i := range want {
		r := &gate.Regions[j]
		from := slot[spans[i].Offset : spans[i].Offset+r.Bytes]
		var err error
		if r.Place == 0 {
			err = s.copyHere(copier.Scatter, gate, r, from)
		} else {
			err = a.deliver(gate, r, from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyHere copies between a region in host memory and a slot.
func (s *Store) copyHere(direction copier.Direction, gate *borrow.Source, r *model.Region, slot []byte) error {
	piece := copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(slot)), Bytes: r.Bytes, Mem: r.Mem}
	job := copier.NewJob(direction, []copier.Piece{piece}, copier.Options{Pool: s.pool})
	defer job.Free()
	return gate.Run(job)
}

// spillFromDevice takes a checkpoint that no tier of memory can hold from the caller's arrays on a device to the disk, window by window.
func (s *Store) spillFromDevice(a *accelerator, x *engine.Transfer, src *borrow.Source) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+diskGrain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here, seen by nobody else
	numa.Place("a spill's window", buf.Bytes(0, buf.Size()), device.Nodes([]device.Device{a.dev})...)
	w := spillWriter{s: s, src: src, at: x.ToOff, buf: buf.Bytes(0, window+diskGrain)}
	sums := make([]uint64, len(src.Regions))
	for i := range src.Regions {
		if sums[i], err = w.regionOn(a, &src.Regions[i]); err != nil {
			return nil, err
		}
	}
	if err := w.flush(); err != nil || !s.set.Checksum {
		return nil, err
	}
	return sums, nil
}

// regionOn appends one region, which may lie on a device, and returns its checksum. One that does not lie together is gathered whole beside
// the cache first, as its parts are no leaves of the checksum.
func (w *spillWriter) regionOn(a *accelerator, r *model.Region) (uint64, error) {
	if r.Place == 0 || r.Bytes == 0 {
		return w.region(r)
	}
	if err := w.seek(r.Offset); err != nil {
		return 0, err
	}
	at := func(piece func()) error {
		piece()
		return nil
	}
	if r.Mem.Contiguous() {
		var leaves []uint64
		err := a.fetch(w.src, r, func(part []byte) (err error) {
			leaves, err = w.leaves(leaves, part, at)
			return err
		})
		return checksum.Combine(leaves), err
	}
	m, err := memory.Map("spill gather", r.Bytes)
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Unmap() }() // mapped for this region, seen by nobody else
	to := m.Bytes(0, r.Bytes)
	err = a.fetch(w.src, r, func(part []byte) error {
		to = to[copy(to, part):]
		return nil
	})
	if err != nil {
		return 0, err
	}
	return w.bytes(m.Bytes(0, r.Bytes), at)
}
