package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
)

// extent is how much memory the tier of a device has. It grows in the background, ahead of the captures, never beyond the budget and never into the
// last that the device has; giveback.go tells how it shrinks.
type extent struct {
	budget   atomic.Int64
	reserved int64         // the most that the budget can be
	want     chan struct{} // more memory is wanted
	turn     chan struct{} // some may go back
	stop     chan struct{}
	once     sync.Once
	fixed    atomic.Bool // no memory can be given back any more: nobody would know when

	mu     sync.Mutex // held while memory is taken, never while anybody waits for a device
	giving bool       // memory is on its way back, and none is taken
	others int64      // bytes that others used when memory was taken last, or fewer since

	warned, relieved bool // what was told once

	// Under the store's lock.
	seams   []int64 // where the pieces end that are mapped
	refused int64   // until then (ns) the device is not asked for more
	full    bool    // what is left of the budget is no piece
	busy    bool    // somebody is at giving back, and looks at everything once more in the end
	settled bool    // nothing more will be given back unless the application or a lower tier does something
}

const (
	growFirst  = 8 << 30  // is mapped when the store opens: later the driver may be busy registering host memory, and captures would wait
	spareShare = 16       // of the device's memory, this part stays free for the application (as a divisor)
	growAhead  = 64 << 20 // this much room, at least, lies mapped ahead of what is in use
)

// lookEvery is how long an application that needs its memory is left alone, and how soon one that needs more is noticed.
const lookEvery = 250 * time.Millisecond

// mapped is what the tier has. The store's lock is held, as for all of these.
func (x *extent) mapped() int64 { return x.seam(len(x.seams)) }

// seam is where the piece before number i ends.
func (x *extent) seam(i int) int64 {
	if i <= 0 {
		return 0
	}
	return x.seams[i-1]
}

// down is the last seam that is not behind a place, up the first that is not before it.
func (x *extent) down(at int64) int64 {
	i := len(x.seams)
	for i > 0 && x.seam(i) > at {
		i--
	}
	return x.seam(i)
}

func (x *extent) up(at int64) int64 {
	i := len(x.seams)
	for i > 0 && x.seam(i-1) >= at {
		i--
	}
	return x.seam(i)
}

// excess tells whether a piece lies altogether behind a place.
func (x *extent) excess(reach int64) bool {
	n := len(x.seams)
	return n > 0 && reach <= x.seam(n-1) && !x.fixed.Load()
}

// reserve sets addresses aside and maps what the first captures find; a GiB takes a tenth of a millisecond.
func (s *Store) reserve(a *accelerator, budget int64) (err error) {
	x := &a.extent
	x.budget.Store(budget)
	x.reserved = budget
	if a.arena, err = a.dev.Reserve(budget); err != nil {
		return err
	}
	for x.mapped() < min(budget, growFirst) {
		grown, err := a.arena.Grow(budget)
		if err != nil && !errors.Is(err, device.ErrMemory) {
			return err
		}
		if err != nil || grown == x.mapped() { // or else what is left of the budget is less than the device maps
			break
		}
		x.seams = append(x.seams, grown)
	}
	if x.mapped() == 0 {
		x.small(a)
	}
	free, total, err := a.dev.Memory()
	x.others = total - free - x.mapped()
	return err
}

// small tells, once, that the tier is smaller than it was to be.
func (x *extent) small(a *accelerator) {
	if !x.warned {
		x.warned = true
		logring.Add(logring.Warning, fmt.Sprintf("%s has no memory left for the cache: it stays at %s of %s until there is some", a.dev.Name(), quantity.Sized(a.arena.Mapped()), quantity.Sized(x.budget.Load())))
	}
}

// startSizing lets every device grow to its budget, and shrink when others need the memory.
func (s *Store) startSizing() {
	for _, a := range s.accelerators {
		a.extent.want, a.extent.turn, a.extent.stop = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
		s.users++
		safego.Go("device memory", func() {
			s.size(a)
			s.mu.Lock()
			defer s.leave()
			s.users--
		})
	}
}

func (s *Store) stopSizing() {
	for _, a := range s.accelerators {
		if a.extent.stop != nil {
			a.extent.once.Do(func() { close(a.extent.stop) })
		}
	}
}

// size runs until the store closes or the device is lost.
func (s *Store) size(a *accelerator) {
	x := &a.extent
	ticker := time.NewTicker(s.set.LookEvery)
	defer ticker.Stop()
	for hungry := false; a.dev.Lost() == nil; {
		look := ticker.C
		if a.arena.Mapped() == 0 && !hungry {
			look = nil // there is nothing to give back, and nobody asks
		}
		select {
		case <-x.stop:
			return
		case <-x.turn:
			s.giveBack(a)
		case <-x.want:
			hungry = s.growSome(a)
		case <-look:
			s.relieve(a)
			if hungry {
				hungry = s.growSome(a)
			}
		}
	}
	s.ringSized()
}

// growSome takes one piece; true when there is no memory for it.
func (s *Store) growSome(a *accelerator) (hungry bool) {
	err := s.growOnce(a)
	if errors.Is(err, device.ErrMemory) {
		a.extent.small(a)
		return true
	}
	return false
}

// growFor takes the memory that one checkpoint needs beside what is in use, if the budget and the application allow it: nothing is evicted
// before that.
func (s *Store) growFor(c *CheckpointArgs) error {
	for len(s.set.Devices) > 0 {
		a, err := s.shortOf(c)
		if a == nil || err != nil {
			return err
		}
		if err := s.growOnce(a); err != nil && !errors.Is(err, device.ErrMemory) {
			return deviceError(err)
		}
	}
	return nil
}

// shortOf is the device whose tier should have more memory for a checkpoint, if any.
func (s *Store) shortOf(c *CheckpointArgs) (*accelerator, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	a, err := s.placed(c.Regions)
	if a == nil || err != nil {
		return nil, err
	}
	if use := s.eng.Use(a.tier); use.Capacity-use.Used >= 2*c.Slot || !s.mayGrow(a, use.Capacity) {
		return nil, nil
	}
	return a, nil
}

// mayGrow tells whether it is worth while to ask for more memory.
func (s *Store) mayGrow(a *accelerator, capacity int64) bool {
	x := &a.extent
	return capacity < x.budget.Load() && !x.full && (x.refused == 0 || s.now() >= x.refused)
}

// growOnce takes one piece, if the application leaves any. What is on its way back comes first.
func (s *Store) growOnce(a *accelerator) error {
	x := &a.extent
	x.mu.Lock()
	defer x.mu.Unlock()
	err := device.ErrMemory
	if !x.giving {
		err = s.takePiece(a)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		x.refused = s.now() + s.set.LookEvery.Nanoseconds()
	}
	return err
}

// takePiece is growOnce while nothing is given back.
func (s *Store) takePiece(a *accelerator) error {
	x := &a.extent
	free, total, err := a.dev.Memory()
	if err != nil {
		return err
	}
	mapped, budget := a.arena.Mapped(), x.budget.Load()
	allowed := mapped + free - total/spareShare
	if s.shrunk(a) {
		if allowed < mapped {
			return device.ErrMemory
		}
		s.lengthen(a, mapped)
		return nil
	}
	limit := min(budget, allowed)
	grown, err := a.arena.Grow(max(limit, mapped))
	switch {
	case err != nil:
		return err
	case grown == mapped && limit < budget:
		return device.ErrMemory
	}
	x.others = total - free - mapped
	s.lengthen(a, grown)
	return nil
}

// shrunk tells whether pieces that are still mapped could be used again.
func (s *Store) shrunk(a *accelerator) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closing && s.eng.Capacity(a.tier) < a.extent.down(a.extent.budget.Load())
}

// lengthen makes the tier use what is mapped, as far as the budget goes.
func (s *Store) lengthen(a *accelerator, mapped int64) {
	s.mu.Lock()
	defer s.leave()
	if s.closing {
		return
	}
	x := &a.extent
	if mapped > x.mapped() {
		x.seams = append(x.seams, mapped)
	}
	capacity := x.down(x.budget.Load())
	x.full = capacity <= s.eng.Capacity(a.tier)
	x.refused = 0
	s.eng.Grow(s.now(), a.tier, capacity)
}

// followExtents asks for more memory where captures come near the end of what a tier has, and sees to it that what lies behind the end of one that
// has shrunk goes. The lock is held.
func (s *Store) followExtents() {
	if s.closing {
		return
	}
	for t, a := range s.accelerators {
		x := &a.extent
		if x.want == nil {
			continue
		}
		if !x.busy && (s.leaving(a) || s.resizing > 0 && !x.settled) {
			tell(x.turn)
		}
		capacity := s.eng.Capacity(t)
		if s.eng.Stats.Tiers[t].HighWater+max(growAhead, capacity/4) >= capacity && s.mayGrow(a, capacity) {
			tell(x.want)
		}
	}
}

// leaving tells whether there is something to empty or to give back now.
func (s *Store) leaving(a *accelerator) bool {
	return s.eng.Draining(a.tier) || a.extent.excess(s.eng.Reach(a.tier))
}

// tell lets somebody know who may have been told already.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
