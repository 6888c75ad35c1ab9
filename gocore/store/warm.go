package store

import (
	"runtime"

	"go.uber.org/atomic"

	"velocpy/gocore/memory"
	"velocpy/gocore/safego"
)

// warmth keeps the first touch of memory out of captures: a goroutine of its own makes pages of the host tier present ahead of the
// place that captures have reached. What is never reached is never touched, so a generous budget costs nothing until it is used.
type warmth struct {
	reached atomic.Int64
	want    chan struct{}
	stop    chan struct{}
	on      func(work func()) // runs what makes pages present, on the processors of the devices' node
}

const (
	warmFirst = 64 << 20  // pages made present when the store opens, and the least ahead of the captures afterwards
	warmAhead = 512 << 20 // the most: as much as is in use already, up to this
	warmPiece = 32 << 20  // at once
)

// goal is how far the pages should be present when captures have reached so far.
func goal(reached int64) int64 { return reached + min(max(reached, warmFirst), warmAhead) }

func (s *Store) startWarming() {
	if s.host == nil || len(s.accelerators) > 0 && s.set.Pinning != "off" {
		return // pinning touches everything
	}
	s.warm.on = s.nearThreads()
	s.warm.want, s.warm.stop = make(chan struct{}, 1), make(chan struct{})
	s.users++
	safego.Go("warming", func() {
		s.warm.run(s.host)
		s.mu.Lock()
		defer s.leave()
		s.users--
	})
}

func (s *Store) stopWarming() {
	if s.warm.stop != nil {
		close(s.warm.stop)
	}
}

// run populates the mapping piece by piece.
func (w *warmth) run(m *memory.Mapping) {
	for done := int64(0); done < m.Size(); {
		if done >= goal(w.reached.Load()) {
			select {
			case <-w.stop:
				return
			case <-w.want:
			}
			continue
		}
		select {
		case <-w.stop:
			return
		default:
		}
		n := min(warmPiece, m.Size()-done)
		var failed error
		if w.on(func() { failed = m.Populate(done, n) }); failed != nil {
			return // no memory left to populate: captures will meet the same and say so
		}
		done += n
	}
}

// follow tells how far into the buffer captures have come.
func (w *warmth) follow(used int64) {
	if reached := w.reached.Load(); w.want == nil || used < reached+warmFirst/2 {
		return
	}
	w.reached.Store(used)
	select {
	case w.want <- struct{}{}:
	default:
	}
}

func (s *Store) hostUsed() int64 {
	if s.host == nil {
		return 0
	}
	return s.eng.Stats.Tiers[len(s.set.Devices)].HighWater // the devices' tiers come first
}

// helpers is the number of goroutines that help large copies beside the caller.
func helpers(asked int) int {
	if asked > 0 {
		return asked
	}
	return min(runtime.GOMAXPROCS(0), 8) - 1
}
