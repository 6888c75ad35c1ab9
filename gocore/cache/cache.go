// Package cache holds what the tiers, the transfers and the operations of a store share: one lock, the engine behind it, the memories of the tiers, and the
// callers that wait. It is a package of its own, so that these can share it without importing each other. Tiers see it through the interfaces tier.Cache,
// host.Cache and disk.Cache alone.
package cache

import (
	"sync"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/tier/host"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/findings"
	"velocpy/gocore/transfer/pending"
)

// Cache is the shared part of one store. It consists of parts, each of them one concern with the state that only this concern has.
type Cache struct {
	state
	stagings
	anchors
	schedules
	lineageAreas
	shapes
	wrappedLineages
}

// state is what every part of the cache uses: the tiers, the lock, and what it guards.
type state struct {
	tiers
	Set     config.Settings // checked when the store was opened
	Copiers *copier.Pool
	began   time.Time

	mu       sync.Mutex
	Engine   *engine.Engine
	Layouts  checkpoint.Layouts
	Callers  map[Caller]struct{}         // operations that have not ended
	Blocked  map[WaitingCapture]struct{} // captures that wait for room
	Users    int                         // workers, operations that access memory, leases, other goroutines; while above zero, the memory stays mapped
	Resizing int                         // resize operations that have not ended
	Closing  bool
	Empty    bool // Users has reached zero after the close, and the memory is being unmapped
	Line     figures.Timeline
	Counters figures.Counters
	Causes   figures.Causes // time that captures waited inside their calls, by cause
	Findings findings.List
	Orphans  pending.Orphans
	// Reductions are those of histories whose checkpoints are encoded, by name.
	Reductions map[string]*Reduction

	// What package store adds when it opens a store. All but Unmap are called with the lock held.
	Work    func()                                // wakes workers that may have something to do
	Counted func(r *engine.Record)                // a version counts for the rules of retention; it may drop checkpoints
	Rule    func(history string) *model.Retention // the present rule of retention of a history
	Forget  func()                                // forgets everything, when a closed store has no user any more …
	Unmap   func()                                // … and then unmaps the memory
}

// Caller is an operation whose caller waits for it.
type Caller interface {
	// Wake notifies the caller: the operation may go on.
	Wake()
	// Refuse ends the operation if it waits for the disk to take its bytes.
	Refuse(why error)
}

// WaitingCapture is a capture that waits for room.
type WaitingCapture interface {
	// UpdateCause updates the cause for which it waits.
	UpdateCause(now int64)
	// Cause returns that cause.
	Cause() engine.Blocker
}

// Lock takes the lock. Most callers take it by Enter, which also looks whether the store is usable, and give it back by Leave.
func (s *state) Lock() { s.mu.Lock() }

// Unlock releases the lock after a section that has not changed the engine.
func (s *state) Unlock() { s.mu.Unlock() }

// New returns the cache of a store whose tiers are not open yet.
func New(set config.Settings) *Cache {
	c := &Cache{state: state{
		Set: set, began: time.Now(), Layouts: checkpoint.NewLayouts(set.Describes), Line: figures.Timeline{Limit: set.Timeline},
		Callers: map[Caller]struct{}{}, Blocked: map[WaitingCapture]struct{}{}, Reductions: map[string]*Reduction{},
	}}
	c.stagings = stagings{state: &c.state, byTier: map[int]*deviceStaging{}, groups: map[int]int64{}}
	c.anchors = anchors{state: &c.state, stagings: &c.stagings}
	c.schedules = schedules{state: &c.state, stagings: &c.stagings}
	c.lineageAreas = lineageAreas{state: &c.state, stagings: &c.stagings, areas: map[int]*LineageArea{}}
	c.shapes = shapes{state: &c.state, stagings: &c.stagings, anchors: &c.anchors, schedules: &c.schedules, areas: &c.lineageAreas}
	c.wrappedLineages = wrappedLineages{tiers: &c.state.tiers, byHistory: map[string]*Wrapped{}}
	return c
}

// Now is the time since the store was opened, ns. It is the engine's clock.
func (s *state) Now() int64 { return time.Since(s.began).Nanoseconds() }

// Clock returns the time of day, which may jump.
func (s *state) Clock() time.Time {
	if s.Set.Clock != nil {
		return s.Set.Clock()
	}
	return time.Now()
}

// Enter takes the lock for a call of a user of the store. It fails when the store is closed or the core has panicked.
func (s *state) Enter() error {
	if text, bad := safego.Poisoned(); bad {
		return status.New(status.Poisoned, "%s", text)
	}
	s.mu.Lock()
	if s.Closing {
		s.mu.Unlock()
		return status.New(status.Closed, "the store is closed")
	}
	return nil
}

// EnterToWrite is Enter for calls that change the contents of the store. It also fails when the store is open for reading only.
func (s *state) EnterToWrite() error {
	if s.Set.ReadOnly {
		return status.New(status.ReadOnly, "the store in %q is open for reading only", s.Set.Path)
	}
	return s.Enter()
}

// Leave wakes the callers whose operations have progressed, wakes workers for new transfers, and releases the lock. Every section that changes the
// engine ends with a deferred Leave, so that a panic does not leave the lock held.
func (s *state) Leave() {
	defer s.unlock()
	s.Notify()
}

// Notify is Leave without the unlock, for who goes on with the lock: a worker that is about to wait, or that has changed the state while it woke others.
func (s *state) Notify() {
	for _, x := range s.Engine.TakeWoken() {
		x.(Caller).Wake()
	}
	s.lookAtBlocked()
	s.followSizes()
	if s.Work != nil {
		s.Work()
	}
}

// followSizes lets the memories of the tiers follow a change. A store that closes gives them back, without the lock.
func (s *state) followSizes() {
	if s.Closing {
		return
	}
	if s.Host != nil {
		s.Host.Follow()
	}
	for _, a := range s.Devices {
		a.Follow()
	}
}

// unlock releases the lock. The last user of a closed store also unmaps the memory.
func (s *state) unlock() {
	last := s.Closing && s.Users == 0 && !s.Empty
	if last {
		s.Empty = true
		s.Forget()
	}
	s.mu.Unlock()
	if last {
		s.Unmap()
	}
}

// Panicked wakes all callers when the core has panicked: each then gets the panic from its next step. The lock is not held.
func (s *state) Panicked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.WakeAll()
}

// WakeAll wakes all callers that wait.
func (s *state) WakeAll() {
	for op := range s.Callers {
		op.Wake()
	}
}

// ErrClosed is the error of an operation that waited when the store was closed.
var ErrClosed = status.New(status.Closed, "the store was closed")

// NotFound is the error of a key without a checkpoint.
func NotFound(h *engine.History, k model.Key) error {
	return status.New(status.NotFound, "history %q has no checkpoint %s: it was never written, or dropped, or consumed", h.Name, k)
}

// lookAtBlocked updates the causes for which captures wait. Every section that may have changed them ends with it.
func (s *state) lookAtBlocked() {
	if len(s.Blocked) == 0 {
		return
	}
	now := s.Now()
	for op := range s.Blocked {
		op.UpdateCause(now)
	}
}

// GrowFor grows the device tier by the memory that one checkpoint needs, if the budget and the application allow it. The tier grows before anything
// is evicted.
func (c *Cache) GrowFor(regions []model.Region, slot int64) error {
	for len(c.Set.Devices) > 0 {
		a, err := c.shortOf(regions, slot)
		if a == nil || err != nil {
			return err
		}
		if err := a.Grow(); err != nil {
			return err
		}
	}
	return nil
}

// shortOf returns the device tier that should have more memory for a checkpoint, or nil.
func (c *Cache) shortOf(regions []model.Region, slot int64) (*devicememory.Memory, error) {
	if err := c.Enter(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	a, err := c.DeviceOfRegions(regions)
	if a == nil || err != nil || !a.IsShortOf(slot) {
		return nil, err
	}
	return a, nil
}

// resized wakes the callers that wait for a resize. The lock is not held.
func (s *state) resized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Resizing > 0 {
		s.WakeAll()
	}
}

// ForTier returns what the memory of a tier sees of the cache.
func (c *Cache) ForTier(t int) tier.Cache { return tierCache{shared{c}, t} }

// ForHost returns what the memory of the host tier sees of the cache.
func (c *Cache) ForHost() host.Cache { return hostCache{tierCache{shared{c}, c.HostTier()}} }

// ForDisk returns what the disk tier sees of the cache.
func (c *Cache) ForDisk() disk.Cache { return diskCache{shared{c}} }
