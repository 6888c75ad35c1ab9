package cache

import (
	"strings"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier"
)

// TierIndex converts a tier of the contract to the engine's index. TierNone becomes 0: captured.
func (c *Cache) TierIndex(tier int) (int, error) {
	if tier == status.TierNone {
		return 0, nil
	}
	for t, number := range c.Tiers {
		if number == tier {
			return t, nil
		}
	}
	name := status.TierName(tier)
	if name == "" {
		return 0, status.New(status.Invalid, "there is no tier %d; the store has %s", tier, c.tierNames())
	}
	return 0, status.New(status.Unavailable, "the store has no %s tier; it has %s", name, c.tierNames()).AtTier(tier)
}

// tierNames lists the store's tiers, the fastest first.
func (c *Cache) tierNames() string {
	names := make([]string, len(c.Tiers))
	for t, number := range c.Tiers {
		names[t] = status.TierName(number)
	}
	return strings.Join(names, " and ")
}

// Objects returns a tier of the engine as a tier of objects; nil for the memory of a device, whose slots are reached by lanes.
func (c *Cache) Objects(t int) tier.Objects {
	switch {
	case c.DeviceTier(t) != nil:
		return nil
	case t == c.HostTier() && c.Host != nil:
		return c.Host.Objects()
	default:
		return c.Disk.Objects()
	}
}
