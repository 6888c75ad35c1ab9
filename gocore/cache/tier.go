package cache

import (
	"velocpy/gocore/tier"
)

// shared shows the part of the cache that every tier sees.
type shared struct{ s *Cache }

var _ tier.Shared = shared{}

func (c shared) Lock()         { c.s.Lock() }
func (c shared) Unlock()       { c.s.Unlock() }
func (c shared) Leave()        { c.s.Leave() }
func (c shared) Closing() bool { return c.s.Closing }
func (c shared) Hold()         { c.s.Users++ }
func (c shared) Release()      { c.s.Users-- }
func (c shared) Resized()      { c.s.resized() }

// tierCache shows the cache to the memory of one tier.
type tierCache struct {
	shared
	t int // the engine's index of the tier
}

var _ tier.Cache = tierCache{}

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
