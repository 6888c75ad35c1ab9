package store

import (
	"runtime"

	"go.uber.org/atomic"
)

// warmth prefaults pages of the host tier ahead of the place that captures have reached, so that no capture pays for the first touch. Pages that captures never
// reach are never touched, so a generous budget costs nothing until it is used. Pages that were given back are prefaulted again when captures come near.
type warmth struct {
	active  atomic.Bool
	near    func(work func()) // runs work on the processors of the devices' node
	reached atomic.Int64      // where captures were when the goroutine looked last
	resting atomic.Bool       // memory was given back, and no captures have come since
	done    int64             // the pages before it are present; the goroutine's own
}

const (
	warmFirst = 64 << 20  // pages made present when the store opens, and the least ahead of the captures afterwards
	warmAhead = 512 << 20 // the most: as much as is in use already, up to this
	warmPiece = 32 << 20  // at once
)

// goal is how far the pages should be present when captures have reached so far.
func goal(reached int64) int64 { return reached + min(max(reached, warmFirst), warmAhead) }

// warmSome prefaults one piece of the host tier. It returns false when nothing is to be done.
func (s *Store) warmSome() bool {
	w := &s.warm
	return w.active.Load() && !w.resting.Load() && w.some(s.hostBudget(), func(off, n int64) error {
		s.pages.touched(off, n, s.now())
		return s.host.Populate(off, n)
	})
}

// some prefaults the next piece, and returns false when none is wanted.
func (w *warmth) some(budget int64, populate func(off, n int64) error) bool {
	n := min(warmPiece, budget-w.done)
	if n <= 0 || w.done >= goal(w.reached.Load()) {
		return false
	}
	var failed error
	if w.near(func() { failed = populate(w.done, n) }); failed != nil {
		w.active.Store(false) // no memory left to populate: captures will meet the same and say so
		return false
	}
	w.done += n
	return true
}

// hostBudget is the budget of the host tier.
func (s *Store) hostBudget() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.eng.Capacity(s.hostTier())
}

// behind notes how far into the buffer captures have come. It returns true when pages are to be prefaulted.
func (w *warmth) behind(used int64) bool {
	if !w.active.Load() || used < w.reached.Load()+warmFirst/2 {
		return false
	}
	w.reached.Store(used)
	w.resting.Store(false)
	return true
}

// restart notes that pages from a place on were given back, and how far the bytes in use reach.
func (w *warmth) restart(from, used int64) {
	w.done = min(w.done, from)
	w.reached.Store(used)
	w.resting.Store(true)
}

// hostUsed is the most bytes of the host tier that have been in use at once.
func (s *Store) hostUsed() int64 {
	if s.host == nil {
		return 0
	}
	return s.eng.Stats.Tiers[s.hostTier()].HighWater
}

// helpers is the number of goroutines that help large copies beside the caller.
func helpers(asked int) int {
	if asked > 0 {
		return asked
	}
	return min(runtime.GOMAXPROCS(0), 8) - 1
}
