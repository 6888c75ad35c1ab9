package store

import (
	"errors"
	"sync"
	"unsafe"

	"go.uber.org/atomic"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/copier"
)

// coming is what is still to be learnt of a capture: where a transfer takes its bytes from, or, when a device is taking them, the mark behind
// which they are there, and their checksums.
type coming struct {
	source *source
	device *accelerator
	mark   device.Mark
	sums   device.Sums

	settling sync.Mutex // of the settlement
	astray   bool       // the checksums may still be on their way to the host, and nobody will know when they are there
}

// taken tells whether a device has taken the bytes; true when none is at it.
func (b *body) taken() bool {
	if b.coming == nil || b.coming.mark == nil {
		return true
	}
	passed, err := b.coming.mark.Passed()
	return passed || err != nil
}

// unread is where a transfer still takes the bytes from, or nil.
func (b *body) unread() *source {
	if b.coming == nil {
		return nil
	}
	return b.coming.source
}

// vanish lets go of what is left of a capture whose record has gone: at once, or, while a device still reads the source and
// writes the checksums, later. The lock is held.
func (s *Store) vanish(ticket uint64, b *body) {
	c := b.coming
	b.coming = nil
	if c == nil {
		return
	}
	if c.mark == nil {
		c.source.forget()
		return
	}
	s.strays.add(ticket, c)
}

// drop gives back what a device has finished with.
func (c *coming) drop() {
	if c.sums != nil && !c.astray {
		c.sums.Discard()
	}
	c.mark.Drop()
}

// source is a checkpoint's bytes while they are still in the caller's memory: a transfer takes them from there.
type source struct {
	mu      sync.Mutex // held while somebody reads the caller's memory; never during I/O
	regions []Region
	ready   device.Mark // of sources on a device: what is queued before it fills them
	given   atomic.Bool // the caller has its memory back, or waits for it
}

var errAbandoned = errors.New("the caller gave the checkpoint up")

func newSource(regions []Region) *source { return &source{regions: keep(regions)} }

// forget drops the mark behind which sources on a device are filled: nobody will read them.
func (src *source) forget() {
	src.mu.Lock()
	defer src.mu.Unlock()
	src.dropReady()
}

// filled is the caller's mark behind what fills a source on a device; nil for all others. Nobody's memory is touched while it is waited for.
func (src *source) filled() device.Mark {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.ready == nil {
		return nil
	}
	return src.ready.Keep()
}

func (src *source) dropReady() {
	if src.ready != nil {
		src.ready.Drop()
		src.ready = nil
	}
}

// abandon gives the caller its memory back: when it returns nobody reads it, now or later. It waits for one piece of a copy, never for I/O.
func (src *source) abandon() {
	src.given.Store(true) // first: a copy in many pieces ends with the one that it is at
	src.mu.Lock()
	defer src.mu.Unlock()
	src.dropReady() // the transfer may never come to it
}

func (src *source) abandoned() bool { return src.given.Load() }

// read runs one short piece of a copy from the caller's memory.
func (src *source) read(piece func()) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.abandoned() {
		return errAbandoned
	}
	piece()
	return nil
}

// during runs work that reads the caller's memory, unless the caller has it back. Long work looks at abandoned now and then.
func (src *source) during(work func() error) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.abandoned() {
		return errAbandoned
	}
	return work()
}

// run runs a job that copies from the caller's memory.
func (src *source) run(job *copier.Job) error {
	for done := false; !done; {
		if err := src.read(func() { done = job.Run(slice) }); err != nil {
			return err
		}
	}
	return nil
}

// window is how much of a checkpoint a spill holds in memory at once.
const window = 8 << 20

// spill takes a checkpoint from the caller's memory to tier x.To and returns its checksums. From a device to the host it goes straight.
func (s *Store) spill(x *engine.Transfer) ([]uint64, error) {
	b := x.Rec.Body.(*body)
	src := b.coming.source
	if a := s.home(x.Rec); a != nil {
		if ready := src.filled(); ready != nil {
			if err := a.wait(ready); err != nil {
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

func (s *Store) spillToMemory(slot []byte, src *source) ([]uint64, error) {
	job := s.gather(slot, src.regions)
	defer job.Free()
	if err := src.run(job); err != nil || !s.set.Checksum {
		return nil, err
	}
	return append([]uint64(nil), job.Sums()...), nil
}

// spillToDisk writes window by window. A contiguous region is read where it is, others are gathered whole beside the cache first.
func (s *Store) spillToDisk(at int64, src *source) ([]uint64, error) {
	buf, err := memory.Map("spill window", window+diskGrain)
	if err != nil {
		return nil, err
	}
	defer func() { _ = buf.Unmap() }() // mapped here, seen by nobody else
	w := spillWriter{s: s, src: src, at: at, buf: buf.Bytes(0, window+diskGrain)}
	sums := make([]uint64, len(src.regions))
	for i := range src.regions {
		if sums[i], err = w.region(&src.regions[i]); err != nil {
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
	src  *source
	at   int64 // where on disk the slot's byte 0 goes
	from int64 // slot offset of buf[0], a multiple of the grain
	fill int64 // bytes of buf in use
	buf  []byte
}

// region appends one region and returns its checksum.
func (w *spillWriter) region(r *Region) (uint64, error) {
	if err := w.seek(r.Offset); err != nil {
		return 0, err
	}
	if r.Bytes == 0 {
		return checksum.Sum(nil), nil
	}
	if len(r.Mem.Shape) == 0 {
		return w.bytes(unsafe.Slice((*byte)(r.Mem.Base), r.Bytes), w.src.read)
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
func (w *spillWriter) gather(r *Region) (*memory.Mapping, error) {
	m, err := memory.Map("spill gather", r.Bytes)
	if err != nil {
		return nil, err
	}
	piece := copier.Piece{Slot: m.Base(), Bytes: r.Bytes, Mem: r.Mem}
	job := copier.NewJob(copier.Gather, []copier.Piece{piece}, copier.Options{Pool: w.s.pool})
	defer job.Free()
	if err := w.src.run(job); err != nil {
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
