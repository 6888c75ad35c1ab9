package store

import (
	"fmt"
	"sync"
	"time"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
)

// hostSize keeps the host tier to a budget that Resize has changed, and gives free memory back to the system. One goroutine prefaults pages ahead of the
// captures (warm.go) and gives them back, so that neither undoes what the other does. Pinned memory behind the budget is unregistered first: a device would read
// and write pages that the process has lost.
type hostSize struct {
	bell chan struct{} // there may be something to do; nil: no host tier
	stop chan struct{}
	once sync.Once

	// Under the store's lock.
	runs      int   // 1 while the goroutine does, which is a user of the memory as long as the store is open; else 0
	budget    int64 // the tier's capacity becomes as large when nothing is being unregistered
	unpinning bool
	busy      bool  // the goroutine looks at everything once more in the end
	settled   bool  // nothing more leaves the tier's end unless the application or the disk does something
	trims     int64 // requests to give back everything that is free
	trimmed   int64 // … and how many of them are done
}

// idleLook is how often idle memory is looked for, as a part of the time after which it goes; at most once a millisecond.
const idleLook = 4

func (s *Store) startHost() {
	if s.host == nil {
		return
	}
	x := &s.hosted
	x.bell, x.stop, x.budget = make(chan struct{}, 1), make(chan struct{}), s.host.Size()
	s.warm.near = s.nearThreads()
	s.warm.active.Store(len(s.accelerators) == 0 || s.set.Pinning == "off") // pinning touches everything
	s.users++
	x.runs = 1
	safego.Go("host memory", func() {
		s.keepHost()
		s.mu.Lock()
		defer s.leave()
		s.users--
		x.runs = 0
	})
}

func (s *Store) stopHost() {
	if s.hosted.stop != nil {
		s.hosted.once.Do(func() { close(s.hosted.stop) })
	}
}

func (s *Store) hostStopped() bool { return isClosed(s.hosted.stop) }

// keepHost runs until the store closes, or until a panic has left it in an unknown state.
func (s *Store) keepHost() {
	var look <-chan time.Time
	if s.set.Idle > 0 {
		ticker := time.NewTicker(max(s.idle()/idleLook, time.Millisecond))
		defer ticker.Stop()
		look = ticker.C
	}
	for !s.hostStopped() {
		if s.warmSome() {
			continue
		}
		select {
		case <-s.hosted.stop:
		case <-look:
			s.giveIdle()
		case <-s.hosted.bell:
			s.shrinkHost()
		}
		if _, bad := safego.Poisoned(); bad {
			return
		}
	}
}

func (s *Store) idle() time.Duration { return time.Duration(s.set.Idle * float64(time.Second)) }

// giveIdle gives back the memory that no record has used for as long as the store was told.
func (s *Store) giveIdle() {
	if !s.isPinning() {
		s.giveChunks(s.now() - s.idle().Nanoseconds())
	}
}

// isPinning tells whether goroutines touch pages of the host tier to pin them. Nothing is given back meanwhile: they would touch it again.
func (s *Store) isPinning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pin.active
}

// shrinkHost empties the room behind the tier's budget, gives its memory back, and, if that was asked for, all that is free.
func (s *Store) shrinkHost() {
	for s.drainHost() {
	}
	s.unpinHost()
	s.mu.Lock()
	pinning, trims, since := s.pin.active, s.hosted.trims, int64(-1)
	if trims > s.hosted.trimmed {
		since = s.now()
	}
	s.mu.Unlock()
	if !pinning {
		s.giveChunks(since)
	}
	s.restHost(!pinning, trims)
	s.ringSized()
}

// unpinHost unregisters what is pinned behind the budget, where nothing lies and nothing will.
func (s *Store) unpinHost() {
	for p, some := s.beginUnpin(); some; p, some = s.beginUnpin() {
		err := s.unregister(p)
		if err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("pinned memory of the host tier stays with the process: %v", err))
			s.pages.keep()
		} else {
			s.pages.unpinned(p.off)
			s.pin.front.retreat(p.n)
		}
		s.endUnpin()
	}
}

func (s *Store) beginUnpin() (p pin, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.pin.active {
		return pin{}, false
	}
	p, some = s.pages.unpinnable()
	s.hosted.unpinning = some
	return p, some
}

func (s *Store) endUnpin() {
	s.mu.Lock()
	defer s.leave()
	s.hosted.unpinning = false
	s.growHost()
}

// drainHost does a part of what can be done now to empty the tier's end; false when that is all, or the store closes.
func (s *Store) drainHost() (more bool) {
	s.mu.Lock()
	defer s.leave()
	if _, bad := safego.Poisoned(); bad || s.closing {
		return false
	}
	t := s.hostTier()
	s.hosted.busy = true
	s.eng.Drain(s.now(), t, drainSteps)
	return s.eng.Draining(t)
}

// restHost notes how far giving back has come. Nobody has rung the bell for what has happened meanwhile.
func (s *Store) restHost(given bool, trims int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &s.hosted
	x.busy = false
	if given {
		x.trimmed = trims
	}
	if s.hostLeaves() {
		tell(x.bell)
		return
	}
	x.settled = given && s.eng.Settled(s.hostTier())
}

// hostLeaves tells whether there is something to empty or to give back now. The lock is held.
func (s *Store) hostLeaves() bool {
	if s.eng.Draining(s.hostTier()) {
		return true
	}
	if s.pin.active {
		return false // it is told when that has ended
	}
	return s.hosted.trims > s.hosted.trimmed || s.pages.leaves()
}

// followHost sees to it that memory is touched ahead of the captures, and that what lies behind the end of a tier that has shrunk goes. The lock is held.
func (s *Store) followHost() {
	x := &s.hosted
	if x.bell == nil || s.closing {
		return
	}
	if s.warm.behind(s.pages.reached()) || !x.busy && (s.hostLeaves() || s.resizing > 0 && !x.settled) {
		tell(x.bell)
	}
}

// giveChunks gives chunks back that are free since a time, or behind the budget.
func (s *Store) giveChunks(since int64) {
	all := s.pages.idle(since)
	for _, i := range all {
		if s.hostStopped() {
			return
		}
		if err := s.pages.give(i, since, s.host.Discard); err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("free memory of the host tier stays with the process: %v", err))
			s.pages.keep()
			return
		}
	}
	if len(all) > 0 {
		s.warm.restart(s.pages.start(all[0]), s.pages.settled())
	}
}

// hostTier is the engine's number of the host tier.
func (s *Store) hostTier() int { return len(s.accelerators) }

// roomChanged notes what the engine gives to records and takes from them.
func (s *Store) roomChanged(t int, off, n int64, taken bool) {
	switch {
	case t != s.hostTier():
	case taken:
		s.pages.take(off, n)
	default:
		s.pages.drop(off, n, s.now())
	}
}

// setHost makes the host tier keep to another budget. The lock is held.
func (s *Store) setHost(budget int64) {
	x := &s.hosted
	x.budget, x.settled = budget, false
	if t := s.hostTier(); budget <= s.eng.Capacity(t) {
		s.eng.Shrink(s.now(), t, budget)
		s.pages.budget(budget)
	} else {
		s.growHost()
	}
	tell(x.bell)
}

// growHost lets the host tier have its budget, unless memory is being unregistered that it would reach. The lock is held.
func (s *Store) growHost() {
	x, t := &s.hosted, s.hostTier()
	if x.unpinning || s.closing || x.budget <= s.eng.Capacity(t) {
		return
	}
	s.pages.budget(x.budget)
	s.eng.Grow(s.now(), t, x.budget)
	s.pinMore()
}

// checkHost is the error of a budget that the host tier cannot have.
func (s *Store) checkHost(budget int64) error {
	switch {
	case s.host == nil:
		return status.New(status.Unavailable, "the store has no host tier: open it with host=").AtTier(status.TierHost)
	case budget < 0:
		return status.New(status.Invalid, "the budget of host is %s; it cannot be negative", quantity.Exact(budget)).AtTier(status.TierHost)
	case budget > s.host.Size():
		return status.New(status.Invalid, "a budget of %s for host: the store was opened with %s, and a budget cannot become larger than that", quantity.Exact(budget), quantity.Exact(s.host.Size())).AtTier(status.TierHost)
	}
	return nil
}

// hostSettled tells whether the host tier has its budget, and has given back what it can without the application. The lock is held.
func (s *Store) hostSettled() bool {
	return s.hosted.budget == s.eng.Capacity(s.hostTier()) && s.hosted.settled && !s.hostLeaves()
}

// hostBytes is how many bytes the host tier may have: its budget and what has to stay behind it. The lock is held.
func (s *Store) hostBytes() int64 {
	t := s.hostTier()
	return s.eng.Capacity(t) + s.eng.Behind(t)
}
