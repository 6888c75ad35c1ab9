package cuda

import (
	"errors"
	"math/bits"
	"sync"
	"unsafe"
)

// slabWords is how much pinned memory is taken at a time: enough for the sums of 128 GiB on their way at once, as pinning more may
// make the driver wait for the device.
const slabWords = 512 << 10

// words is a pool of pinned words, where kernels write and the host reads. Blocks are powers of two and never merged: sizes repeat.
type words struct {
	d     *Device
	mu    sync.Mutex
	slabs []unsafe.Pointer
	rest  []uint64 // of the latest slab
	idle  [bits.UintSize][][]uint64
	late  []lateWords
}

// lateWords are free as soon as the mark has passed.
type lateWords struct {
	mark  *mark
	block []uint64
}

// class is the logarithm of the smallest block for n words; none is smaller than a line of the cache.
func class(n int) int { return max(bits.Len(uint(n-1)), 3) }

// take returns n words with whatever was in them.
func (w *words) take(n int) ([]uint64, error) {
	c := class(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep()
	if last := len(w.idle[c]) - 1; last >= 0 {
		block := w.idle[c][last]
		w.idle[c] = w.idle[c][:last]
		return block[:n], nil
	}
	size := 1 << c
	if len(w.rest) < size {
		if err := w.slab(size); err != nil {
			return nil, err
		}
	}
	block := w.rest[:size:size]
	w.rest = w.rest[size:]
	return block[:n], nil
}

func (w *words) give(block []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(block)
}

// later gives words back that something queued still reads. The mark is the pool's then.
func (w *words) later(m *mark, block []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, lateWords{m, block})
}

// sweep looks at the oldest alone: the next ones mostly come after it.
func (w *words) sweep() {
	for len(w.late) > 0 {
		first := w.late[0]
		if passed, err := first.mark.Seen(); !passed || err != nil {
			return
		}
		first.mark.Drop()
		w.put(first.block)
		w.late = w.late[1:]
	}
}

func (w *words) put(block []uint64) {
	c := class(cap(block))
	w.idle[c] = append(w.idle[c], block[:cap(block)])
}

// grow takes the first slab, so that no capture has to.
func (w *words) grow() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slab(0)
}

func (w *words) slab(atLeast int) error {
	n := max(slabWords, atLeast)
	at, err := w.d.driver.AllocateHost(w.d.context, int64(n)*8)
	if err != nil {
		return w.d.check("pinned memory for checksums", err)
	}
	w.slabs = append(w.slabs, at)
	w.rest = unsafe.Slice((*uint64)(at), n)
	return nil
}

func (w *words) free() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.late {
		l.mark.Drop()
	}
	var failed []error
	for _, at := range w.slabs {
		failed = append(failed, w.d.check("pinned memory given back", w.d.driver.FreeHost(w.d.context, at)))
	}
	w.slabs, w.rest, w.late, w.idle = nil, nil, nil, [bits.UintSize][][]uint64{}
	return errors.Join(failed...)
}
