package store

import (
	"runtime"

	"go.uber.org/atomic"
)

// warmth keeps the first touch of memory out of captures: pages of the host tier are made present ahead of the place that captures have reached. What is never
// reached is never touched, so a generous budget costs nothing until it is used. Pages that were given back are touched ahead again when captures come near.
type warmth struct {
	on      atomic.Bool
	reached atomic.Int64 // where captures were when pages were looked after last
	resting atomic.Bool  // memory was given back, and no captures have come since
	done    int64        // the pages before it are present; the goroutine's own
}

const (
	warmFirst = 64 << 20  // pages made present when the store opens, and the least ahead of the captures afterwards
	warmAhead = 512 << 20 // the most: as much as is in use already, up to this
	warmPiece = 32 << 20  // at once
)

// goal is how far the pages should be present when captures have reached so far.
func goal(reached int64) int64 { return reached + min(max(reached, warmFirst), warmAhead) }

// warmSome makes one piece present; false when nothing is to be done.
func (s *Store) warmSome() bool {
	w := &s.warm
	if !w.on.Load() || w.resting.Load() {
		return false
	}
	n := min(warmPiece, s.hostBudget()-w.done)
	if n <= 0 || w.done >= goal(w.reached.Load()) {
		return false
	}
	s.pages.touched(w.done, n, s.now())
	if s.host.Populate(w.done, n) != nil {
		w.on.Store(false) // no memory left to populate: captures will meet the same and say so
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

// behind notes how far into the buffer captures have come, and tells whether pages are to be made present.
func (w *warmth) behind(used int64) bool {
	if !w.on.Load() || used < w.reached.Load()+warmFirst/2 {
		return false
	}
	w.reached.Store(used)
	w.resting.Store(false)
	return true
}

// restart tells that pages from a place on were given back, and how far what is in use reaches.
func (w *warmth) restart(from, used int64) {
	w.done = min(w.done, from)
	w.reached.Store(used)
	w.resting.Store(true)
}

// helpers is the number of goroutines that help large copies beside the caller.
func helpers(asked int) int {
	if asked > 0 {
		return asked
	}
	return min(runtime.GOMAXPROCS(0), 8) - 1
}
