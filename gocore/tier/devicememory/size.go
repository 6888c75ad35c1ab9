package devicememory

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

// sizing is how much memory the tier has. It grows in the background, ahead of the captures, never beyond the budget and never into the last part of the device's
// memory; shrink.go has how it shrinks.
type sizing struct {
	budget   atomic.Int64
	reserved int64         // the largest budget
	grow     chan struct{} // more memory is wanted
	shrink   chan struct{} // some memory may be given back
	stop     chan struct{}
	once     sync.Once
	fixed    atomic.Bool // no memory can be given back any more: some work has no event, so that nothing tells when it ends

	mu     sync.Mutex // held while memory is taken, never while a goroutine waits for the device
	giving bool       // memory is being given back, and none is taken
	others int64      // bytes that others used when memory was taken last, or fewer since

	warned, relieved bool // what was logged once

	// Under the cache's lock.
	seams   []int64 // offsets at which the mapped pieces end
	refused int64   // until then (ns) the device is not asked for more
	full    bool    // what is left of the budget is smaller than a piece
	busy    bool    // the goroutine gives back, and looks at everything once more before it rests
	settled bool    // nothing more is given back unless the application or a lower tier does something
	floor   int64   // the tier keeps the pieces before this offset
}

const (
	growFirst  = 8 << 30  // mapped when the store opens: later the driver may be busy registering host memory, and captures would wait
	spareShare = 16       // this part of the device's memory (as a divisor) stays free for the application
	growAhead  = 64 << 20 // at least so many mapped bytes lie ahead of those in use
)

// mapped is the size of the tier's memory. The cache's lock is held, as for all of these.
func (x *sizing) mapped() int64 { return x.seam(len(x.seams)) }

// seam is the offset at which the piece before number i ends.
func (x *sizing) seam(i int) int64 {
	if i <= 0 {
		return 0
	}
	return x.seams[i-1]
}

// down is the last seam that is not behind an offset, up the first that is not before it.
func (x *sizing) down(at int64) int64 {
	i := len(x.seams)
	for i > 0 && x.seam(i) > at {
		i--
	}
	return x.seam(i)
}

func (x *sizing) up(at int64) int64 {
	i := len(x.seams)
	for i > 0 && x.seam(i-1) >= at {
		i--
	}
	return x.seam(i)
}

// hasExcess tells whether a whole piece lies behind an offset.
func (x *sizing) hasExcess(reach int64) bool {
	n := len(x.seams)
	return n > 0 && reach <= x.seam(n-1) && !x.fixed.Load()
}

// reserve sets addresses aside and maps the memory that the first captures need; a GiB takes a tenth of a millisecond.
func (m *Memory) reserve(budget int64) (err error) {
	x := &m.sizing
	x.budget.Store(budget)
	x.reserved = budget
	if m.arena, err = m.Device.Reserve(budget); err != nil {
		return err
	}
	for x.mapped() < min(budget, growFirst) {
		grown, err := m.arena.Grow(budget)
		if err != nil && !errors.Is(err, device.ErrMemory) {
			return err
		}
		if err != nil || grown == x.mapped() { // or else what is left of the budget is smaller than what the device maps
			break
		}
		x.seams = append(x.seams, grown)
	}
	if x.mapped() == 0 {
		m.warnSmall()
	}
	free, total, err := m.Device.Memory()
	x.others = total - free - x.mapped()
	return err
}

// warnSmall logs, once, that the tier is smaller than its budget.
func (m *Memory) warnSmall() {
	if x := &m.sizing; !x.warned {
		x.warned = true
		logring.Add(logring.Warning, fmt.Sprintf("%s has no memory left for the cache: it stays at %s of %s until there is some", m.Device.Name(), quantity.Sized(m.arena.Mapped()), quantity.Sized(x.budget.Load())))
	}
}

// Start lets the tier grow to its budget, and shrink when others need the memory. The cache's lock is held.
func (m *Memory) Start(cache tier.Cache) {
	x := &m.sizing
	m.cache = cache
	x.grow, x.shrink, x.stop = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
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
	if m.sizing.stop != nil {
		m.sizing.once.Do(func() { close(m.sizing.stop) })
	}
}

// resize runs until the store closes or the device is lost.
func (m *Memory) resize() {
	x := &m.sizing
	ticker := time.NewTicker(m.o.LookEvery)
	defer ticker.Stop()
	for hungry := false; m.Device.Lost() == nil; {
		look := ticker.C
		if m.arena.Mapped() == 0 && !hungry {
			look = nil // there is nothing to give back, and no memory is wanted
		}
		select {
		case <-x.stop:
			return
		case <-x.shrink:
			m.giveBack()
		case <-x.grow:
			hungry = m.growSome()
		case <-look:
			m.relieve()
			if hungry {
				hungry = m.growSome()
			}
		}
	}
	m.cache.Resized()
}

// growSome takes one piece; true when the device has no memory for it.
func (m *Memory) growSome() (hungry bool) {
	err := m.growOnce()
	if errors.Is(err, device.ErrMemory) {
		m.warnSmall()
		return true
	}
	return false
}

// Grow takes one piece at once, if the budget and the application allow it, before anything is evicted. It is no error if they do not.
func (m *Memory) Grow() error {
	if err := m.growOnce(); err != nil && !errors.Is(err, device.ErrMemory) {
		return Explain(err)
	}
	return nil
}

// IsShortOf tells whether the tier should have more memory for a checkpoint of so many bytes. The cache's lock is held.
func (m *Memory) IsShortOf(bytes int64) bool {
	capacity := m.cache.Capacity()
	return capacity-m.cache.Used() < 2*bytes && m.mayGrow(capacity)
}

// mayGrow tells whether it is worthwhile to ask for more memory. The cache's lock is held.
func (m *Memory) mayGrow(capacity int64) bool {
	x := &m.sizing
	return capacity < x.budget.Load() && !x.full && (x.refused == 0 || m.o.Now() >= x.refused)
}

// growOnce takes one piece, if the application leaves any. Memory that is being given back comes first.
func (m *Memory) growOnce() error {
	x := &m.sizing
	x.mu.Lock()
	defer x.mu.Unlock()
	err := device.ErrMemory
	if !x.giving {
		err = m.takePiece()
	}
	if err != nil {
		m.cache.Lock()
		defer m.cache.Unlock()
		x.refused = m.o.Now() + m.o.LookEvery.Nanoseconds()
	}
	return err
}

// takePiece is growOnce while nothing is given back.
func (m *Memory) takePiece() error {
	x := &m.sizing
	free, total, err := m.Device.Memory()
	if err != nil {
		return err
	}
	mapped, budget := m.arena.Mapped(), x.budget.Load()
	allowed := mapped + free - total/spareShare
	if m.hasShrunk() {
		if allowed < mapped {
			return device.ErrMemory
		}
		m.lengthen(mapped)
		return nil
	}
	limit := min(budget, allowed)
	grown, err := m.arena.Grow(max(limit, mapped))
	switch {
	case err != nil:
		return err
	case grown == mapped && limit < budget:
		return device.ErrMemory
	}
	x.others = total - free - mapped
	m.lengthen(grown)
	return nil
}

// hasShrunk tells whether pieces that are still mapped could be used again.
func (m *Memory) hasShrunk() bool {
	m.cache.Lock()
	defer m.cache.Unlock()
	return !m.cache.Closing() && m.cache.Capacity() < m.sizing.down(m.sizing.budget.Load())
}

// lengthen makes the tier use what is mapped, as far as the budget goes.
func (m *Memory) lengthen(mapped int64) {
	m.cache.Lock()
	defer m.cache.Leave()
	if m.cache.Closing() {
		return
	}
	x := &m.sizing
	if mapped > x.mapped() {
		x.seams = append(x.seams, mapped)
	}
	capacity := x.down(x.budget.Load())
	x.full = capacity <= m.cache.Capacity()
	x.refused = 0
	m.cache.Grow(capacity)
}

// Follow asks for more memory where captures come near the end of the tier, and wakes the goroutine when something behind the end of a tier that has shrunk can
// leave. The cache's lock is held.
func (m *Memory) Follow() {
	x := &m.sizing
	if x.grow == nil || m.cache.Closing() {
		return
	}
	if !x.busy && (m.hasWork() || m.cache.Resizing() && !x.settled) {
		tier.Notify(x.shrink)
	}
	capacity := m.cache.Capacity()
	if m.cache.HighWater()+max(growAhead, capacity/4) >= capacity && m.mayGrow(capacity) {
		tier.Notify(x.grow)
	}
}

// hasWork tells whether there is something to empty or to give back now. The cache's lock is held.
func (m *Memory) hasWork() bool {
	return m.cache.Draining() || m.sizing.hasExcess(m.cache.Reach())
}

// SetBudget makes the tier keep to another budget. The cache's lock is held.
func (m *Memory) SetBudget(budget int64) {
	x := &m.sizing
	x.budget.Store(budget)
	x.refused, x.full, x.settled = 0, false, false
	if to := max(x.down(budget), x.up(x.floor)); to <= m.cache.Capacity() {
		m.cache.Shrink(to)
	}
	tier.Notify(x.shrink)
}

// Settled tells whether the tier has its budget, or gives nothing more back without the application. The cache's lock is held.
func (m *Memory) Settled() bool {
	x := &m.sizing
	return x.mapped() <= max(x.budget.Load(), x.up(x.floor)) || x.settled
}

// Keep makes the tier keep the memory before an offset, whatever its budget is: work that has no copy there uses it. The cache's lock is held.
func (m *Memory) Keep(bytes int64) { m.sizing.floor = max(m.sizing.floor, bytes) }

// Mapped is the size of the tier's memory, in bytes. The cache's lock is held.
func (m *Memory) Mapped() int64 { return m.sizing.mapped() }

// MappedNow is Mapped as the device says it. No lock is needed.
func (m *Memory) MappedNow() int64 { return m.arena.Mapped() }

// Reserved is the largest budget.
func (m *Memory) Reserved() int64 { return m.sizing.reserved }

// IsGiving tells whether memory is being given back.
func (m *Memory) IsGiving() bool {
	m.sizing.mu.Lock()
	defer m.sizing.mu.Unlock()
	return m.sizing.giving
}
