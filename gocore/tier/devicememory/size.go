package devicememory

import (
	"sync"
	"time"

	"go.uber.org/atomic"

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
func (sz *sizing) Address(offset int64) device.Address {
	return sz.arena.Base() + device.Address(offset)
}

// Keep makes the tier keep the memory before an offset, whatever its budget is: work that has no copy there uses it. The cache's lock is held.
func (sz *sizing) Keep(bytes int64) { sz.floor = max(sz.floor, bytes) }

// Mapped is the size of the tier's memory, in bytes. The cache's lock is held.
func (sz *sizing) Mapped() int64 { return sz.seams.mapped() }

// MappedNow is Mapped as the device says it. No lock is needed.
func (sz *sizing) MappedNow() int64 { return sz.arena.Mapped() }

// Reserved is the largest budget.
func (sz *sizing) Reserved() int64 { return sz.reserved }

// IsGiving tells whether memory is being given back.
func (sz *sizing) IsGiving() bool {
	sz.mu.Lock()
	defer sz.mu.Unlock()
	return sz.giving
}
