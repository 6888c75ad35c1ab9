package cache

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/host"
)

// hostCache shows the cache to the memory of the host tier.
type hostCache struct{ tierCache }

var _ host.Cache = hostCache{}

func (c hostCache) Room() (bytes int64) {
	for _, a := range c.s.Devices {
		u := c.s.Engine.Use(a.Tier)
		bytes += max(u.Capacity-u.Dirty-u.Flushing, 0)
	}
	return bytes
}

func (c hostCache) LinkRate(measured bool) (rate float64) {
	for _, a := range c.s.Devices {
		if measured {
			rate += c.s.Engine.Use(a.Tier).WriteRate
		} else {
			rate += devicememory.LinkRate(a.Device)
		}
	}
	return rate
}

// HostTier returns the engine's index of the host tier.
func (ts *tiers) HostTier() int { return len(ts.Devices) }

// CheckHost returns the error of a budget that the host tier cannot have.
func (ts *tiers) CheckHost(budget int64) error {
	if ts.Host == nil {
		return status.New(status.Unavailable, "the store has no host tier: open it with host=").AtTier(status.TierHost)
	}
	return ts.Host.CheckBudget(budget)
}
