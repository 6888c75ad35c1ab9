package store

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/tier/host"
)

// openHost maps the memory of the host tier. The devices are open by then.
func (s *Store) openHost() (err error) {
	s.Host, err = host.Open(host.Options{
		Bytes: *s.Set.Host, Idle: s.Set.IdleAfter(), Pinning: s.Set.Pinning, Turns: s.Set.Turns, Copiers: s.Set.Copiers, Devices: s.devices.all(), Now: s.Now, Late: s.Set.ReadOnly,
		PinPiece: s.Set.PinPiece, PinRest: s.Set.PinRest, PinRates: s.Set.PinRates, Prefaulting: s.Set.Prefaulting,
	})
	return err
}

// roomChanged tells the host tier's memory which ranges the engine assigns to records and takes from them.
func (s *Store) roomChanged(t int, off, n int64, taken bool) {
	switch {
	case t != s.HostTier():
	case taken:
		s.Host.Took(off, n)
	default:
		s.Host.Left(off, n)
	}
}

// hostGoroutines returns how many long-lived goroutines of the host tier's memory count as its users.
func (s *Store) hostGoroutines() int {
	if s.Host == nil {
		return 0
	}
	return s.Host.Goroutines()
}

// helpers returns the number of goroutines that help large copies, beside the caller's.
func helpers(asked int) int {
	if asked > 0 {
		return asked
	}
	return min(runtime.GOMAXPROCS(0), 8) - 1
}

// openDisk opens the disk tier, if the configuration has one.
func (s *Store) openDisk(cfg *engine.Config) (err error) {
	if s.Set.Disk == nil && !s.Set.Durable {
		return nil
	}
	o := disk.Options{
		FS: s.Set.FS, Path: s.Set.Path, Direct: s.Set.Direct, Durable: s.Set.Durable, ReadOnly: s.Set.ReadOnly, SegmentBytes: s.Set.SegmentBytes,
		CatalogSlack: s.Set.CatalogSlack, LazyRows: s.Set.LazyRows, StallAfter: s.Set.StallAfter, GiveUpAfter: func() time.Duration { return s.Set.GiveUpAfter }, RetryAfter: s.Set.RetryAfter,
		Verified: s.Set.Verifies != config.VerifyOff, Top: len(s.Devices), Now: s.Now, Layouts: &s.Layouts, Cache: s.ForDisk(),
	}
	if s.Set.Disk != nil {
		o.Capacity = *s.Set.Disk / disk.Grain * disk.Grain
	}
	if s.Disk, err = disk.Open(len(s.Tiers), o); err != nil {
		return err
	}
	s.Tiers = append(s.Tiers, status.TierDisk)
	cfg.Tiers = append(cfg.Tiers, engine.TierConfig{Name: "disk", Capacity: s.Disk.Space.Capacity(), Grain: disk.Grain, Remote: true, Durable: s.Disk.Durable(), Referring: true})
	return nil
}

// recover restores the state of a new engine from the catalog, and applies the rules of retention.
func (s *Store) recover() {
	s.Lock() // retain may drop a checkpoint, which commits a change to the catalog
	defer s.Unlock()
	rules := s.Disk.Recover()
	for _, history := range slices.Sorted(maps.Keys(rules)) {
		s.named(history).retain(rules[history])
	}
}
