package store

import (
	"errors"
	"unsafe"

	"go.uber.org/atomic"

	"velocpy/gocore/checksum"
	"velocpy/gocore/copier"
	"velocpy/gocore/engine"
	"velocpy/gocore/memory"
)

// source is a checkpoint's bytes while they are still in the caller's memory: a transfer takes them from there.
type source struct {
	regions []Region
	given   atomic.Bool // the caller wants its memory back
	done    chan struct{}
}

var errAbandoned = errors.New("the caller gave the checkpoint up")

func newSource(regions []Region) *source {
	return &source{regions: keep(regions), done: make(chan struct{})}
}

// abandon makes the transfer stop at its next window and waits until it has: afterwards nobody reads the caller's memory.
func (src *source) abandon() {
	src.given.Store(true)
	<-src.done
}

// window is how much of a checkpoint a spill holds in memory at once.
const window = 8 << 20

// spill takes a checkpoint from the caller's memory to tier x.To.
func (s *Store) spill(x *engine.Transfer) error {
	b := x.Rec.Body.(*body)
	src := b.source
	defer close(src.done)
	if src.given.Load() {
		return errAbandoned
	}
	var err error
	if s.eng.IsMemory(x.To) {
		b.sums = s.spillToMemory(s.host.Bytes(x.ToOff, x.Rec.Size), src)
	} else {
		b.sums, err = s.spillToDisk(x.ToOff, src, b.layout)
	}
	b.source = nil
	return err
}

func (s *Store) spillToMemory(slot []byte, src *source) []uint64 {
	job := s.gather(slot, src.regions)
	defer job.Free()
	for !job.Run(slice) {
	}
	if !s.set.Checksum {
		return nil
	}
	return append([]uint64(nil), job.Sums()...)
}

// spillToDisk writes window by window. A contiguous region is read where it is, others are gathered whole beside the cache first.
func (s *Store) spillToDisk(at int64, src *source, l *layout) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+diskGrain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here, seen by nobody else
	w := spillWriter{s: s, at: at, buf: buf.Bytes(0, window+diskGrain)}
	sums := make([]uint64, len(src.regions))
	for i := range src.regions {
		if sums[i], err = w.region(&src.regions[i], src); err != nil {
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
	at   int64 // where on disk the slot's byte 0 goes
	from int64 // slot offset of buf[0], a multiple of the grain
	fill int64 // bytes of buf in use
	buf  []byte
}

// region appends one region and returns its checksum.
func (w *spillWriter) region(r *Region, src *source) (uint64, error) {
	if err := w.seek(r.Offset); err != nil {
		return 0, err
	}
	bytes, gathered, err := w.contiguous(r)
	if err != nil {
		return 0, err
	}
	if gathered != nil {
		defer func() { _ = gathered.Unmap() }() // mapped by contiguous for this call
	}
	var leaves []uint64
	for rest := bytes; len(rest) > 0; {
		if src.given.Load() {
			return 0, errAbandoned
		}
		leaf := rest[:min(int64(len(rest)), checksum.LeafBytes)]
		if w.s.set.Checksum {
			leaves = append(leaves, checksum.Leaf(leaf))
		}
		if err := w.append(leaf); err != nil {
			return 0, err
		}
		rest = rest[len(leaf):]
	}
	if len(leaves) == 0 {
		return checksum.Sum(nil), nil
	}
	return checksum.Combine(leaves), nil
}

// contiguous gives the bytes of a region in one piece; the mapping, if any, is the caller's to unmap.
func (w *spillWriter) contiguous(r *Region) ([]byte, *memory.Mapping, error) {
	if r.Bytes == 0 {
		return nil, nil, nil
	}
	if len(r.Mem.Shape) == 0 {
		return unsafe.Slice((*byte)(r.Mem.Base), r.Bytes), nil, nil
	}
	m, err := memory.Map("spill gather", r.Bytes)
	if err != nil {
		return nil, nil, err
	}
	piece := copier.Piece{Slot: m.Base(), Bytes: r.Bytes, Mem: r.Mem}
	job := copier.NewJob(copier.Gather, []copier.Piece{piece}, copier.Options{Pool: w.s.pool})
	for !job.Run(slice) {
	}
	job.Free()
	return m.Bytes(0, r.Bytes), m, nil
}

// seek moves to a slot offset at or behind the current one.
func (w *spillWriter) seek(offset int64) error {
	if gap := offset - w.from - w.fill; w.fill+gap <= window {
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

func (w *spillWriter) append(p []byte) error {
	for len(p) > 0 {
		n := copy(w.buf[w.fill:window], p)
		w.fill += int64(n)
		p = p[n:]
		if w.fill == window {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
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
