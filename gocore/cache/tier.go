package cache

import (
	"velocpy/gocore/tier"
)

// tierCache shows the cache to the memory of one tier.
type tierCache struct {
	s *Cache
	t int // the engine's index of the tier
}

var _ tier.Cache = tierCache{}

func (c tierCache) Lock()         { c.s.Lock() }
func (c tierCache) Unlock()       { c.s.Unlock() }
func (c tierCache) Leave()        { c.s.Leave() }
func (c tierCache) Closing() bool { return c.s.Closing }
func (c tierCache) Hold()         { c.s.Users++ }
func (c tierCache) Release()      { c.s.Users-- }

func (c tierCache) Capacity() int64    { return c.s.Engine.Capacity(c.t) }
func (c tierCache) Used() int64        { return c.s.Engine.Use(c.t).Used }
func (c tierCache) HighWater() int64   { return c.s.Engine.Stats.Tiers[c.t].HighWater }
func (c tierCache) Behind() int64      { return c.s.Engine.Behind(c.t) }
func (c tierCache) Reach() int64       { return c.s.Engine.Reach(c.t) }
func (c tierCache) Grow(bytes int64)   { c.s.Engine.Grow(c.s.Now(), c.t, bytes) }
func (c tierCache) Shrink(bytes int64) { c.s.Engine.Shrink(c.s.Now(), c.t, bytes) }
func (c tierCache) Drain(steps int)    { c.s.Engine.Drain(c.s.Now(), c.t, steps) }
func (c tierCache) Draining() bool     { return c.s.Engine.Draining(c.t) }
func (c tierCache) Settled() bool      { return c.s.Engine.Settled(c.t) }
func (c tierCache) Resizing() bool     { return c.s.Resizing > 0 }
func (c tierCache) Resized()           { c.s.resized() }
