package store

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// askLinks sets the assumed rates of the links from Config.LinkRates; rates that the engine has measured by then take precedence. The call takes too
// long for Open to wait. Its result is dropped if the store closes first. The lock is held.
func (s *Store) askLinks() {
	if len(s.Devices) == 0 || s.Set.LinkRates == nil {
		return
	}
	devices := s.devices()
	safego.Go("link rates", func() {
		rates := s.Set.LinkRates(devices)
		s.Lock()
		defer s.Leave()
		for t, rate := range rates[:min(len(rates), len(devices))] {
			if !s.Closing && rate > 0 {
				s.Engine.Assume(t, rate*devicememory.LinkShare, rate*devicememory.LinkShare)
			}
		}
	})
}

// devices returns the store's devices, in the order of their tiers.
func (s *Store) devices() []device.Device {
	devices := make([]device.Device, len(s.Devices))
	for i, a := range s.Devices {
		devices[i] = a.Device
	}
	return devices
}

// openDevices opens the devices and reserves their memory. After an error the caller frees those that were opened.
func (s *Store) openDevices(cfg *engine.Config) error {
	for i, d := range s.Set.Devices {
		if s.Set.OpenDevice == nil {
			return status.New(status.Unavailable, "this build of the core has no devices").AtTier(status.TierDevice)
		}
		a, err := s.openDevice(i, d)
		if err != nil {
			return err
		}
		name := status.TierName(status.TierDevice)
		if len(s.Set.Devices) > 1 {
			name = fmt.Sprintf("cuda:%d", d.Ordinal)
		}
		rate := devicememory.LinkRate(a.Device)
		s.Tiers = append(s.Tiers, status.TierDevice)
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{
			Name: name, Capacity: a.MappedNow(), Grain: checkpoint.CacheLine, Private: true, Device: true, WriteRate: rate, ReadRate: rate,
		})
	}
	return nil
}

func (s *Store) openDevice(tier int, d config.Device) (*devicememory.Memory, error) {
	dev, err := s.Set.OpenDevice(d.Ordinal, s.Set.Kernels)
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
	a, err := devicememory.Open(dev, tier, max(d.Bytes, 1), devicememory.Options{LookEvery: s.Set.LookEvery, Now: s.Now})
	s.Devices = append(s.Devices, a)
	return a, err
}

// startWatching calls Config.WatchDevices, whose watch lasts while the store is open.
func (s *Store) startWatching() {
	if len(s.Devices) == 0 || s.Set.WatchDevices == nil {
		return
	}
	s.unwatch = s.Set.WatchDevices(s.devices())
}

func (s *Store) stopWatching() {
	if s.unwatch != nil {
		s.unwatch()
		s.unwatch = nil
	}
}

// freeDevices closes all devices.
func (s *Store) freeDevices() {
	for _, a := range s.Devices { // all devices are idle before the first closes, since others may use memory that one has pinned
		s.freeErr = errors.Join(s.freeErr, a.AwaitIdle())
	}
	s.Orphans.Drop()
	for _, a := range s.Devices {
		s.freeErr = errors.Join(s.freeErr, a.Close())
	}
	s.Devices = nil
}

// startSizing starts the goroutines that grow each device tier up to its budget and shrink it when others need the memory. The lock is held.
func (s *Store) startSizing() {
	for t, a := range s.Devices {
		a.Start(s.ForTier(t))
	}
}
