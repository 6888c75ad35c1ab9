// Package devicememory is the memory of a device tier: the part of a device's memory in which checkpoints lie, the account of the work that still reads or writes
// there, and its growth and shrinking.
//
// No call waits for the device unless its comment says so: work is queued in lanes, behind the events of earlier work that touches the same bytes.
package devicememory

import (
	"errors"
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/device/hazard"
	"velocpy/gocore/tier"
)

// Memory is the memory of one device's tier.
type Memory struct {
	Device device.Device
	Tier   int // the engine's number of the tier
	o      Options
	cache  tier.Cache
	arena  device.Arena
	sizing sizing

	mu      sync.Mutex // held while the account is asked or told, never while work is put into a lane
	hazards hazard.Tracker
	waits   waits

	own     device.Lane // for work that a caller waits for: reads of leases, copies to host memory
	ownLane sync.Mutex

	bounceLock sync.Mutex // held while the bounce buffer is in use
	bounce     bounceBuffer

	watchers sync.WaitGroup // goroutines that wait for events of the device
}

// Open reserves addresses for a budget, maps the memory that the first captures need, and opens a lane. After an error Close is still to be called.
func Open(d device.Device, tier int, budget int64, o Options) (*Memory, error) {
	m := &Memory{Device: d, Tier: tier, o: o.withDefaults()}
	err := m.reserve(budget)
	if err == nil {
		m.own, err = d.Lane(device.Waited)
	}
	return m, Explain(err)
}

// Address is the address of an offset in the tier.
func (m *Memory) Address(offset int64) device.Address {
	return m.arena.Base() + device.Address(offset)
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
	m.hazards.Close()
	m.waits.close()
	if m.own != nil {
		err = errors.Join(err, m.own.Close())
	}
	if m.arena != nil {
		err = errors.Join(err, m.arena.Free())
	}
	return errors.Join(err, m.Device.Close(), m.closeBounce())
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
