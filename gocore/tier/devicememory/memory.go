// Package devicememory is the memory of a device tier: the part of a device's memory in which checkpoints lie, the account of the work that still reads or writes
// there, and its growth and shrinking.
//
// No call waits for the device unless its comment says so: work is queued in lanes, behind the events of earlier work that touches the same bytes.
package devicememory

import (
	"errors"
	"sync"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/tier"
)

// Memory is the memory of one device's tier. It consists of parts, each of them one concern with the state that only this concern has.
type Memory struct {
	Device device.Device
	Tier   int // the engine's number of the tier
	hazards
	waits
	streams
	ownLane
	bounceBuffer
	sizing
	grower
	shrinker

	stop     chan struct{} // closed when the tier stops to grow and to shrink
	once     sync.Once
	watchers sync.WaitGroup // goroutines that wait for events of the device
}

// Open reserves addresses for a budget, maps the memory that the first captures need, and opens a lane. After an error Close is still to be called.
func Open(d device.Device, tier int, budget int64, o Options) (*Memory, error) {
	m := &Memory{Device: d, Tier: tier, streams: streams{d}}
	m.hazards.device, m.hazards.waits = d, &m.waits
	m.ownLane.device = d
	m.bounceBuffer.device, m.bounceBuffer.run = d, m.RunSync
	m.sizing.device, m.sizing.o = d, o.withDefaults()
	m.grower.sizing = &m.sizing
	m.shrinker.sizing, m.shrinker.hazards, m.shrinker.grower = &m.sizing, &m.hazards, &m.grower
	err := m.grower.reserve(budget)
	if err == nil {
		m.ownLane.lane, err = d.Lane(device.Waited)
	}
	return m, Explain(err)
}

// Go runs work in a goroutine that Close waits for.
func (m *Memory) Go(name string, work func()) {
	m.watchers.Add(1)
	safego.Go(name, func() {
		defer m.watchers.Done()
		work()
	})
}

// Close waits for the device, and gives everything back, the device included. No goroutine uses the memory any more.
func (m *Memory) Close() error {
	err := m.AwaitIdle()
	m.watchers.Wait()
	m.hazards.tracker.Close()
	m.waits.close()
	err = errors.Join(err, m.closeLanes())
	if m.arena != nil {
		err = errors.Join(err, m.arena.Free())
	}
	return errors.Join(err, m.Device.Close(), m.bounceBuffer.close())
}

// Read copies bytes of the tier to host memory and waits for them.
func (m *Memory) Read(to []byte, from int64) error {
	if len(to) == 0 {
		return nil
	}
	m.ownLane.mu.Lock()
	x, err := m.QueueRead(m.ownLane.lane, Reads, from, int64(len(to)), func() error { return m.ownLane.lane.Copy(device.AddressOf(to), m.Address(from), int64(len(to))) })
	m.ownLane.mu.Unlock()
	return finish(x, err)
}

// AwaitIdle waits until no work reads or writes the tier any more.
func (m *Memory) AwaitIdle() error {
	if m.arena == nil {
		return nil
	}
	return m.AwaitRange(0, m.arena.Mapped())
}

// Flip changes one bit of the tier, for tests of what happens then.
func (m *Memory) Flip(offset int64) error {
	var one [1]byte
	if err := m.Read(one[:], offset); err != nil {
		return err
	}
	one[0] ^= 1
	m.ownLane.mu.Lock()
	x, err := m.QueueWrite(m.ownLane.lane, Checks, offset, 1, func() error { return m.ownLane.lane.Copy(m.Address(offset), device.AddressOf(one[:]), 1) })
	m.ownLane.mu.Unlock()
	return finish(x, err)
}

// Explain gives an error of a device its place; nil stays nil.
func Explain(err error) error {
	return status.Explained(err, status.TierDevice, func(err error) *status.Error {
		switch {
		case errors.Is(err, device.ErrLost):
			return status.Wrap(status.DeviceLost, err, "the device is lost")
		case errors.Is(err, device.ErrRecording):
			return status.Wrap(status.Invalid, err, "a stream that is being captured into a graph takes no copies")
		case errors.Is(err, device.ErrUnavailable):
			return status.Wrap(status.Unavailable, err, "no device")
		case errors.Is(err, device.ErrMemory):
			return status.Wrap(status.TierFull, err, "the device's memory is full")
		}
		return status.Wrap(status.IO, err, "the device failed")
	})
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
