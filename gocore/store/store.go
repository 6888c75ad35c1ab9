// Package store opens and closes stores, and answers what a caller asks of their histories. The calls that may have to wait are those of package operation.
//
// One mutex guards the engine, that of package cache. It is held for microseconds and never during a copy or I/O. Memory that holds checkpoints is mapped,
// never Go heap.
package store

import (
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/workers"
)

// Store is one open instance: tiers, budgets, background work. All methods are safe for concurrent use.
type Store struct {
	*cache.Cache
	workers   *workers.Workers
	histories histories
	devices   devices
	freed     bool     // the last worker has ended and the disk tier is closed
	ended     []func() // callbacks to run when freed is set
	freeErr   error
	undone    error // the error about drops and rules that did not become durable; Close returns it once

	unhook func() // removes the poison callback
}

// Assumed rates until the link has been measured: those of a mid-range NVMe drive.
const (
	assumedWriteRate = 1.0e9
	assumedReadRate  = 1.5e9
)

// Open maps the memory and opens the disk space of a new store and starts its workers.
func Open(c config.Config) (*Store, error) {
	set, err := c.Check()
	if err != nil {
		return nil, err
	}
	s := &Store{Cache: cache.New(set)}
	s.histories, s.devices = histories{Cache: s.Cache, byName: map[string]*History{}}, devices{Cache: s.Cache}
	s.Counted, s.Rule, s.Forget, s.Unmap = s.histories.countForRetention, s.histories.rule, s.forgetAll, s.free
	if err := s.openTiers(); err != nil {
		s.free()
		return nil, err
	}
	s.Copiers = copier.NewPool(helpers(set.Copiers))
	s.start()
	return s, nil
}

func (s *Store) start() {
	s.Lock()
	defer s.Unlock()
	s.workers = workers.Start(s.Cache, s.workersEnded)
	s.Work = s.workers.Wake
	if s.Host != nil {
		s.Host.Start(s.ForHost())
	}
	s.devices.startSizing()
	s.devices.askLinks()
	s.devices.startWatching()
	if s.Disk != nil {
		s.Disk.Start()
	}
	s.unhook = safego.OnPoison(s.Panicked)
}

func (s *Store) openTiers() error {
	cfg := engine.Config{
		Workers: s.Set.Workers, Flush: s.Set.FlushMode, Policy: s.Set.Eviction, Prefetch: s.Set.Prefetch, Guess: s.Set.Guess,
		Forget: s.forgetRecord, Expect: s.ExpectBytes, Catalog: catalogued{s},
	}
	if workers.VerifiesAhead(&s.Set) {
		cfg.VerifyFrom = workers.VerifyAheadFrom
	}
	if s.Set.Timeline > 0 {
		cfg.Trace = s.Line.Note
	}
	if err := s.devices.open(&cfg); err != nil {
		return err
	}
	if s.Set.Host != nil {
		if err := s.openHost(); err != nil {
			return err
		}
		cfg.Room = s.roomChanged
		s.Tiers = append(s.Tiers, status.TierHost)
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{
			Name: "host", Capacity: *s.Set.Host, Grain: checkpoint.CacheLine, WriteRate: assumedWriteRate, ReadRate: assumedReadRate,
		})
	}
	if err := s.openDisk(&cfg); err != nil {
		return err
	}
	s.Engine = engine.New(cfg)
	if s.Disk != nil {
		s.recover()
	}
	return nil
}

// Ended returns the handles of the histories. ok is true once the store is closed and its workers have ended. No call accepts these handles any more,
// and the handle table would otherwise reference the store until the process exits. Leases do not need them.
func (s *Store) Ended() (histories []uint64, ok bool) {
	s.Lock()
	defer s.Unlock()
	return s.histories.numbers, s.Closing && s.freed
}

// WhenEnded calls f once Ended returns ok. It calls f directly if the store has ended already, otherwise from a separate goroutine later.
func (s *Store) WhenEnded(f func()) {
	s.Lock()
	ended := s.Closing && s.freed
	if !ended {
		s.ended = append(s.ended, f)
	}
	s.Unlock()
	if ended {
		f()
	}
}

// History returns the history of this name and creates it if it does not exist.
func (s *Store) History(name string) (*History, error) {
	if err := s.Enter(); err != nil {
		return nil, err
	}
	defer s.Leave()
	return s.named(name), nil
}

func (s *Store) named(name string) *History {
	h := s.histories.byName[name]
	if h == nil {
		h = &History{s: s, h: s.Engine.History(name)}
		s.histories.byName[name] = h
	}
	return h
}

// Layout returns the description that the caller gave with checkpoints of this layout.
func (s *Store) Layout(id uint64) (string, error) {
	s.Lock()
	defer s.Unlock()
	if l := s.Layouts.ByID(id); l != nil {
		return l.Text, l.Undescribed()
	}
	return "", status.New(status.NotFound, "no checkpoint or lease has layout %d any more", id)
}

func (s *Store) forgetRecord(r *engine.Record) {
	b := r.Version
	s.Orphans.Release(r.ID, b)
	s.Findings.Forget(r)
	s.Layouts.Give(b.Layout)
}
