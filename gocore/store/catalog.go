package store

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// catalogued tells the engine of the checkpoints that only the catalog has, and the catalog and the rules of retention of those that go.
type catalogued struct{ s *Store }

var _ engine.Catalog = catalogued{}

func (c catalogued) Lookup(h *engine.History, key model.Key) (size int64, ok bool) {
	if c.s.Disk == nil {
		return 0, false
	}
	return c.s.Disk.Lookup(h, key)
}

func (c catalogued) Find(h *engine.History, key model.Key) *engine.Record {
	if c.s.Disk == nil {
		return nil
	}
	return c.s.Disk.Find(h, key)
}

func (c catalogued) Keeps(r *engine.Record, _ int, off int64) bool { return c.s.Disk.Keeps(r, off) }

func (c catalogued) Freed(int) (off, bytes int64, ok bool) { return c.s.Disk.Freed() }

// Removed tells the rule of a history, and the catalog, that a checkpoint is gone. by is the version that replaces it, or nil.
func (c catalogued) Removed(r, by *engine.Record) {
	s := c.s
	r.Version.Gone.Store(true)
	if h := s.histories.byName[r.Hist.Name]; by == nil && h != nil && h.retention != nil {
		h.retention.Remove(r.Key)
	}
	if s.Disk != nil {
		s.Disk.Removed(r, by)
	}
}
