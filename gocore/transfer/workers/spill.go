package workers

import (
	"errors"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/cache"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// window is how many bytes of a checkpoint a spill holds in memory at once.
const window = 8 << 20

// spill copies a checkpoint from the caller's memory to tier x.To and returns its checksums. moveBorrowed handles copies from a device to
// a memory tier.
func (s *Workers) spill(x *engine.Transfer) ([]uint64, error) {
	b := x.Rec.Version
	src := pending.Of(b).Source
	if a := s.DeviceOf(x.Rec); a != nil {
		if ready := src.Filled(); ready != nil {
			if err := a.Wait(ready); err != nil {
				return nil, err
			}
		}
		return s.spillFromDevice(a, x, src)
	}
	if s.Engine.IsMemory(x.To) {
		return s.spillToMemory(s.Host.Bytes(x.ToOff, x.Rec.Size), src)
	}
	return s.spillToDisk(x.ToOff, src)
}

func (s *Workers) spillToMemory(slot []byte, src *borrow.Source) ([]uint64, error) {
	job := slots.GatherJob(s.Cache, slot, src.Regions)
	defer job.Free()
	if err := src.Run(job); err != nil || !s.Set.Checksum {
		return nil, err
	}
	return append([]uint64(nil), job.Sums()...), nil
}

// spillToDisk writes window by window. It reads a contiguous region in place, and first gathers any other region as a whole beside the cache.
func (s *Workers) spillToDisk(at int64, src *borrow.Source) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+disk.Grain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here; no other goroutine uses it
	w := spillWriter{s: s.Cache, src: src, at: at, buf: buf.Bytes(0, window+disk.Grain)}
	sums := make([]uint64, len(src.Regions))
	for i := range src.Regions {
		if sums[i], err = w.region(&src.Regions[i]); err != nil {
			return nil, err
		}
	}
	if err := w.writeOut(); err != nil || !s.Set.Checksum {
		return nil, err
	}
	return sums, nil
}

// spillWriter writes regions in whole disk blocks, in the order of the slot.
type spillWriter struct {
	s    *cache.Cache
	src  *borrow.Source
	at   int64 // offset on disk of the slot's byte 0
	from int64 // slot offset of buf[0], a multiple of the grain
	fill int64 // bytes of buf in use
	buf  []byte
}

// region appends one region and returns its checksum.
func (w *spillWriter) region(r *model.Region) (uint64, error) {
	if err := w.seek(r.Offset); err != nil {
		return 0, err
	}
	if r.Bytes == 0 {
		return checksum.Sum(nil), nil
	}
	if len(r.Mem.Shape) == 0 {
		return w.bytes(unsafe.Slice((*byte)(r.Mem.Base), r.Bytes), w.src.Read)
	}
	gathered, err := w.gather(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = gathered.Unmap() }() // mapped for this region; no other goroutine uses it
	return w.bytes(gathered.Bytes(0, r.Bytes), func(piece func()) error {
		piece()
		return nil
	})
}

// gather copies the elements of a region into contiguous memory beside the cache.
func (w *spillWriter) gather(r *model.Region) (*memory.Mapping, error) {
	m, err := memory.Map("spill gather", r.Bytes)
	if err != nil {
		return nil, err
	}
	piece := copier.Piece{Slot: m.Base(), Bytes: r.Bytes, Mem: r.Mem}
	job := copier.NewJob(copier.Gather, []copier.Piece{piece}, copier.Options{Pool: w.s.Copiers})
	defer job.Free()
	if err := w.src.Run(job); err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	return m, nil
}

// bytes appends the contiguous bytes of a region and returns their checksum. It accesses them only within read.
func (w *spillWriter) bytes(rest []byte, read func(piece func()) error) (uint64, error) {
	leaves, err := w.leaves(nil, rest, read)
	return checksum.Combine(leaves), err
}

// leaves appends contiguous bytes of a region to the slot, and the hashes of their leaves to leaves. All calls for a region but the last pass whole
// leaves.
func (w *spillWriter) leaves(leaves []uint64, rest []byte, read func(piece func()) error) ([]uint64, error) {
	for len(rest) > 0 {
		leaf := rest[:min(len(rest), checksum.LeafBytes)]
		rest = rest[len(leaf):]
		hash := w.s.Set.Checksum
		for len(leaf) > 0 {
			err := read(func() {
				if hash {
					leaves = append(leaves, checksum.Leaf(leaf))
				}
				n := copy(w.buf[w.fill:window], leaf)
				w.fill, leaf, hash = w.fill+int64(n), leaf[n:], false
			})
			if err != nil {
				return nil, err
			}
			if w.fill == window {
				if err := w.writeOut(); err != nil {
					return nil, err
				}
			}
		}
	}
	return leaves, nil
}

// seek moves to a slot offset at or behind the current one.
func (w *spillWriter) seek(offset int64) error {
	if gap := offset - w.from - w.fill; w.fill+gap < window {
		w.fill += gap
		return nil
	}
	if err := w.writeOut(); err != nil {
		return err
	}
	w.from = offset / disk.Grain * disk.Grain
	w.fill = offset - w.from
	return nil
}

// writeOut writes the window in whole blocks. Only the end of a slot, or a jump, leaves a block partly filled, and no later bytes go into that block.
func (w *spillWriter) writeOut() error {
	if w.fill == 0 {
		return nil
	}
	blocks := (w.fill + disk.Grain - 1) / disk.Grain * disk.Grain
	if err := w.s.Disk.Space.Write(w.at+w.from, w.buf[:blocks]); err != nil {
		return err
	}
	w.from += blocks
	w.fill = 0
	return nil
}
