package store

import (
	"fmt"
	"sync"
	"time"

	"velocpy/gocore/logring"
	"velocpy/gocore/safego"
	"velocpy/gocore/status"
)

// hostSize is how the host tier keeps to a budget that Resize has made smaller, and how it gives free memory back. One goroutine touches pages ahead of the
// captures (warm.go) and gives them back, so that neither undoes what the other does. What a device has pinned stays: without its pages a device would read and
// write memory that is the process's no more.
type hostSize struct {
	bell chan struct{} // there may be something to do; nil: no host tier
	stop chan struct{}
	once sync.Once

	// Under the store's lock.
	end     int64 // nothing behind it is to be given back any more
	busy    bool  // the goroutine looks at everything once more in the end
	settled bool  // nothing more leaves the tier's end unless the application or the disk does something
	trims   int64 // requests to give back everything that is free
	trimmed int64 // … and how many of them are done
}

// idleLook is how often idle memory is looked for, as a part of the time after which it goes; at most once a millisecond.
const idleLook = 4

func (s *Store) startHost() {
	if s.host == nil {
		return
	}
	x := &s.hosted
	x.bell, x.stop, x.end = make(chan struct{}, 1), make(chan struct{}), s.host.Size()
	s.warm.on.Store(len(s.accelerators) == 0 || s.set.Pinning == "off") // pinning touches everything
	s.users++
	safego.Go("host memory", func() {
		s.keepHost()
		s.mu.Lock()
		defer s.leave()
		s.users--
	})
}

func (s *Store) stopHost() {
	if s.hosted.stop != nil {
		s.hosted.once.Do(func() { close(s.hosted.stop) })
	}
}

func (s *Store) hostStopped() bool {
	select {
	case <-s.hosted.stop:
		return true
	default:
		return false
	}
}

// keepHost runs until the store closes.
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
	}
}

func (s *Store) idle() time.Duration { return time.Duration(s.set.Idle * float64(time.Second)) }

// giveIdle gives back what nobody has used for as long as the store was told.
func (s *Store) giveIdle() {
	s.giveChunks(s.now()-s.idle().Nanoseconds(), s.host.Size())
}

// shrinkHost empties what lies behind the end of the tier, gives its memory back, and, if that was asked for, all that is free.
func (s *Store) shrinkHost() {
	for s.drainHost() {
	}
	s.mu.Lock()
	t, trims := s.hostTier(), s.hosted.trims
	behind := max(s.eng.Capacity(t), s.eng.Reach(t))
	since := int64(-1)
	if trims > s.hosted.trimmed {
		since = s.now()
	}
	s.mu.Unlock()
	s.giveChunks(since, behind)
	s.restHost(behind, trims)
	s.ringSized()
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

// restHost notes how far giving back has come: what has happened meanwhile told nobody.
func (s *Store) restHost(end, trims int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &s.hosted
	x.busy, x.end, x.trimmed = false, end, trims
	if s.hostLeaves() {
		tell(x.bell)
		return
	}
	x.settled = s.eng.Settled(s.hostTier())
}

// hostLeaves tells whether there is something to empty or to give back now. The lock is held.
func (s *Store) hostLeaves() bool {
	t := s.hostTier()
	return s.eng.Draining(t) || max(s.eng.Capacity(t), s.eng.Reach(t)) < s.hosted.end || s.hosted.trims > s.hosted.trimmed
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

// giveChunks gives chunks back that are free since a time, or behind a place.
func (s *Store) giveChunks(since, behind int64) {
	all := s.pages.idle(since, behind)
	for _, i := range all {
		if s.hostStopped() {
			return
		}
		if err := s.pages.give(i, since, behind, s.host.Discard); err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("free memory of the host tier stays with the process: %v", err))
			return
		}
	}
	if len(all) > 0 {
		s.warm.restart(int64(all[0])*s.pages.grain, s.pages.settled())
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
	t := s.hostTier()
	if budget > s.eng.Capacity(t) {
		s.eng.Grow(s.now(), t, budget)
		s.hosted.end = max(s.hosted.end, budget)
	} else {
		s.eng.Shrink(s.now(), t, budget)
	}
	s.hosted.settled = false
	tell(s.hosted.bell)
}

// checkHost is the error of a budget that the host tier cannot have.
func (s *Store) checkHost(budget int64) error {
	switch {
	case s.host == nil:
		return status.New(status.Unavailable, "the store has no host tier: open it with host=").AtTier(status.TierHost)
	case budget < 0:
		return status.New(status.Invalid, "the budget of host is %d bytes; it cannot be negative", budget).AtTier(status.TierHost)
	case budget > s.host.Size():
		return status.New(status.Invalid, "a budget of %d bytes for host: the store was opened with %d, and a budget cannot become larger than that", budget, s.host.Size()).AtTier(status.TierHost)
	}
	return nil
}
