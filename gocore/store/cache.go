package store

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
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/tier/host"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/pending"
)

// Cache is what the tiers, the transfers and the operations of a store share: one lock, the engine behind it, the memories of the tiers, and the callers
// that wait.
type Cache struct {
	set   config.Settings
	began time.Time
	host  *host.Memory // nil without a host tier
	// Memories of the device tiers. The index is the engine's number of the tier: device tiers precede host and disk.
	deviceTiers []*devicememory.Memory
	disk        *disk.Tier // nil without a disk tier
	pool        *copier.Pool
	tiers       []int // for each of the engine's tiers: its number in the C contract

	mu       sync.Mutex
	eng      *engine.Engine
	layouts  checkpoint.Layouts
	ops      map[caller]struct{}
	roomless map[waitingCapture]struct{} // captures that wait for room
	users    int                         // workers, operations that access memory, leases, other goroutines; while above zero, the memory stays mapped
	resizing int                         // resize operations that have not ended
	closing  bool
	empty    bool // users has reached zero after the close, and the memory is being unmapped
	line     figures.Timeline
	counters figures.Counters
	causes   figures.Causes // time that captures waited inside their calls, by cause
	deferred deferredVerification
	orphans  pending.Orphans

	// What the store does beside. All but unmapped are called with the lock held.
	work     func()                 // wakes workers that may have something to do
	counted  func(r *engine.Record) // a version counts for the rules of retention; it may drop checkpoints
	emptied  func()                 // forgets everything, when a closed store has no user any more …
	unmapped func()                 // … and then unmaps the memory
}

// caller is an operation whose caller waits for it.
type caller interface {
	// Wake notifies the caller: the operation may go on.
	Wake()
	// Refuse ends the operation if it waits for the disk to take its bytes.
	Refuse(why error)
}

// waitingCapture is a capture that waits for room.
type waitingCapture interface {
	// Blocked updates the cause for which it waits.
	Blocked(now int64)
}

func newCache(set config.Settings) *Cache {
	return &Cache{
		set: set, began: time.Now(), layouts: checkpoint.NewLayouts(set.Describes), line: figures.Timeline{Limit: set.Timeline},
		ops: map[caller]struct{}{}, roomless: map[waitingCapture]struct{}{},
	}
}

// now is the time since the store was opened, ns. It is the engine's clock.
func (c *Cache) now() int64 { return time.Since(c.began).Nanoseconds() }

// clock returns the time of day, which may jump.
func (c *Cache) clock() time.Time {
	if c.set.Clock != nil {
		return c.set.Clock()
	}
	return time.Now()
}

// enter takes the lock for a call from outside the package. It fails when the store is closed or the core has panicked.
func (c *Cache) enter() error {
	if text, bad := safego.Poisoned(); bad {
		return status.New(status.Poisoned, "%s", text)
	}
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return status.New(status.Closed, "the store is closed")
	}
	return nil
}

// enterToWrite is enter for calls that change the contents of the store. It also fails when the store is open for reading only.
func (c *Cache) enterToWrite() error {
	if c.set.ReadOnly {
		return status.New(status.ReadOnly, "the store in %q is open for reading only", c.set.Path)
	}
	return c.enter()
}

// leave wakes the callers whose operations have progressed, wakes workers for new transfers, and releases the lock. Every section that changes the
// engine ends with a deferred leave, so that a panic does not leave the lock held.
func (c *Cache) leave() {
	defer c.unlock()
	c.notify()
}

func (c *Cache) notify() {
	for _, x := range c.eng.TakeWoken() {
		x.(caller).Wake()
	}
	c.lookAtBlocked()
	c.followSizes()
	c.work()
}

// followSizes lets the memories of the tiers follow a change. A store that closes gives them back, without the lock.
func (c *Cache) followSizes() {
	if c.closing {
		return
	}
	if c.host != nil {
		c.host.Follow()
	}
	for _, a := range c.deviceTiers {
		a.Follow()
	}
}

// usesDisk tells whether a transfer reads or writes the disk tier.
func (c *Cache) usesDisk(x *engine.Transfer) bool { return c.disk != nil && c.disk.Uses(x) }

// isDurable tells whether checkpoints outlive the process.
func (c *Cache) isDurable() bool { return c.disk != nil && c.disk.Durable() }

// unlock releases the lock. The last user of a closed store also unmaps the memory.
func (c *Cache) unlock() {
	last := c.closing && c.users == 0 && !c.empty
	if last {
		c.empty = true
		c.emptied()
	}
	c.mu.Unlock()
	if last {
		c.unmapped()
	}
}

// notifyAll runs when the core has panicked. Each waiting caller then gets the panic from its next step.
func (c *Cache) notifyAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeAll()
}

// wakeAll wakes all callers that wait.
func (c *Cache) wakeAll() {
	for op := range c.ops {
		op.Wake()
	}
}

var errClosed = status.New(status.Closed, "the store was closed")

// retryForCaller lets the disk tier retry what failed, for a caller that needs the disk.
func (c *Cache) retryForCaller() {
	if c.disk != nil {
		c.disk.RetryForCaller()
	}
}

// notFound is the error of a key without a checkpoint.
func notFound(h *engine.History, k model.Key) error {
	return status.New(status.NotFound, "history %q has no checkpoint %s: it was never written, or dropped, or consumed", h.Name, k)
}

// lookAtBlocked updates the causes for which captures wait. Every section that may have changed them ends with it.
func (c *Cache) lookAtBlocked() {
	if len(c.roomless) == 0 {
		return
	}
	now := c.now()
	for op := range c.roomless {
		op.Blocked(now)
	}
}

// growFor grows the device tier by the memory that one checkpoint needs, if the budget and the application allow it. The tier grows before anything
// is evicted.
func (c *Cache) growFor(regions []model.Region, slot int64) error {
	for len(c.set.Devices) > 0 {
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
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	a, err := c.deviceOfRegions(regions)
	if a == nil || err != nil || !a.IsShortOf(slot) {
		return nil, err
	}
	return a, nil
}

// diskError explains an error of the disk tier; nil stays nil.
func (c *Cache) diskError(err error) error {
	if c.disk == nil {
		return err
	}
	return c.disk.Error(err)
}

// resized wakes the callers that wait for a resize. The lock is not held.
func (c *Cache) resized() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resizing > 0 {
		c.wakeAll()
	}
}
