// Package workers carries out the transfers of a store: it moves the bytes of checkpoints between the tiers, and verifies them on the way.
// File run.go has the loop, move.go carries out one transfer, and batch.go joins small ones.
package workers

import (
	"sync"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/borrow"
)

// Workers carry out the transfers of a store's engine, and verify checkpoints before they are lent.
type Workers struct {
	*cache.Cache
	heldRuns
	anchors  anchors
	verifier backgroundVerifier
	pools    []*workerPool
	occupied map[direction]*occupied // by which transfers
	running  int
	none     func() // called when the last worker has ended; the lock is not held
}

// Fetcher is the operation of a restore whose bytes a transfer brings to its caller's memory, or to memory beside the cache.
type Fetcher interface {
	// Wants returns the regions, or the parts of regions, that are wanted.
	Wants() checkpoint.Selection
	// Into returns the caller's memory for what is wanted, if the transfer may write it there; nil: it may not. The parts are contiguous then.
	Into() *borrow.Source
	// Filled tells the operation that the transfer has written all of it, and verified it. The lock is held.
	Filled()
	// Took tells whether the operation takes over the memory. The lock is held.
	Took(m *memory.Mapping) bool
}

// Start starts the workers. none is called when the last of them has ended. The lock is held.
func Start(c *cache.Cache, none func()) *Workers {
	s := &Workers{Cache: c, none: none, anchors: anchors{Cache: c, flushed: sync.NewCond(c)}, occupied: map[direction]*occupied{}}
	s.heldRuns = heldRuns{Cache: c, Grace: grace, wake: s.Wake}
	s.pools = s.newPools()
	for _, c := range s.pools {
		for range c.size {
			s.Users++
			s.running++
			safego.Go("transfer worker", func() { s.run(c) })
		}
	}
	s.startVerifier()
	return s
}

// Wake wakes the workers that may have something to do. The lock is held.
func (s *Workers) Wake() {
	if s.LetGoAnchors(false) {
		s.Notify() // calls this again
		return
	}
	for _, c := range s.pools {
		if c.resting > 0 && c.pending(s) {
			c.wake.Signal()
		}
	}
	s.verifier.wakeUp()
}

// Stop lets the workers end what they have in hand, and end. The store is closing, and the lock is held.
func (s *Workers) Stop() {
	for _, c := range s.pools {
		c.wake.Broadcast()
	}
	s.verifier.wake.Broadcast()
	s.anchors.flushed.Broadcast()
	s.stopTimers()
	s.LetGoAnchors(true)
}

// Running returns how many workers have not ended. The lock is held.
func (s *Workers) Running() int { return s.running }

// ended counts a worker out.
func (s *Workers) ended() {
	s.Lock()
	s.running--
	last := s.running == 0
	s.Unlock()
	if last {
		s.none()
	}
	s.Lock()
	defer s.Leave()
	s.Users--
}

// EachDeferred calls f for the transfers whose sources on a device are not filled yet. The lock is held.
func (s *Workers) EachDeferred(f func(x *engine.Transfer)) {
	for _, c := range s.pools {
		for x := range c.deferred.waiting {
			f(x)
		}
	}
}

// ForgetSources releases the sources of transfers that no worker has begun, and the captures of flushes that are held back. The workers have ended, and the lock is held.
func (s *Workers) ForgetSources() {
	unbegun := func(x *engine.Transfer) { // also of versions that are gone
		if x.Kind == engine.Spill {
			s.Orphans.Release(x.Rec.ID, x.Rec.Version)
		}
	}
	s.Engine.Unbegun(unbegun)
	s.EachDeferred(unbegun)
	s.eachHeld(func(x *engine.Transfer) { s.Orphans.Release(x.Rec.ID, x.Rec.Version) })
	for _, c := range s.pools {
		c.deferred, c.held = deferredSources{}, nil
	}
}
