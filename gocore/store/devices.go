package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"velocpy/gocore/device"
	"velocpy/gocore/engine"
	"velocpy/gocore/logring"
	"velocpy/gocore/safego"
	"velocpy/gocore/status"
)

// Device is the budget of one device: bytes, or else a share of what is free when the store opens.
type Device struct {
	Ordinal int     `json:"ordinal"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"`
}

// DeviceOpener opens a device by its number. kernels is where its kernels are.
type DeviceOpener func(ordinal int, kernels string) (device.Device, error)

// Assumed until the link has been measured: PCIe 4, less what others take of it.
const assumedLinkRate = 20e9

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
		s.tiers = append(s.tiers, status.TierDevice)
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{
			Name: name, Capacity: a.arena.Mapped(), Grain: hostGrain, Front: true, WriteRate: assumedLinkRate, ReadRate: assumedLinkRate,
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
	a.budget = max(d.Bytes, 1)
	if a.arena, err = dev.Reserve(a.budget); err != nil {
		return nil, deviceError(err)
	}
	if err := a.growFirst(); err != nil {
		return nil, deviceError(err)
	}
	if a.arena.Mapped() == 0 {
		a.growth.small(a)
	}
	a.own, err = dev.Lane(device.Waited)
	return a, deviceError(err)
}

// growFirst maps what the first captures find; a GiB takes a tenth of a millisecond.
func (a *accelerator) growFirst() error {
	for mapped := int64(0); mapped < min(a.budget, growFirst); {
		grown, err := a.arena.Grow(a.budget)
		switch {
		case errors.Is(err, device.ErrMemory):
			return nil
		case err != nil:
			return err
		case grown == mapped:
			return nil // what is left of the budget is less than the device maps
		}
		mapped = grown
	}
	return nil
}

// growFor takes the memory that one checkpoint needs beside what is in use, if the budget and the application allow it: nothing is evicted
// before that.
func (s *Store) growFor(a *CheckpointArgs) error {
	for len(s.set.Devices) > 0 {
		dev, use, err := s.useFor(a.Regions)
		if err != nil || dev == nil || use.Capacity-use.Used >= 2*a.Slot || use.Capacity >= dev.budget {
			return err
		}
		more, err := s.growOnce(dev)
		if err != nil && !errors.Is(err, device.ErrMemory) {
			return deviceError(err)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// useFor is the device that regions lie on, if any, and how full its tier is.
func (s *Store) useFor(regions []Region) (*accelerator, engine.TierUse, error) {
	if err := s.enter(); err != nil {
		return nil, engine.TierUse{}, err
	}
	defer s.mu.Unlock()
	dev, err := s.placed(regions)
	if dev == nil {
		return nil, engine.TierUse{}, err
	}
	return dev, s.eng.Use(dev.tier), nil
}

// startWatching lets somebody know the devices while the store is open.
func (s *Store) startWatching() {
	if len(s.accelerators) == 0 || s.set.WatchDevices == nil {
		return
	}
	devices := make([]device.Device, len(s.accelerators))
	for i, a := range s.accelerators {
		devices[i] = a.dev
	}
	s.unwatch = s.set.WatchDevices(devices)
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

// growth takes memory for the tier of one device in the background: ahead of the captures, never beyond the budget, and never the last
// that the device has.
type growth struct {
	want   chan struct{}
	stop   chan struct{}
	once   sync.Once
	warned bool
}

// small tells, once, that the tier is smaller than it was to be.
func (g *growth) small(a *accelerator) {
	if !g.warned {
		g.warned = true
		logring.Add(logring.Warning, fmt.Sprintf("%s has no memory left for the cache: it stays at %d of %d bytes until there is some", a.dev.Name(), a.arena.Mapped(), a.budget))
	}
}

// growAgain is how long an application that needs its memory is left alone.
const growAgain = 250 * time.Millisecond

const (
	growFirst  = 8 << 30  // is mapped when the store opens: later the driver may be busy registering host memory, and captures would wait
	spareShare = 16       // of the device's memory, this part stays free for the application (as a divisor)
	growAhead  = 64 << 20 // this much room, at least, lies mapped ahead of what is in use
)

// startGrowing lets every device grow to its budget.
func (s *Store) startGrowing() {
	for _, a := range s.accelerators {
		a.growth.want, a.growth.stop = make(chan struct{}, 1), make(chan struct{})
		s.users++
		safego.Go("device growth", func() {
			s.grow(a)
			s.mu.Lock()
			defer s.leave()
			s.users--
		})
	}
}

func (s *Store) stopGrowing() {
	for _, a := range s.accelerators {
		if a.growth.stop != nil {
			a.growth.once.Do(func() { close(a.growth.stop) })
		}
	}
}

// grow runs until the budget is reached, as far as the device's pieces allow, or the store closes.
func (s *Store) grow(a *accelerator) {
	for a.arena.Mapped() < a.budget {
		select {
		case <-a.growth.stop:
			return
		case <-a.growth.want:
		}
		more, err := s.growOnce(a)
		switch {
		case errors.Is(err, device.ErrMemory):
			a.growth.small(a)
			select {
			case <-a.growth.stop:
				return
			case <-time.After(growAgain):
			}
		case err != nil || !more:
			return
		}
	}
}

// growOnce takes one piece, if the application leaves any; false when what is left of the budget is no piece.
func (s *Store) growOnce(a *accelerator) (more bool, err error) {
	free, total, err := a.dev.Memory()
	if err != nil {
		return false, err
	}
	before := a.arena.Mapped()
	limit := min(a.budget, before+free-total/spareShare)
	mapped, err := a.arena.Grow(max(limit, before))
	switch {
	case err != nil:
		return false, err
	case mapped == before && limit < a.budget:
		return false, device.ErrMemory
	case mapped == before:
		return false, nil
	}
	s.mu.Lock()
	defer s.leave()
	if !s.closing {
		s.eng.Grow(s.now(), a.tier, mapped)
	}
	return true, nil
}

// followDevices asks for more memory where captures come near the end of what is mapped. The lock is held.
func (s *Store) followDevices() {
	if s.closing {
		return
	}
	for t, a := range s.accelerators {
		capacity := s.eng.Capacity(t)
		if a.growth.want == nil || capacity >= a.budget || s.eng.Stats.Tiers[t].HighWater+max(growAhead, capacity/4) < capacity {
			continue
		}
		select {
		case a.growth.want <- struct{}{}:
		default:
		}
	}
}
