package devicememory

import (
	"fmt"

	"go.uber.org/atomic"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/tier"
)

// shrinker gives memory back: when the budget has become smaller, or when others have come to need it.
type shrinker struct {
	*sizing
	hazards  *hazards
	grower   *grower
	shrink   chan struct{} // some memory may be given back
	failed   atomic.Bool   // the device has not taken memory back, and is not asked again
	relieved bool          // it was logged that others have left little memory

	// Under the cache's lock.
	busy    bool // the goroutine gives back, and looks at everything once more before it rests
	settled bool // nothing more is given back unless the application or a lower tier does something
}

// isFixed tells whether no memory can be given back any more.
func (s *shrinker) isFixed() bool { return s.failed.Load() || s.hazards.unfenced.Load() }

// hasExcess tells whether a whole piece lies behind an offset. The cache's lock is held.
func (s *shrinker) hasExcess(reach int64) bool {
	n := len(s.seams)
	return n > 0 && reach <= s.seams.before(n-1) && !s.isFixed()
}

// When others have left only this part of a device's memory, the tier gives back as much as doubles it. Growth stops long before, so that the two do not alternate.
const (
	scarce = 64 // as divisors of the device's memory
	enough = 32
)

// relieve shrinks the tier when others have come to use nearly all memory of the device.
func (s *shrinker) relieve() {
	free, total, err := s.device.Memory()
	if err != nil {
		return
	}
	others := s.othersSince(total - free)
	if free >= total/scarce || others <= 0 {
		return
	}
	if s.shorten(total/enough - free) {
		if !s.relieved {
			s.relieved = true
			logring.Add(logring.Warning, fmt.Sprintf("%s has %s left: the cache gives memory back, and takes some again when there is more", s.device.Name(), quantity.Sized(free)))
		}
		s.giveBack()
	}
}

// othersSince is how many more bytes others use than when the tier took memory last, or than at the least since.
func (s *shrinker) othersSince(used int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := used - s.arena.Mapped()
	more := others - s.others
	s.others = min(s.others, others)
	return more
}

// shorten takes so many bytes, in whole pieces, out of use, counting those that already are; false when there is nothing more to take.
func (s *shrinker) shorten(bytes int64) bool {
	s.cache.Lock()
	defer s.cache.Leave()
	if to := max(s.seams.down(max(s.seams.mapped()-bytes, 0)), s.seams.up(s.floor)); !s.cache.Closing() && !s.isFixed() && to < s.cache.Capacity() {
		s.cache.Shrink(to)
		return true
	}
	return false
}

// giveBack empties what lies behind the end of a tier that has shrunk, and gives the empty pieces back, the last ones first.
func (s *shrinker) giveBack() {
	for {
		if !s.drain() {
			return
		}
		to, mapped := s.emptied()
		if to == mapped {
			break
		}
		s.release(to, mapped)
	}
	s.endRound()
	s.cache.Resized()
}

// endRound notes how far giving back has come, and begins another round for changes of which the busy goroutine was not notified.
func (s *shrinker) endRound() {
	s.cache.Lock()
	defer s.cache.Unlock()
	s.busy = false
	if s.hasWork() {
		tier.Notify(s.shrink)
		return
	}
	s.settled = s.cache.Settled()
}

// drain does what can be done now to empty the end of the tier; false when the store closes.
func (s *shrinker) drain() bool {
	for {
		if more, closing := s.drainSome(); closing || !more {
			return !closing
		}
	}
}

func (s *shrinker) drainSome() (more, closing bool) {
	s.cache.Lock()
	defer s.cache.Leave()
	if _, bad := safego.Poisoned(); bad || s.cache.Closing() {
		return false, true
	}
	s.busy = true
	s.cache.Drain(tier.DrainSteps)
	return s.cache.Draining(), false
}

// emptied says which pieces can be given back: those behind the first offset returned. None are taken until they are released.
func (s *shrinker) emptied() (to, mapped int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.Lock()
	defer s.cache.Unlock()
	mapped = s.seams.mapped()
	if reach := s.cache.Reach(); !s.cache.Closing() && s.hasExcess(reach) {
		s.giving = true
		return s.seams.up(reach), mapped
	}
	return mapped, mapped
}

// release gives memory back when the work that read or wrote there has ended. Nothing lay there when it was called, and nothing will be placed there.
func (s *shrinker) release(to, mapped int64) {
	err := s.hazards.AwaitRange(to, mapped-to)
	if err == nil {
		_, err = s.arena.Shrink(to)
	}
	if err != nil {
		s.failed.Store(true) // another attempt would fail the same way
		if s.device.Lost() == nil {
			logring.Add(logring.Warning, fmt.Sprintf("%s: the cache cannot give memory back: %v", s.device.Name(), err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giving = false
	s.cache.Lock()
	defer s.cache.Leave()
	for left := s.arena.Mapped(); s.seams.mapped() > left; {
		s.seams = s.seams[:len(s.seams)-1]
	}
	s.grower.full = false
}

// hasWork tells whether there is something to empty or to give back now. The cache's lock is held.
func (s *shrinker) hasWork() bool {
	return s.cache.Draining() || s.hasExcess(s.cache.Reach())
}

// Settled tells whether the tier has its budget, or gives nothing more back without the application. The cache's lock is held.
func (s *shrinker) Settled() bool {
	return s.seams.mapped() <= max(s.budget.Load(), s.seams.up(s.floor)) || s.settled
}
