package store

import (
	"velocpy/gocore/tier"
)

// tierCache gives the memory of one tier access to the store and its engine.
type tierCache struct {
	s *Cache
	t int // the engine's index of the tier
}

var _ tier.Cache = tierCache{}

func (c tierCache) Lock()         { c.s.mu.Lock() }
func (c tierCache) Unlock()       { c.s.mu.Unlock() }
func (c tierCache) Leave()        { c.s.leave() }
func (c tierCache) Closing() bool { return c.s.closing }
func (c tierCache) Hold()         { c.s.users++ }
func (c tierCache) Release()      { c.s.users-- }

func (c tierCache) Capacity() int64    { return c.s.eng.Capacity(c.t) }
func (c tierCache) Used() int64        { return c.s.eng.Use(c.t).Used }
func (c tierCache) HighWater() int64   { return c.s.eng.Stats.Tiers[c.t].HighWater }
func (c tierCache) Behind() int64      { return c.s.eng.Behind(c.t) }
func (c tierCache) Reach() int64       { return c.s.eng.Reach(c.t) }
func (c tierCache) Grow(bytes int64)   { c.s.eng.Grow(c.s.now(), c.t, bytes) }
func (c tierCache) Shrink(bytes int64) { c.s.eng.Shrink(c.s.now(), c.t, bytes) }
func (c tierCache) Drain(steps int)    { c.s.eng.Drain(c.s.now(), c.t, steps) }
func (c tierCache) Draining() bool     { return c.s.eng.Draining(c.t) }
func (c tierCache) Settled() bool      { return c.s.eng.Settled(c.t) }
func (c tierCache) Resizing() bool     { return c.s.resizing > 0 }
func (c tierCache) Resized()           { c.s.resized() }

// startSizing starts the goroutines that grow each device tier up to its budget and shrink it when others need the memory. The lock is held.
func (s *Store) startSizing() {
	for t, a := range s.deviceTiers {
		a.Start(tierCache{s.Cache, t})
	}
}
