package store

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
)

// Device is the budget of one device: bytes, or else a share of what is free when the store opens.
type Device struct {
	Ordinal int     `json:"ordinal"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"`
}

// DeviceOpener opens a device by its number. kernels is where its kernels are.
type DeviceOpener func(ordinal int, kernels string) (device.Device, error)

// Assumed until the link has been measured, where nothing is known of it: PCIe 4, less what others take of it.
const assumedLinkRate = 20e9

// linkShare is the part of its link's rate that a device copies with: 55.4 of 63 GB/s on PCIe 5 with 16 lanes (measured), the rest being protocol.
const linkShare = 0.88

// firstRate is what copies of a device are assumed to do until some have been measured: as the management library says (askLinks), as the kernel says, or else
// what is assumed of any.
func firstRate(d device.Device) float64 {
	if rate := d.Place().LinkRate; rate > 0 {
		return rate * linkShare
	}
	return assumedLinkRate
}

// askLinks takes the rates of links from who knows them best, unless copies have been measured by then. The answer takes too long to be waited for while the
// store opens, and is dropped if the store closes before it comes. The lock is held.
func (s *Store) askLinks() {
	if len(s.accelerators) == 0 || s.set.LinkRates == nil {
		return
	}
	devices := s.devices()
	safego.Go("link rates", func() {
		rates := s.set.LinkRates(devices)
		s.mu.Lock()
		defer s.leave()
		for t, rate := range rates[:min(len(rates), len(devices))] {
			if !s.closing && rate > 0 {
				s.eng.Assume(t, rate*linkShare, rate*linkShare)
			}
		}
	})
}

// devices are the store's, in the order of their tiers.
func (s *Store) devices() []device.Device {
	devices := make([]device.Device, len(s.accelerators))
	for i, a := range s.accelerators {
		devices[i] = a.dev
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
		rate := firstRate(a.dev)
		s.tiers = append(s.tiers, status.TierDevice)
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{
			Name: name, Capacity: a.arena.Mapped(), Grain: hostGrain, Front: true, WriteRate: rate, ReadRate: rate,
		})
	}
	return nil
}

func (s *Store) openDevice(tier int, d Device) (*accelerator, error) {
	dev, err := s.set.OpenDevice(d.Ordinal, s.set.Kernels)
	if err != nil {
		return nil, deviceError(err)
	}
	a := &accelerator{dev: dev, tier: tier}
	s.accelerators = append(s.accelerators, a)
	if d.Bytes == 0 {
		free, _, err := dev.Memory()
		if err != nil {
			return nil, deviceError(err)
		}
		d.Bytes = int64(float64(free) * d.Share)
	}
	if err := s.reserve(a, max(d.Bytes, 1)); err != nil {
		return nil, deviceError(err)
	}
	a.own, err = dev.Lane(device.Waited)
	return a, deviceError(err)
}

// startWatching lets somebody know the devices while the store is open.
func (s *Store) startWatching() {
	if len(s.accelerators) == 0 || s.set.WatchDevices == nil {
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
	for _, a := range s.accelerators { // all before any: what one pinned, others may use
		s.freeErr = errors.Join(s.freeErr, a.quiet())
	}
	s.strays.drop()
	for _, a := range s.accelerators {
		s.freeErr = errors.Join(s.freeErr, a.free())
	}
	s.accelerators = nil
}
