package store

import (
	"fmt"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
)

// When others have left so little of a device's memory, the tier gives back as much as makes it twice that. Growth stops long before, so that the two
// do not take turns.
const (
	scarce = 64 // of the device's memory (as a divisor)
	enough = 32
)

// relieve shrinks the tier when others have come to use nearly all that the device has.
func (s *Store) relieve(a *accelerator) {
	x := &a.extent
	free, total, err := a.dev.Memory()
	if err != nil {
		return
	}
	others := s.othersSince(a, total-free)
	if free >= total/scarce || others <= 0 {
		return
	}
	if s.shorten(a, total/enough-free) {
		if !x.relieved {
			x.relieved = true
			logring.Add(logring.Warning, fmt.Sprintf("%s has %s left: the cache gives memory back, and takes some again when there is more", a.dev.Name(), quantity.Sized(free)))
		}
		s.giveBack(a)
	}
}

// othersSince is how many more bytes others use than when the tier took memory last, or than ever since.
func (s *Store) othersSince(a *accelerator, used int64) int64 {
	x := &a.extent
	x.mu.Lock()
	defer x.mu.Unlock()
	others := used - a.arena.Mapped()
	more := others - x.others
	x.others = min(x.others, others)
	return more
}

// shorten takes so many bytes, in whole pieces, out of use, counting those that already are; false when there is nothing more to take.
func (s *Store) shorten(a *accelerator, bytes int64) bool {
	s.mu.Lock()
	defer s.leave()
	x := &a.extent
	if to := x.down(max(x.mapped()-bytes, 0)); !s.closing && !x.fixed.Load() && to < s.eng.Capacity(a.tier) {
		s.eng.Shrink(s.now(), a.tier, to)
		return true
	}
	return false
}

// giveBack empties what lies behind the end of a tier that has shrunk, and gives the pieces that are empty back, the last ones first.
func (s *Store) giveBack(a *accelerator) {
	for {
		if !s.drain(a) {
			return
		}
		to, mapped := s.emptied(a)
		if to == mapped {
			break
		}
		s.release(a, to, mapped)
	}
	s.rest(a)
	s.ringSized()
}

// rest notes how far giving back has come: what has happened meanwhile told nobody.
func (s *Store) rest(a *accelerator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &a.extent
	x.busy = false
	if s.leaving(a) {
		tell(x.turn)
		return
	}
	x.settled = s.eng.Settled(a.tier)
}

// drainSteps bounds how long the store's lock is held at a time.
const drainSteps = 16

// drain does what can be done now to empty the tier's end; false when the store closes.
func (s *Store) drain(a *accelerator) bool {
	for {
		if more, closing := s.drainSome(a); closing || !more {
			return !closing
		}
	}
}

func (s *Store) drainSome(a *accelerator) (more, closing bool) {
	s.mu.Lock()
	defer s.leave()
	if _, bad := safego.Poisoned(); bad || s.closing {
		return false, true
	}
	a.extent.busy = true
	s.eng.Drain(s.now(), a.tier, drainSteps)
	return s.eng.Draining(a.tier), false
}

// emptied says which pieces can go: those behind the first place returned. None are taken until they are released.
func (s *Store) emptied(a *accelerator) (to, mapped int64) {
	x := &a.extent
	x.mu.Lock()
	defer x.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	mapped = x.mapped()
	if reach := s.eng.Reach(a.tier); !s.closing && x.excess(reach) {
		x.giving = true
		return x.up(reach), mapped
	}
	return mapped, mapped
}

// release gives memory back when everybody who read or wrote there has done so. Nothing was placed there when it was called, and nothing will be, so that
// nobody comes in between.
func (s *Store) release(a *accelerator, to, mapped int64) {
	err := a.still(to, mapped-to)
	if err == nil {
		_, err = a.arena.Shrink(to)
	}
	x := &a.extent
	if err != nil {
		x.fixed.Store(true) // whatever it was, it would come again
		if a.dev.Lost() == nil {
			logring.Add(logring.Warning, fmt.Sprintf("%s: the cache cannot give memory back: %v", a.dev.Name(), err))
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.giving = false
	s.mu.Lock()
	defer s.leave()
	for left := a.arena.Mapped(); x.mapped() > left; {
		x.seams = x.seams[:len(x.seams)-1]
	}
	x.full = false
}
