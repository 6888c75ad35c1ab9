package store

import (
	"errors"
	"sync"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
)

// pendingCapture is what is still to be learnt of a capture: where a transfer takes its bytes from, or, when a device is taking them, the mark behind
// which they are there, and their checksums.
type pendingCapture struct {
	source *borrow.Source
	device *devicememory.Memory
	mark   device.Mark
	sums   device.Sums

	completing sync.Mutex // of the settlement
	lost   bool       // the checksums may still be on their way to the host, and nobody will know when they are there
}

// isCopied tells whether a device has taken the bytes; true when none is at it.
func (b *body) isCopied() bool {
	if b.pending == nil || b.pending.mark == nil {
		return true
	}
	passed, err := b.pending.mark.Passed()
	return passed || err != nil
}

// openSource is where a transfer still takes the bytes from, or nil.
func (b *body) openSource() *borrow.Source {
	if b.pending == nil {
		return nil
	}
	return b.pending.source
}

// orphanCapture lets go of what is left of a capture whose record has gone: at once, or, while a device still reads the source and
// writes the checksums, later. The lock is held.
func (s *Store) orphanCapture(ticket uint64, b *body) {
	c := b.pending
	b.pending = nil
	if c == nil {
		return
	}
	if c.mark == nil {
		c.source.Forget()
		return
	}
	s.orphans.add(ticket, c)
}

// drop gives back what a device has finished with.
func (c *pendingCapture) drop() {
	if c.sums != nil && !c.lost {
		c.sums.Discard()
	}
	c.mark.Drop()
}

// window is how much of a checkpoint a spill holds in memory at once.
const window = 8 << 20

// spill takes a checkpoint from the caller's memory to tier x.To and returns its checksums. From a device to the host it goes straight.
func (s *Store) spill(x *engine.Transfer) ([]uint64, error) {
	b := x.Rec.Body.(*body)
	src := b.pending.source
	if a := s.deviceOf(x.Rec); a != nil {
		if ready := src.Filled(); ready != nil {
			if err := a.Wait(ready); err != nil {
				return nil, err
			}
		}
		return s.spillFromDevice(a, x, src)
	}
	if s.eng.IsMemory(x.To) {
		return s.spillToMemory(s.host.Bytes(x.ToOff, x.Rec.Size), src)
	}
	return s.spillToDisk(x.ToOff, src)
}

func (s *Store) spillToMemory(slot []byte, src *borrow.Source) ([]uint64, error) {
	job := s.gather(slot, src.Regions)
	defer job.Free()
	if err := src.Run(job); err != nil || !s.set.Checksum {
		return nil, err
	}
	return append([]uint64(nil), job.Sums()...), nil
}

// spillToDisk writes window by window. A contiguous region is read where it is, others are gathered whole beside the cache first.
func (s *Store) spillToDisk(at int64, src *borrow.Source) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+diskGrain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here, seen by nobody else
	w := spillWriter{s: s, src: src, at: at, buf: buf.Bytes(0, window+diskGrain)}
	sums := make([]uint64, len(src.Regions))
	for i := range src.Regions {
		if sums[i], err = w.region(&src.Regions[i]); err != nil {
			return nil, err
		}
	}
	if err := w.flush(); err != nil || !s.set.Checksum {
		return nil, err
	}
	return sums, nil
}

// spillWriter lays regions into whole disk blocks in the order of the slot.
type spillWriter struct {
	s    *Store
	src  *borrow.Source
	at   int64 // where on disk the slot's byte 0 goes
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
	defer func() { _ = gathered.Unmap() }() // mapped for this region, seen by nobody else
	return w.bytes(gathered.Bytes(0, r.Bytes), func(piece func()) error {
		piece()
		return nil
	})
}

// gather brings the elements of a region together beside the cache.
func (w *spillWriter) gather(r *model.Region) (*memory.Mapping, error) {
	m, err := memory.Map("spill gather", r.Bytes)
	if err != nil {
		return nil, err
	}
	piece := copier.Piece{Slot: m.Base(), Bytes: r.Bytes, Mem: r.Mem}
	job := copier.NewJob(copier.Gather, []copier.Piece{piece}, copier.Options{Pool: w.s.pool})
	defer job.Free()
	if err := w.src.Run(job); err != nil {
		return nil, errors.Join(err, m.Unmap())
	}
	return m, nil
}

// bytes appends what lies in one piece, and returns its checksum; every look at it goes through read.
func (w *spillWriter) bytes(rest []byte, read func(piece func()) error) (uint64, error) {
	leaves, err := w.leaves(nil, rest, read)
	return checksum.Combine(leaves), err
}

// leaves appends what lies in one piece of a region, and the hashes of its leaves: all pieces but the last are whole leaves.
func (w *spillWriter) leaves(leaves []uint64, rest []byte, read func(piece func()) error) ([]uint64, error) {
	for len(rest) > 0 {
		leaf := rest[:min(len(rest), checksum.LeafBytes)]
		rest = rest[len(leaf):]
		hash := w.s.set.Checksum
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
				if err := w.flush(); err != nil {
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
	if err := w.flush(); err != nil {
		return err
	}
	w.from = offset / diskGrain * diskGrain
	w.fill = offset - w.from
	return nil
}

// flush writes the window out in whole blocks. Only the end of a slot, or a jump, leaves a block half used; nothing follows in it.
func (w *spillWriter) flush() error {
	if w.fill == 0 {
		return nil
	}
	blocks := (w.fill + diskGrain - 1) / diskGrain * diskGrain
	if err := w.s.disk.Write(w.at+w.from, w.buf[:blocks]); err != nil {
		return err
	}
	w.from += blocks
	w.fill = 0
	return nil
}
