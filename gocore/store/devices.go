package store

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// Device is the budget of one device: bytes, or else a share of what is free when the store opens.
type Device struct {
	Ordinal int     `json:"ordinal"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"`
}

// DeviceOpener opens a device by its number. kernels is where its kernels are.
type DeviceOpener func(ordinal int, kernels string) (device.Device, error)

// askLinks takes the rates of links from who knows them best, unless copies have been measured by then. The answer takes too long to be waited for while the
// store opens, and is dropped if the store closes before it comes. The lock is held.
func (s *Store) askLinks() {
	if len(s.deviceTiers) == 0 || s.set.LinkRates == nil {
		return
	}
	devices := s.devices()
	safego.Go("link rates", func() {
		rates := s.set.LinkRates(devices)
		s.mu.Lock()
		defer s.leave()
		for t, rate := range rates[:min(len(rates), len(devices))] {
			if !s.closing && rate > 0 {
				s.eng.Assume(t, rate*devicememory.LinkShare, rate*devicememory.LinkShare)
			}
		}
	})
}

// devices are the store's, in the order of their tiers.
func (s *Store) devices() []device.Device {
	devices := make([]device.Device, len(s.deviceTiers))
	for i, a := range s.deviceTiers {
		devices[i] = a.Device
	}
	return devices
}

// openDevices opens the devices and reserves their memory. What cannot be opened takes back what was.
func (s *Store) openDevices(cfg *engine.Config) error {
	for i, d := range s.set.Devices {
		if s.set.OpenDevice == nil {
			return status.New(status.Unavailable, "this build of the core has no devices").AtTier(status.TierDevice)
		}
		a, err := s.openDevice(i, d)
		if err != nil {
			return err
		}
		name := status.TierName(status.TierDevice)
		if len(s.set.Devices) > 1 {
			name = fmt.Sprintf("cuda:%d", d.Ordinal)
		}
		rate := devicememory.LinkRate(a.Device)
		s.tiers = append(s.tiers, status.TierDevice)
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{
			Name: name, Capacity: a.MappedNow(), Grain: hostGrain, Front: true, WriteRate: rate, ReadRate: rate,
		})
	}
	return nil
}

func (s *Store) openDevice(tier int, d Device) (*devicememory.Memory, error) {
	dev, err := s.set.OpenDevice(d.Ordinal, s.set.Kernels)
	if err != nil {
		return nil, devicememory.Explain(err)
	}
	if d.Bytes == 0 {
		free, _, err := dev.Memory()
		if err != nil {
			return nil, errors.Join(devicememory.Explain(err), dev.Close())
		}
		d.Bytes = int64(float64(free) * d.Share)
	}
	a, err := devicememory.Open(dev, tier, max(d.Bytes, 1), devicememory.Options{LookEvery: s.set.LookEvery, Now: s.now})
	s.deviceTiers = append(s.deviceTiers, a)
	return a, err
}

// startWatching lets somebody know the devices while the store is open.
func (s *Store) startWatching() {
	if len(s.deviceTiers) == 0 || s.set.WatchDevices == nil {
		return
	}
	s.unwatch = s.set.WatchDevices(s.devices())
}

func (s *Store) stopWatching() {
	if s.unwatch != nil {
		s.unwatch()
		s.unwatch = nil
	}
}

// freeDevices gives all devices back.
func (s *Store) freeDevices() {
	for _, a := range s.deviceTiers { // all before any: what one pinned, others may use
		s.freeErr = errors.Join(s.freeErr, a.AwaitIdle())
	}
	s.orphans.drop()
	for _, a := range s.deviceTiers {
		s.freeErr = errors.Join(s.freeErr, a.Close())
	}
	s.deviceTiers = nil
}
