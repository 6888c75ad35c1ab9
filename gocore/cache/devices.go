package cache

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// DeviceOf returns the device of a record; nil for a record of host memory.
func (ts *tiers) DeviceOf(r *engine.Record) *devicememory.Memory { return ts.DeviceTier(r.Top()) }

// DeviceTier returns the device of an engine's tier, or nil.
func (ts *tiers) DeviceTier(t int) *devicememory.Memory {
	if t >= 0 && t < len(ts.Devices) {
		return ts.Devices[t]
	}
	return nil
}

// DeviceOfRegions returns the device on which regions lie; nil when all lie in host memory. The regions of one checkpoint must not lie on two
// devices.
func (ts *tiers) DeviceOfRegions(regions []model.Region) (*devicememory.Memory, error) {
	var found *devicememory.Memory
	place := int32(0)
	for i := range regions {
		switch p := regions[i].Place; {
		case p == 0 || p == place:
		case place != 0:
			return nil, status.New(status.Invalid, "the regions of one call lie on the devices %d and %d; give each device a checkpoint of its own", place-1, p-1).AtRegion(i)
		default:
			if found = ts.DeviceByOrdinal(int(p - 1)); found == nil {
				return nil, status.New(status.Unavailable, "the array lies on device %d, for which the store has no budget: open it with device={%d: ...}", p-1, p-1).
					AtTier(status.TierDevice).AtRegion(i)
			}
			place = p
		}
	}
	return found, nil
}

// DeviceByOrdinal returns the store's device of this number, or nil.
func (ts *tiers) DeviceByOrdinal(ordinal int) *devicememory.Memory {
	for _, a := range ts.Devices {
		if a.Device.Ordinal() == ordinal {
			return a
		}
	}
	return nil
}
