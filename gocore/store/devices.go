package store

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// devices opens and closes the devices of a store, and watches them while it is open.
type devices struct {
	*cache.Cache

	unwatch func() // ends WatchDevices
}

// askLinks sets the assumed rates of the links from Config.LinkRates; rates that the engine has measured by then take precedence. The call takes too
// long for Open to wait. Its result is dropped if the store closes first. The lock is held.
func (ds *devices) askLinks() {
	if len(ds.Devices) == 0 || ds.Set.LinkRates == nil {
		return
	}
	devices := ds.all()
	safego.Go("link rates", func() {
		rates := ds.Set.LinkRates(devices)
		ds.Lock()
		defer ds.Leave()
		for t, rate := range rates[:min(len(rates), len(devices))] {
			if !ds.Closing && rate > 0 {
				ds.Engine.Assume(t, rate*devicememory.LinkShare, rate*devicememory.LinkShare)
			}
		}
	})
}

// all returns the store's devices, in the order of their tiers.
func (ds *devices) all() []device.Device {
	devices := make([]device.Device, len(ds.Devices))
	for i, a := range ds.Devices {
		devices[i] = a.Device
	}
	return devices
}

// open opens the devices and reserves their memory. After an error the caller frees those that were opened.
func (ds *devices) open(cfg *engine.Config) error {
	for i, d := range ds.Set.Devices {
		if ds.Set.OpenDevice == nil {
			return status.New(status.Unavailable, "this build of the core has no devices").AtTier(status.TierDevice)
		}
		a, err := ds.openOne(i, d)
		if err != nil {
			return err
		}
		name := status.TierName(status.TierDevice)
		if len(ds.Set.Devices) > 1 {
			name = fmt.Sprintf("cuda:%d", d.Ordinal)
		}
		rate := devicememory.LinkRate(a.Device)
		ds.Tiers = append(ds.Tiers, status.TierDevice)
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{
			Name: name, Capacity: a.MappedNow(), Grain: checkpoint.CacheLine, Private: true, Device: true, WriteRate: rate, ReadRate: rate,
		})
	}
	return nil
}

func (ds *devices) openOne(tier int, d config.Device) (*devicememory.Memory, error) {
	dev, err := ds.Set.OpenDevice(d.Ordinal, ds.Set.Kernels)
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
	a, err := devicememory.Open(dev, tier, max(d.Bytes, 1), devicememory.Options{LookEvery: ds.Set.LookEvery, Now: ds.Now})
	ds.Devices = append(ds.Devices, a)
	return a, err
}

// startWatching calls Config.WatchDevices, whose watch lasts while the store is open.
func (ds *devices) startWatching() {
	if len(ds.Devices) == 0 || ds.Set.WatchDevices == nil {
		return
	}
	ds.unwatch = ds.Set.WatchDevices(ds.all())
}

func (ds *devices) stopWatching() {
	if ds.unwatch != nil {
		ds.unwatch()
		ds.unwatch = nil
	}
}

// free closes all devices.
func (ds *devices) free() (err error) {
	for _, a := range ds.Devices { // all devices are idle before the first closes, since others may use memory that one has pinned
		err = errors.Join(err, a.AwaitIdle())
	}
	ds.Orphans.Drop()
	for _, a := range ds.Devices {
		err = errors.Join(err, a.Close())
	}
	ds.Devices = nil
	return err
}

// startSizing starts the goroutines that grow each device tier up to its budget and shrink it when others need the memory. The lock is held.
func (ds *devices) startSizing() {
	for t, a := range ds.Devices {
		a.Start(ds.ForTier(t))
	}
}
