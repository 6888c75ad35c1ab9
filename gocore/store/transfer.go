package store

import (
	"errors"

	"velocpy/gocore/engine"
	"velocpy/gocore/memory"
	"velocpy/gocore/status"
)

// moved is what a transfer has brought.
type moved struct {
	err     error
	fetched *memory.Mapping // Fetch: the bytes, beside the cache
	sums    []uint64        // Spill: what the bytes were when they were taken
	bad     []int32         // Load to a device: regions that are not what was captured
	leaves  []uint64        // Flush to a disk tier that outlives the store: hashes of leaves
}

// unmap gives back what nobody has taken over.
func (m *moved) unmap() {
	if m.fetched != nil {
		_ = m.fetched.Unmap() // mapped for this transfer, seen by nobody else
	}
}

// move carries a transfer out. It runs in a worker, without the lock: the engine holds both places for it.
func (s *Store) move(x *engine.Transfer) *moved {
	b := x.Rec.Body.(*body)
	var m moved
	switch x.Kind {
	case engine.Flush:
		m.leaves, m.err = s.writeDown(x, b)
	case engine.Load:
		m.err = s.load(s.host.Bytes(x.ToOff, x.Rec.Size), x.FromOff, b)
	case engine.Spill:
		m.sums, m.err = s.spill(x)
		if !errors.Is(m.err, errAbandoned) {
			m.err = s.diskError(m.err)
		}
	default:
		m.fetched, m.err = s.fetch(x, b)
	}
	return &m
}

// load reads a whole checkpoint into its slot and verifies it.
func (s *Store) load(slot []byte, from int64, b *body) error {
	// What lies behind the last region may never have been written.
	if err := s.disk.Read(from, slot[:b.layout.end()]); err != nil {
		return s.diskError(err)
	}
	return s.verifyLoaded(slot, b)
}

// verifyLoaded compares a slot that was filled from disk with what was captured.
func (s *Store) verifyLoaded(slot []byte, b *body) error {
	if s.set.verify == verifyOff {
		return nil
	}
	return damaged(b.mismatch(slot, b.layout.all()), status.TierDisk)
}

// fetch reads the regions wanted into memory beside the cache and verifies them.
func (s *Store) fetch(x *engine.Transfer, b *body) (*memory.Mapping, error) {
	op := x.Restore.Notify.(*Op)
	m, err := memory.Map("private restore", max(b.layout.slot, 1))
	if err != nil {
		return nil, status.Wrap(status.IO, err, "cannot map %d bytes beside the cache", b.layout.slot)
	}
	slot := m.Bytes(0, m.Size())
	for rest := op.want; len(rest) > 0; {
		var span Span
		span, rest = b.layout.run(rest)
		if err := s.readFrom(x.From, slot[span.Offset:span.Offset+span.Bytes], x.FromOff+span.Offset); err != nil {
			return m, err
		}
	}
	if s.set.verify == verifyOff {
		return m, nil
	}
	return m, damaged(b.mismatch(slot, op.want), s.tiers[x.From])
}

// readFrom reads bytes of a tier.
func (s *Store) readFrom(t int, to []byte, from int64) error {
	switch a := s.accelerator(t); {
	case a != nil:
		return a.read(to, from)
	case s.tiers[t] == status.TierHost:
		copy(to, s.host.Bytes(from, int64(len(to))))
		return nil
	}
	return s.diskError(s.disk.Read(from, to))
}

// damaged is the error of a region that did not come from a tier as it was captured; nil for -1.
func damaged(region, tier int) error {
	if region < 0 {
		return nil
	}
	return status.New(status.Corrupt, "the bytes read are not those that were captured (checksum mismatch)").AtTier(tier).AtRegion(region)
}
