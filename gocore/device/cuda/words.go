package cuda

import (
	"math/bits"
	"sync"
	"unsafe"
)

// words is a pool of 64-bit words that kernels and copies can reach. Blocks are powers of two and never merged: sizes repeat.
type words struct {
	slabs   slabs
	growing sync.Mutex // held while a slab is allocated; acquired before mu

	mu   sync.Mutex
	rest block // unused part of the latest slab
	idle [bits.UintSize][]Pointer
	late []lateWords
}

// block is a run of words; the zero value is none.
type block struct {
	at    Pointer
	words int
}

func (b block) none() bool { return b.at == 0 }

// onHost is a view of words in pinned memory.
func (b block) onHost() []uint64 { return unsafe.Slice(*(**uint64)(unsafe.Pointer(&b.at)), b.words) }

// lateWords are free as soon as the event has passed.
type lateWords struct {
	mark  *event
	block block
}

// class is the logarithm of the smallest block for n words; no block is smaller than a cache line.
func class(n int) int { return max(bits.Len(uint(n-1)), 3) }

// take returns n words of arbitrary content.
func (w *words) take(n int) (block, error) {
	if b := w.found(n); !b.none() {
		return b, nil
	}
	w.growing.Lock()
	defer w.growing.Unlock()
	for { // another goroutine may have allocated a slab, or taken the words of ours
		if b := w.found(n); !b.none() {
			return b, nil
		}
		if err := w.slab(1 << class(n)); err != nil {
			return block{}, err
		}
	}
}

// found returns none if a slab is needed.
func (w *words) found(n int) block {
	c := class(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep()
	if last := len(w.idle[c]) - 1; last >= 0 {
		at := w.idle[c][last]
		w.idle[c] = w.idle[c][:last]
		return block{at, n}
	}
	size := 1 << c
	if w.rest.words < size {
		return block{}
	}
	taken := block{w.rest.at, n}
	w.rest = block{w.rest.at + Pointer(size)*8, w.rest.words - size}
	return taken
}

func (w *words) give(b block) {
	if b.none() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(b)
}

// later frees words that queued work still reads. The pool takes over the event.
func (w *words) later(m *event, b block) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, lateWords{m, b})
}

// sweep checks only the oldest entry: later ones mostly pass after it.
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

func (w *words) put(b block) {
	c := class(b.words)
	w.idle[c] = append(w.idle[c], b.at)
}

// grow allocates the first slab.
func (w *words) grow() error {
	w.growing.Lock()
	defer w.growing.Unlock()
	return w.slab(0)
}

// slab leaves the rest of the latest slab unused. It holds mu only briefly, so that goroutines which free words do not wait.
func (w *words) slab(atLeast int) error {
	slab, err := w.slabs.more(atLeast)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = slab
	return nil
}

func (w *words) free() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.late {
		l.mark.Drop()
	}
	w.rest, w.late, w.idle = block{}, nil, [bits.UintSize][]Pointer{}
	return w.slabs.free()
}
