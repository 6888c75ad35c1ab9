package store

import (
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/numa"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
)

// reaches tells whether the kernels of every device can access bytes of the host tier.
func (s *Cache) reaches(slot []byte) bool {
	return s.host != nil && s.host.Reaches(slot)
}

// gatherToHost copies the given regions to a slot of the host tier. It uses one kernel if the device can access the slot, and bounce buffers
// otherwise.
func (s *Cache) gatherToHost(a *devicememory.Memory, now devicememory.Runner, gate *borrow.Source, slot []byte, spans []model.Span, which []int32) error {
	if s.reaches(slot) && len(which) > 0 {
		return gate.During(func() error {
			return now(func(lane device.Lane) error {
				_, err := lane.Gather(devicememory.Pieces(device.AddressOf(slot), spans, which, selected(gate.Regions, which)), false)
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
		err := a.Fetch(gate, r, func(part []byte) error {
			to = to[copy(to, part):]
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func selected[T any](all []T, which []int32) []T {
	some := make([]T, len(which))
	for j, i := range which {
		some[j] = all[i]
	}
	return some
}

// scatterFromHost copies host memory to destinations, some of which lie on a device.
func (s *Cache) scatterFromHost(a *devicememory.Memory, gate *borrow.Source, slot []byte, spans []model.Span, want []int32) error {
	for j, i := range want {
		r := &gate.Regions[j]
		from := slot[spans[i].Offset : spans[i].Offset+r.Bytes]
		var err error
		if r.Place == 0 {
			err = s.copyHere(copier.Scatter, gate, r, from)
		} else {
			err = a.Deliver(gate, r, from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyHere copies between a region in host memory and a slot.
func (s *Cache) copyHere(direction copier.Direction, gate *borrow.Source, r *model.Region, slot []byte) error {
	piece := copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(slot)), Bytes: r.Bytes, Mem: r.Mem}
	job := copier.NewJob(direction, []copier.Piece{piece}, copier.Options{Pool: s.pool})
	defer job.Free()
	return gate.Run(job)
}

// spillFromDevice writes a checkpoint that no memory tier can hold from the caller's arrays on a device to the disk, window by window.
func (s *Cache) spillFromDevice(a *devicememory.Memory, x *engine.Transfer, src *borrow.Source) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+disk.Grain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here; no other goroutine uses it
	numa.Place("a spill's window", buf.Bytes(0, buf.Size()), device.Nodes([]device.Device{a.Device})...)
	w := spillWriter{s: s, src: src, at: x.ToOff, buf: buf.Bytes(0, window+disk.Grain)}
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

// regionOn appends one region, which may lie on a device, and returns its checksum. A region that is not contiguous is first gathered as a whole
// beside the cache, because its parts are not leaves of the checksum.
func (w *spillWriter) regionOn(a *devicememory.Memory, r *model.Region) (uint64, error) {
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
		err := a.Fetch(w.src, r, func(part []byte) (err error) {
			leaves, err = w.leaves(leaves, part, at)
			return err
		})
		return checksum.Combine(leaves), err
	}
	m, err := memory.Map("spill gather", r.Bytes)
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Unmap() }() // mapped for this region; no other goroutine uses it
	to := m.Bytes(0, r.Bytes)
	err = a.Fetch(w.src, r, func(part []byte) error {
		to = to[copy(to, part):]
		return nil
	})
	if err != nil {
		return 0, err
	}
	return w.bytes(m.Bytes(0, r.Bytes), at)
}
