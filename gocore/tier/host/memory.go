// Package host is the memory of the host tier: one mapping, whose pages are prefaulted ahead of the captures, registered with the devices so that they copy at full
// speed, and given back to the system when the budget shrinks or the memory lies idle.
//
// What lies where is the store's business: the package is told of ranges that are taken and left, and asks the store through Cache.
package host

import (
	"time"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/numa"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/coldstart"
)

// Options describe the memory. The zero value of a field stands for its default.
type Options struct {
	Bytes   int64           // the budget that the store was opened with: no later one is larger
	Idle    time.Duration   // free memory is given back after it; 0: never
	Pinning string          // auto (default), pipeline, concurrent, sequential, direct, off
	Turns   string          // file by which processes of a node take turns to register; empty: one of the user's
	Copiers int             // goroutines that help large copies; 0: chosen for the machine
	Devices []device.Device // that copy to and from the memory
	Now     func() int64    // the store's clock, ns

	// PinPiece is how many bytes one turn is taken for.
	PinPiece int64
	// PinRest is for how long the watermark may stand still before transfers go to memory that is not pinned.
	PinRest time.Duration
	// PinRates are the rates by which a strategy is chosen; nil: measured ones.
	PinRates *coldstart.Rates
	// Prefaulting is told the offset of each piece before it is prefaulted to be pinned; it may wait. nil: no function is.
	Prefaulting func(off int64)
}

// Memory is the memory of a host tier.
type Memory struct {
	o       Options
	mapping *memory.Mapping
	cache   Cache
	chunks  *chunks
	objects Objects

	prefaulter prefaulter
	pinner     pinner
	resizer    resizer
}

// Open maps the memory, on the NUMA nodes of the devices as far as they are known. No page is resident yet.
func Open(o Options) (*Memory, error) {
	if o.PinPiece == 0 {
		o.PinPiece = pinPiece
	}
	if o.PinRest == 0 {
		o.PinRest = watermarkRest
	}
	mapping, err := memory.Map("host tier", o.Bytes)
	if err != nil {
		return nil, status.Wrap(status.IO, err, "cannot map the budget of %s", quantity.Exact(o.Bytes)).AtTier(status.TierHost)
	}
	numa.Place("the host tier", mapping.Bytes(0, o.Bytes), device.Nodes(o.Devices)...)
	m := &Memory{o: o, mapping: mapping, chunks: newChunks(o.Bytes)}
	m.objects.memory = m
	return m, nil
}

// Start begins to prefault, to pin and to give back. Direct pinning ends before it returns. The cache's lock is held.
func (m *Memory) Start(cache Cache) {
	m.cache = cache
	m.startResizer()
	m.startPinning()
}

// Stop ends the background work. It does not wait for it: goroutines that still use the memory hold it. The cache's lock is held.
func (m *Memory) Stop() {
	m.stopResizer()
	m.stopPinning()
}

// Unmap gives the mapping back. No goroutine uses it any more.
func (m *Memory) Unmap() error { return m.mapping.Unmap() }

// Bytes is a range of the memory.
func (m *Memory) Bytes(off, n int64) []byte { return m.mapping.Bytes(off, n) }

// Base is the address of the memory, Size its length: the largest budget.
func (m *Memory) Base() unsafe.Pointer { return m.mapping.Base() }
func (m *Memory) Size() int64          { return m.mapping.Size() }

// Mapping is the memory as devices register it.
func (m *Memory) Mapping() *memory.Mapping { return m.mapping }

// Watermark is how far the memory is pinned.
func (m *Memory) Watermark() *Watermark { return &m.pinner.watermark }

// Reaches tells whether every device reaches bytes with its kernels: bytes of this memory that are pinned.
func (m *Memory) Reaches(slot []byte) bool {
	if len(slot) == 0 {
		return false
	}
	from := int64(device.AddressOf(slot)) - int64(uintptr(m.Base()))
	return from >= 0 && from+int64(len(slot)) <= m.pinner.watermark.End()
}

// Took notes that a record lies in a range from now on, Left that it has left it.
func (m *Memory) Took(off, n int64) { m.chunks.take(off, n) }
func (m *Memory) Left(off, n int64) { m.chunks.drop(off, n, m.o.Now()) }

// Counts returns the bytes that may be resident, in whole chunks, and those that were given back since the store was opened.
func (m *Memory) Counts() (resident, given int64) { return m.chunks.counts() }

// Goroutines is how many lasting goroutines hold the memory for as long as the store is open. The cache's lock is held.
func (m *Memory) Goroutines() int { return m.resizer.running }

// background runs work in a goroutine that holds the memory. The cache's lock is held.
func (m *Memory) background(name string, work, ended func()) {
	m.cache.Hold()
	safego.Go(name, func() {
		work()
		m.cache.Lock()
		defer m.cache.Leave()
		ended()
		m.cache.Release()
	})
}

// isClosed tells whether a channel has been closed to which nothing is sent.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Progress is how far pinning has come, and what it knows of the application.
type Progress struct {
	Strategy   coldstart.Strategy
	Pinned     int64 // bytes before the watermark
	Prefaulted int64 // bytes that were prefaulted to be pinned
	Transfers  int64 // between devices and the memory, under way
	Paused     int64 // prefaulting threads that wait for these
	Waiting    int   // transfers that wait for the watermark
	Captures   int
	Interval   float64 // ns from the end of a capture to the next one: a moving average
	Bytes      float64 // of a capture: a moving average
}

// Progress tells how far pinning has come. The cache's lock is held.
func (m *Memory) Progress() Progress {
	p := &m.pinner
	p.watermark.mu.Lock()
	defer p.watermark.mu.Unlock()
	return Progress{
		Strategy: m.strategy(), Pinned: p.watermark.end, Prefaulted: p.touched.Load(), Transfers: p.moving.Load(), Paused: p.paused.Load(),
		Waiting: p.watermark.waiting, Captures: p.rhythm.count, Interval: p.rhythm.interval, Bytes: p.rhythm.bytes,
	}
}
