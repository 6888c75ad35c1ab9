package store

import (
	"maps"
	"slices"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
)

// diskCache gives the disk tier access to the store.
type diskCache struct{ s *Store }

var _ disk.Cache = diskCache{}

func (c diskCache) Lock()                  { c.s.mu.Lock() }
func (c diskCache) Unlock()                { c.s.mu.Unlock() }
func (c diskCache) Leave()                 { c.s.leave() }
func (c diskCache) Closing() bool          { return c.s.closing }
func (c diskCache) Hold()                  { c.s.users++ }
func (c diskCache) Release()               { c.s.users-- }
func (c diskCache) Engine() *engine.Engine { return c.s.eng }
func (c diskCache) Resized()               { c.s.resized() }

func (c diskCache) Landed(r *engine.Record) { c.s.countForRetention(r) }

func (c diskCache) Rule(history string) *model.Retention { return c.s.histories[history].rule() }

func (c diskCache) Refuse(x *engine.Capture, why error) {
	if x.Notify != nil {
		x.Notify.(caller).Refuse(why)
	}
}

func (c diskCache) RefuseAll(why error) {
	for op := range c.s.ops {
		op.Refuse(why)
	}
}

// catalogued tells the engine of the checkpoints that only the catalog has, and the catalog and the rules of retention of those that go.
type catalogued struct{ s *Store }

var _ engine.Catalog = catalogued{}

func (c catalogued) Lookup(h *engine.History, key model.Key) (size int64, ok bool) {
	if c.s.disk == nil {
		return 0, false
	}
	return c.s.disk.Lookup(h, key)
}

func (c catalogued) Find(h *engine.History, key model.Key) *engine.Record {
	if c.s.disk == nil {
		return nil
	}
	return c.s.disk.Find(h, key)
}

func (c catalogued) Keeps(r *engine.Record, _ int, off int64) bool { return c.s.disk.Keeps(r, off) }

// Removed tells the rule of a history, and the catalog, that a checkpoint is gone. by is the version that replaces it, or nil.
func (c catalogued) Removed(r, by *engine.Record) {
	s := c.s
	r.Version.Gone.Store(true)
	if h := s.histories[r.Hist.Name]; by == nil && h != nil && h.retention != nil {
		h.retention.Remove(r.Key)
	}
	if s.disk != nil {
		s.disk.Removed(r, by)
	}
}

// openDisk opens the disk tier, if the configuration has one.
func (s *Store) openDisk(cfg *engine.Config) (err error) {
	if s.set.Disk == nil && !s.set.Durable {
		return nil
	}
	o := disk.Options{
		FS: s.set.FS, Path: s.set.Path, Direct: s.set.Direct, Durable: s.set.Durable, ReadOnly: s.set.ReadOnly, SegmentBytes: s.set.SegmentBytes,
		CatalogSlack: s.set.CatalogSlack, LazyRows: s.set.LazyRows, StallAfter: s.set.StallAfter, GiveUpAfter: func() time.Duration { return s.set.GiveUpAfter }, RetryAfter: s.set.RetryAfter,
		Verified: s.set.Verifies != config.VerifyOff, Top: len(s.deviceTiers), Now: s.now, Layouts: &s.layouts, Cache: diskCache{s}, Guard: &s.mu,
	}
	if s.set.Disk != nil {
		o.Capacity = *s.set.Disk / disk.Grain * disk.Grain
	}
	if s.disk, err = disk.Open(len(s.tiers), o); err != nil {
		return err
	}
	s.tiers = append(s.tiers, status.TierDisk)
	cfg.Tiers = append(cfg.Tiers, engine.TierConfig{Name: "disk", Capacity: s.disk.Space.Capacity(), Grain: disk.Grain, Remote: true, Durable: s.disk.Durable()})
	return nil
}

// recover restores the state of a new engine from the catalog, and applies the rules of retention.
func (s *Store) recover() {
	s.mu.Lock() // retain may drop a checkpoint, which commits a change to the catalog
	defer s.mu.Unlock()
	rules := s.disk.Recover()
	for _, history := range slices.Sorted(maps.Keys(rules)) {
		s.named(history).retain(rules[history])
	}
}
