package workers

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/numa"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/transfer/borrow"
)

// spillFromDevice writes a checkpoint that no memory tier can hold from the caller's arrays on a device to the disk, window by window.
func (s *Workers) spillFromDevice(a *devicememory.Memory, x *engine.Transfer, src *borrow.Source) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+disk.Grain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here; no other goroutine uses it
	numa.Place("a spill's window", buf.Bytes(0, buf.Size()), device.Nodes([]device.Device{a.Device})...)
	w := spillWriter{s: s.Cache, src: src, at: x.ToOff, buf: buf.Bytes(0, window+disk.Grain)}
	sums := make([]uint64, len(src.Regions))
	for i := range src.Regions {
		if sums[i], err = w.regionOn(a, &src.Regions[i]); err != nil {
			return nil, err
		}
	}
	if err := w.writeOut(); err != nil || !s.Set.Checksum {
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
