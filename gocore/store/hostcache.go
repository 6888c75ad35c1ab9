package store

import (
	"runtime"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/host"
)

// hostCache gives the memory of the host tier access to the store.
type hostCache struct{ tierCache }

var _ host.Cache = hostCache{}

func (c hostCache) Room() (bytes int64) {
	for _, a := range c.s.deviceTiers {
		u := c.s.eng.Use(a.Tier)
		bytes += max(u.Capacity-u.Dirty-u.Flushing, 0)
	}
	return bytes
}

func (c hostCache) LinkRate(measured bool) (rate float64) {
	for _, a := range c.s.deviceTiers {
		if measured {
			rate += c.s.eng.Use(a.Tier).WriteRate
		} else {
			rate += devicememory.LinkRate(a.Device)
		}
	}
	return rate
}

// openHost maps the memory of the host tier. The devices are open by then.
func (s *Store) openHost() (err error) {
	s.host, err = host.Open(host.Options{
		Bytes: *s.set.Host, Idle: s.set.IdleAfter(), Pinning: s.set.Pinning, Turns: s.set.Turns, Copiers: s.set.Copiers, Devices: s.devices(), Now: s.now,
		PinPiece: s.set.PinPiece, PinRest: s.set.PinRest, PinRates: s.set.PinRates, Prefaulting: s.set.Prefaulting,
	})
	return err
}

// hostTier returns the engine's index of the host tier.
func (s *Cache) hostTier() int { return len(s.deviceTiers) }

// roomChanged tells the host tier's memory which ranges the engine assigns to records and takes from them.
func (s *Store) roomChanged(t int, off, n int64, taken bool) {
	switch {
	case t != s.hostTier():
	case taken:
		s.host.Took(off, n)
	default:
		s.host.Left(off, n)
	}
}

// hostGoroutines returns how many long-lived goroutines of the host tier's memory count as its users.
func (s *Store) hostGoroutines() int {
	if s.host == nil {
		return 0
	}
	return s.host.Goroutines()
}

// checkHost returns the error of a budget that the host tier cannot have.
func (s *Cache) checkHost(budget int64) error {
	if s.host == nil {
		return status.New(status.Unavailable, "the store has no host tier: open it with host=").AtTier(status.TierHost)
	}
	return s.host.CheckBudget(budget)
}

// helpers returns the number of goroutines that help large copies, beside the caller's.
func helpers(asked int) int {
	if asked > 0 {
		return asked
	}
	return min(runtime.GOMAXPROCS(0), 8) - 1
}
