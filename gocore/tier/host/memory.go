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
	Late    bool            // no page is prefaulted before a checkpoint lies in the memory: a store that is only read may never need one

	// PinPiece is how many bytes one turn is taken for.
	PinPiece int64
	// PinRest is for how long the watermark may stand still before transfers go to memory that is not pinned.
	PinRest time.Duration
	// PinRates are the rates by which a strategy is chosen; nil: measured ones.
	PinRates *coldstart.Rates
	// Prefaulting is told the offset of each piece before it is prefaulted to be pinned; it may wait. nil: no function is.
	Prefaulting func(off int64)
}

// Memory is the memory of a host tier. It consists of parts, each of them one concern with the state that only this concern has.
type Memory struct {
	state
	transfers
	chooser
	pinner
	resizer
	objects Objects
}

// state is what the parts share: the mapping, what lies in it, how far it is pinned, and the cache that it belongs to.
type state struct {
	o         Options
	mapping   *memory.Mapping
	cache     Cache
	chunks    *chunks
	watermark Watermark
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
	m := &Memory{state: state{o: o, mapping: mapping, chunks: newChunks(o.Bytes)}}
	m.transfers.state, m.chooser.state = &m.state, &m.state
	m.pinner.state, m.pinner.transfers, m.pinner.chooser, m.pinner.ended = &m.state, &m.transfers, &m.chooser, m.resizer.pinningEnded
	m.resizer.state, m.resizer.pinner = &m.state, &m.pinner
	m.objects.memory = m
	return m, nil
}

// Start begins to prefault, to pin and to give back. Direct pinning ends before it returns. The cache's lock is held.
func (m *Memory) Start(cache Cache) {
	m.cache = cache
	m.resizer.start()
	m.transfers.start()
	m.pinner.start()
}

// Stop ends the background work. It does not wait for it: goroutines that still use the memory hold it. The cache's lock is held.
func (m *Memory) Stop() {
	m.resizer.stop()
	m.pinner.stop()
	m.transfers.stop()
}

// Unmap gives the mapping back. No goroutine uses it any more.
func (s *state) Unmap() error { return s.mapping.Unmap() }

// Bytes is a range of the memory.
func (s *state) Bytes(off, n int64) []byte { return s.mapping.Bytes(off, n) }

// Base is the address of the memory, Size its length: the largest budget.
func (s *state) Base() unsafe.Pointer { return s.mapping.Base() }
func (s *state) Size() int64          { return s.mapping.Size() }

// Mapping is the memory as devices register it.
func (s *state) Mapping() *memory.Mapping { return s.mapping }

// Watermark is how far the memory is pinned.
func (s *state) Watermark() *Watermark { return &s.watermark }

// Reaches tells whether every device reaches bytes with its kernels: bytes of this memory that are pinned.
func (s *state) Reaches(slot []byte) bool {
	if len(slot) == 0 {
		return false
	}
	from := int64(device.AddressOf(slot)) - int64(uintptr(s.Base()))
	return from >= 0 && from+int64(len(slot)) <= s.watermark.End()
}

// Took notes that a record lies in a range from now on, Left that it has left it.
func (s *state) Took(off, n int64) { s.chunks.take(off, n) }
func (s *state) Left(off, n int64) { s.chunks.drop(off, n, s.o.Now()) }

// Counts returns the bytes that may be resident, in whole chunks, and those that were given back since the store was opened.
func (s *state) Counts() (resident, given int64) { return s.chunks.counts() }

// capacity is the tier's present budget. The cache's lock is not held.
func (s *state) capacity() int64 {
	s.cache.Lock()
	defer s.cache.Unlock()
	return s.cache.Capacity()
}

// background runs work in a goroutine that holds the memory. The cache's lock is held.
func (s *state) background(name string, work, ended func()) {
	s.cache.Hold()
	safego.Go(name, func() {
		work()
		s.cache.Lock()
		defer s.cache.Leave()
		ended()
		s.cache.Release()
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
	w, r, t := &m.watermark, &m.chooser.rhythm, &m.transfers
	w.mu.Lock()
	defer w.mu.Unlock()
	return Progress{
		Strategy: m.chooser.current(), Pinned: w.end, Prefaulted: m.pinner.touched.Load(), Transfers: t.moving.Load(), Paused: t.paused.Load(),
		Waiting: w.waiting, Captures: r.count, Interval: r.interval, Bytes: r.bytes,
	}
}
