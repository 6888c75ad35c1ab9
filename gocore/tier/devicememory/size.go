package devicememory

import (
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
	"velocpy/gocore/tier"
)

// Options tune how a memory grows and shrinks.
type Options struct {
	// LookEvery is how often the device is asked how much memory other processes have left; 0: lookEvery.
	LookEvery time.Duration
	Now       func() int64 // the store's clock, ns
}

// lookEvery is how long an application that needs its memory is left alone, and how soon one that needs more is noticed.
const lookEvery = 250 * time.Millisecond

func (o Options) withDefaults() Options {
	if o.LookEvery == 0 {
		o.LookEvery = lookEvery
	}
	return o
}

// sizing is how much memory the tier has: grow.go has how it grows, shrink.go how it shrinks. Both happen in one goroutine, in the background.
type sizing struct {
	device   device.Device
	o        Options
	cache    tier.Cache
	arena    device.Arena
	budget   atomic.Int64
	reserved int64 // the largest budget

	mu     sync.Mutex // held while memory is taken, never while a goroutine waits for the device
	giving bool       // memory is being given back, and none is taken
	others int64      // bytes that others used when memory was taken last, or fewer since

	// Under the cache's lock.
	seams seams
	floor int64 // the tier keeps the pieces before this offset
}

// seams are the offsets at which the mapped pieces end. The cache's lock guards them.
type seams []int64

// mapped is the size of the tier's memory.
func (s seams) mapped() int64 { return s.before(len(s)) }

// before is the offset at which the piece before number i ends.
func (s seams) before(i int) int64 {
	if i <= 0 {
		return 0
	}
	return s[i-1]
}

// down is the last seam that is not behind an offset, up the first that is not before it.
func (s seams) down(at int64) int64 {
	i := len(s)
	for i > 0 && s.before(i) > at {
		i--
	}
	return s.before(i)
}

func (s seams) up(at int64) int64 {
	i := len(s)
	for i > 0 && s.before(i-1) >= at {
		i--
	}
	return s.before(i)
}

// Address is the address of an offset in the tier.
func (x *sizing) Address(offset int64) device.Address {
	return x.arena.Base() + device.Address(offset)
}

// Keep makes the tier keep the memory before an offset, whatever its budget is: work that has no copy there uses it. The cache's lock is held.
func (x *sizing) Keep(bytes int64) { x.floor = max(x.floor, bytes) }

// Mapped is the size of the tier's memory, in bytes. The cache's lock is held.
func (x *sizing) Mapped() int64 { return x.seams.mapped() }

// MappedNow is Mapped as the device says it. No lock is needed.
func (x *sizing) MappedNow() int64 { return x.arena.Mapped() }

// Reserved is the largest budget.
func (x *sizing) Reserved() int64 { return x.reserved }

// IsGiving tells whether memory is being given back.
func (x *sizing) IsGiving() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.giving
}

// Start lets the tier grow to its budget, and shrink when others need the memory. The cache's lock is held.
func (m *Memory) Start(cache tier.Cache) {
	m.sizing.cache = cache
	m.grower.grow, m.shrinker.shrink, m.stop = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	cache.Hold()
	safego.Go("device memory", func() {
		m.resize()
		cache.Lock()
		defer cache.Leave()
		cache.Release()
	})
}

// Stop ends the background work; it does not wait for it.
func (m *Memory) Stop() {
	if m.stop != nil {
		m.once.Do(func() { close(m.stop) })
	}
}

// resize runs until the store closes or the device is lost.
func (m *Memory) resize() {
	ticker := time.NewTicker(m.o.LookEvery)
	defer ticker.Stop()
	for hungry := false; m.Device.Lost() == nil; {
		look := ticker.C
		if m.arena.Mapped() == 0 && !hungry {
			look = nil // there is nothing to give back, and no memory is wanted
		}
		select {
		case <-m.stop:
			return
		case <-m.shrinker.shrink:
			m.shrinker.giveBack()
		case <-m.grower.grow:
			hungry = m.grower.growSome()
		case <-look:
			m.shrinker.relieve()
			if hungry {
				hungry = m.grower.growSome()
			}
		}
	}
	m.cache.Resized()
}

// Follow asks for more memory where captures come near the end of the tier, and wakes the goroutine when something behind the end of a tier that has shrunk can
// leave. The cache's lock is held.
func (m *Memory) Follow() {
	g, s := &m.grower, &m.shrinker
	if g.grow == nil || m.cache.Closing() {
		return
	}
	if !s.busy && (s.hasWork() || m.cache.Resizing() && !s.settled) {
		tier.Notify(s.shrink)
	}
	capacity := m.cache.Capacity()
	if m.cache.HighWater()+max(growAhead, capacity/4) >= capacity && g.mayGrow(capacity) {
		tier.Notify(g.grow)
	}
}

// SetBudget makes the tier keep to another budget. The cache's lock is held.
func (m *Memory) SetBudget(budget int64) {
	g, s, x := &m.grower, &m.shrinker, &m.sizing
	x.budget.Store(budget)
	g.refused, g.full, s.settled = 0, false, false
	if to := max(x.seams.down(budget), x.seams.up(x.floor)); to <= m.cache.Capacity() {
		m.cache.Shrink(to)
	}
	tier.Notify(s.shrink)
}
