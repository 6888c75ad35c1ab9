package cache

import (
	"strings"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/tier/host"
)

// tiers are the memories of a store, which are set when it is opened.
type tiers struct {
	Host *host.Memory // nil without a host tier
	// Memories of the device tiers. The index is the engine's number of the tier: device tiers precede host and disk.
	Devices []*devicememory.Memory
	Disk    *disk.Tier // nil without a disk tier
	Tiers   []int      // for each of the engine's tiers: its number in the C contract
}

// TierIndex converts a tier of the contract to the engine's index. TierNone becomes 0: captured.
func (ts *tiers) TierIndex(tier int) (int, error) {
	if tier == status.TierNone {
		return 0, nil
	}
	for t, number := range ts.Tiers {
		if number == tier {
			return t, nil
		}
	}
	name := status.TierName(tier)
	if name == "" {
		return 0, status.New(status.Invalid, "there is no tier %d; the store has %s", tier, ts.tierNames())
	}
	return 0, status.New(status.Unavailable, "the store has no %s tier; it has %s", name, ts.tierNames()).AtTier(tier)
}

// tierNames lists the store's tiers, the fastest first.
func (ts *tiers) tierNames() string {
	names := make([]string, len(ts.Tiers))
	for t, number := range ts.Tiers {
		names[t] = status.TierName(number)
	}
	return strings.Join(names, " and ")
}

// Objects returns a tier of the engine as a tier of objects; nil for the memory of a device, whose slots are reached by lanes.
func (ts *tiers) Objects(t int) tier.Objects {
	switch {
	case ts.DeviceTier(t) != nil:
		return nil
	case t == ts.HostTier() && ts.Host != nil:
		return ts.Host.Objects()
	default:
		return ts.Disk.Objects()
	}
}
