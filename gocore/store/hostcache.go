package store

import (
	"runtime"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/host"
)

// hostCache is the store as the memory of its host tier sees it.
type hostCache struct{ s *Store }

var _ host.Cache = hostCache{}

func (c hostCache) Lock()         { c.s.mu.Lock() }
func (c hostCache) Unlock()       { c.s.mu.Unlock() }
func (c hostCache) Leave()        { c.s.leave() }
func (c hostCache) Closing() bool { return c.s.closing }
func (c hostCache) Hold()         { c.s.users++ }
func (c hostCache) Release()      { c.s.users-- }

func (c hostCache) tier() int { return c.s.hostTier() }

func (c hostCache) Capacity() int64    { return c.s.eng.Capacity(c.tier()) }
func (c hostCache) Behind() int64      { return c.s.eng.Behind(c.tier()) }
func (c hostCache) HighWater() int64   { return c.s.eng.Stats.Tiers[c.tier()].HighWater }
func (c hostCache) Grow(bytes int64)   { c.s.eng.Grow(c.s.now(), c.tier(), bytes) }
func (c hostCache) Shrink(bytes int64) { c.s.eng.Shrink(c.s.now(), c.tier(), bytes) }
func (c hostCache) Drain(steps int)    { c.s.eng.Drain(c.s.now(), c.tier(), steps) }
func (c hostCache) Draining() bool     { return c.s.eng.Draining(c.tier()) }
func (c hostCache) Settled() bool      { return c.s.eng.Settled(c.tier()) }
func (c hostCache) Resizing() bool     { return c.s.resizing > 0 }
func (c hostCache) Resized()           { c.s.ringSized() }

func (c hostCache) Room() (bytes int64) {
	for _, a := range c.s.accelerators {
		u := c.s.eng.Use(a.tier)
		bytes += max(u.Capacity-u.Dirty-u.Flushing, 0)
	}
	return bytes
}

func (c hostCache) LinkRate(measured bool) (rate float64) {
	for _, a := range c.s.accelerators {
		if measured {
			rate += c.s.eng.Use(a.tier).WriteRate
		} else {
			rate += firstRate(a.dev)
		}
	}
	return rate
}

// openHost maps the memory of the host tier, after the devices were opened.
func (s *Store) openHost() (err error) {
	s.host, err = host.Open(host.Options{
		Bytes: *s.set.Host, Idle: s.set.idle(), Pinning: s.set.Pinning, Turns: s.set.Turns, Copiers: s.set.Copiers, Devices: s.devices(), Now: s.now,
		PinPiece: s.set.PinPiece, PinRest: s.set.PinRest, PinRates: s.set.PinRates, Prefaulting: s.set.Prefaulting,
	})
	return err
}

// hostTier is the engine's number of the host tier.
func (s *Store) hostTier() int { return len(s.accelerators) }

// roomChanged notes what the engine gives to records and takes from them.
func (s *Store) roomChanged(t int, off, n int64, taken bool) {
	switch {
	case t != s.hostTier():
	case taken:
		s.host.Took(off, n)
	default:
		s.host.Left(off, n)
	}
}

// hostGoroutines is how many lasting goroutines of the host tier's memory hold it.
func (s *Store) hostGoroutines() int {
	if s.host == nil {
		return 0
	}
	return s.host.Goroutines()
}

// checkHost is the error of a budget that the host tier cannot have.
func (s *Store) checkHost(budget int64) error {
	if s.host == nil {
		return status.New(status.Unavailable, "the store has no host tier: open it with host=").AtTier(status.TierHost)
	}
	return s.host.CheckBudget(budget)
}

// helpers is the number of goroutines that help large copies beside the caller.
func helpers(asked int) int {
	if asked > 0 {
		return asked
	}
	return min(runtime.GOMAXPROCS(0), 8) - 1
}
