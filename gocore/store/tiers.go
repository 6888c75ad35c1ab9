package store

import (
	"strings"

	"velocpy/gocore/base/status"
)

// tierIndex converts a tier of the contract to the engine's index. TierNone becomes 0: captured.
func (s *Store) tierIndex(tier int) (int, error) {
	if tier == status.TierNone {
		return 0, nil
	}
	for t, number := range s.tiers {
		if number == tier {
			return t, nil
		}
	}
	name := status.TierName(tier)
	if name == "" {
		return 0, status.New(status.Invalid, "there is no tier %d; the store has %s", tier, s.tierNames())
	}
	return 0, status.New(status.Unavailable, "the store has no %s tier; it has %s", name, s.tierNames()).AtTier(tier)
}

// tierNames lists the store's tiers, the fastest first.
func (s *Store) tierNames() string {
	names := make([]string, len(s.tiers))
	for t, number := range s.tiers {
		names[t] = status.TierName(number)
	}
	return strings.Join(names, " and ")
}
