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

// Cache is the shared part of one store.
type Cache struct {
	Set   config.Settings // checked when the store was opened
	began time.Time
	Host  *host.Memory // nil without a host tier
	// Memories of the device tiers. The index is the engine's number of the tier: device tiers precede host and disk.
	Devices []*devicememory.Memory
	Disk    *disk.Tier // nil without a disk tier
	Copiers *copier.Pool
	Tiers   []int // for each of the engine's tiers: its number in the C contract

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
	anchors    []*Anchor              // of all histories, also those that are about to be let go
	wrapped    map[string]*Wrapped    // by history
	staging    map[int]*deviceStaging // by tier

	// What package store adds when it opens a store. All but Unmapped are called with the lock held.
	Work     func()                                // wakes workers that may have something to do
	Counted  func(r *engine.Record)                // a version counts for the rules of retention; it may drop checkpoints
	Rule     func(history string) *model.Retention // the present rule of retention of a history
	Emptied  func()                                // forgets everything, when a closed store has no user any more …
	Unmapped func()                                // … and then unmaps the memory
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
func (c *Cache) Lock() { c.mu.Lock() }

// Unlock releases the lock after a section that has not changed the engine.
func (c *Cache) Unlock() { c.mu.Unlock() }

// New returns the cache of a store whose tiers are not open yet.
func New(set config.Settings) *Cache {
	return &Cache{
		Set: set, began: time.Now(), Layouts: checkpoint.NewLayouts(set.Describes), Line: figures.Timeline{Limit: set.Timeline},
		Callers: map[Caller]struct{}{}, Blocked: map[WaitingCapture]struct{}{}, Reductions: map[string]*Reduction{}, wrapped: map[string]*Wrapped{},
	}
}

// Now is the time since the store was opened, ns. It is the engine's clock.
func (c *Cache) Now() int64 { return time.Since(c.began).Nanoseconds() }

// Clock returns the time of day, which may jump.
func (c *Cache) Clock() time.Time {
	if c.Set.Clock != nil {
		return c.Set.Clock()
	}
	return time.Now()
}

// Enter takes the lock for a call of a user of the store. It fails when the store is closed or the core has panicked.
func (c *Cache) Enter() error {
	if text, bad := safego.Poisoned(); bad {
		return status.New(status.Poisoned, "%s", text)
	}
	c.mu.Lock()
	if c.Closing {
		c.mu.Unlock()
		return status.New(status.Closed, "the store is closed")
	}
	return nil
}

// EnterToWrite is Enter for calls that change the contents of the store. It also fails when the store is open for reading only.
func (c *Cache) EnterToWrite() error {
	if c.Set.ReadOnly {
		return status.New(status.ReadOnly, "the store in %q is open for reading only", c.Set.Path)
	}
	return c.Enter()
}

// Leave wakes the callers whose operations have progressed, wakes workers for new transfers, and releases the lock. Every section that changes the
// engine ends with a deferred Leave, so that a panic does not leave the lock held.
func (c *Cache) Leave() {
	defer c.unlock()
	c.Notify()
}

// Notify is Leave without the unlock, for who goes on with the lock: a worker that is about to wait, or that has changed the state while it woke others.
func (c *Cache) Notify() {
	for _, x := range c.Engine.TakeWoken() {
		x.(Caller).Wake()
	}
	c.lookAtBlocked()
	c.followSizes()
	if c.Work != nil {
		c.Work()
	}
}

// followSizes lets the memories of the tiers follow a change. A store that closes gives them back, without the lock.
func (c *Cache) followSizes() {
	if c.Closing {
		return
	}
	if c.Host != nil {
		c.Host.Follow()
	}
	for _, a := range c.Devices {
		a.Follow()
	}
}

// UsesDisk tells whether a transfer reads or writes the disk tier.
func (c *Cache) UsesDisk(x *engine.Transfer) bool { return c.Disk != nil && c.Disk.Uses(x) }

// IsDurable tells whether checkpoints outlive the process.
func (c *Cache) IsDurable() bool { return c.Disk != nil && c.Disk.Durable() }

// unlock releases the lock. The last user of a closed store also unmaps the memory.
func (c *Cache) unlock() {
	last := c.Closing && c.Users == 0 && !c.Empty
	if last {
		c.Empty = true
		c.Emptied()
	}
	c.mu.Unlock()
	if last {
		c.Unmapped()
	}
}

// Panicked wakes all callers when the core has panicked: each then gets the panic from its next step. The lock is not held.
func (c *Cache) Panicked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.WakeAll()
}

// WakeAll wakes all callers that wait.
func (c *Cache) WakeAll() {
	for op := range c.Callers {
		op.Wake()
	}
}

// ErrClosed is the error of an operation that waited when the store was closed.
var ErrClosed = status.New(status.Closed, "the store was closed")

// RetryForCaller lets the disk tier retry what failed, for a caller that needs the disk.
func (c *Cache) RetryForCaller() {
	if c.Disk != nil {
		c.Disk.RetryForCaller()
	}
}

// NotFound is the error of a key without a checkpoint.
func NotFound(h *engine.History, k model.Key) error {
	return status.New(status.NotFound, "history %q has no checkpoint %s: it was never written, or dropped, or consumed", h.Name, k)
}

// lookAtBlocked updates the causes for which captures wait. Every section that may have changed them ends with it.
func (c *Cache) lookAtBlocked() {
	if len(c.Blocked) == 0 {
		return
	}
	now := c.Now()
	for op := range c.Blocked {
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

// DiskError explains an error of the disk tier; nil stays nil.
func (c *Cache) DiskError(err error) error {
	if c.Disk == nil {
		return err
	}
	return c.Disk.Error(err)
}

// resized wakes the callers that wait for a resize. The lock is not held.
func (c *Cache) resized() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Resizing > 0 {
		c.WakeAll()
	}
}

// ForTier returns what the memory of a tier sees of the cache.
func (c *Cache) ForTier(t int) tier.Cache { return tierCache{shared{c}, t} }

// ForHost returns what the memory of the host tier sees of the cache.
func (c *Cache) ForHost() host.Cache { return hostCache{tierCache{shared{c}, c.HostTier()}} }

// ForDisk returns what the disk tier sees of the cache.
func (c *Cache) ForDisk() disk.Cache { return diskCache{shared{c}} }
