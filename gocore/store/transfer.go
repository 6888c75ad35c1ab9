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
	all := b.layout.all()
	// What lies behind the last region may never have been written.
	return s.readVerified(slot, b, all, status.TierDisk, func(arrived func(from, n int64)) error {
		return s.diskError(s.disk.ReadPieces(from, slot[:b.layout.end()], arrived))
	})
}

// readVerified has regions read into a slot and compares them with what was captured, the large ones while they come.
func (s *Store) readVerified(slot []byte, b *body, regions []int32, tier int, read func(arrived func(from, n int64)) error) error {
	if s.set.verify == verifyOff {
		return read(nil)
	}
	a := newArrivals(slot, b, regions)
	if a == nil {
		if err := read(nil); err != nil {
			return err
		}
		return damaged(b.mismatch(slot, regions), tier)
	}
	if err := read(a.arrived); err != nil {
		return err
	}
	return damaged(a.mismatch(), tier)
}

// fetch reads the regions wanted into memory beside the cache and verifies them.
func (s *Store) fetch(x *engine.Transfer, b *body) (*memory.Mapping, error) {
	op := x.Restore.Notify.(*Op)
	m, err := memory.Map("private restore", max(b.layout.slot, 1))
	if err != nil {
		return nil, status.Wrap(status.IO, err, "cannot map %d bytes beside the cache", b.layout.slot)
	}
	slot := m.Bytes(0, m.Size())
	return m, s.readVerified(slot, b, op.want, s.tiers[x.From], func(arrived func(from, n int64)) error {
		for rest := op.want; len(rest) > 0; {
			var span Span
			span, rest = b.layout.run(rest)
			if err := s.readFrom(x.From, slot, span, x.FromOff, arrived); err != nil {
				return err
			}
		}
		return nil
	})
}

// readFrom reads a span of a slot that begins at a place in a tier, and tells what has come, if anybody wants to know.
func (s *Store) readFrom(t int, slot []byte, span Span, place int64, arrived func(from, n int64)) error {
	from, to := place+span.Offset, slot[span.Offset:span.Offset+span.Bytes]
	switch a := s.accelerator(t); {
	case a != nil:
		if err := a.read(to, from); err != nil {
			return err
		}
	case s.tiers[t] == status.TierHost:
		copy(to, s.host.Bytes(from, span.Bytes))
	default:
		var some func(at, n int64)
		if arrived != nil {
			some = func(at, n int64) { arrived(span.Offset+at, n) }
		}
		return s.diskError(s.disk.ReadPieces(from, to, some))
	}
	if arrived != nil {
		arrived(span.Offset, span.Bytes)
	}
	return nil
}

// damaged is the error of a region that did not come from a tier as it was captured; nil for -1.
func damaged(region, tier int) error {
	if region < 0 {
		return nil
	}
	return status.New(status.Corrupt, "the bytes read are not those that were captured (checksum mismatch)").AtTier(tier).AtRegion(region)
}
