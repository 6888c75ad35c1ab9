package workers

import (
	"errors"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/borrow"
)

// moved is the result of a transfer.
type moved struct {
	err     error
	fetched *memory.Mapping // Fetch: the bytes, beside the cache
	sums    []uint64        // Spill: checksums of the bytes that were read
	bad     []int32         // Load to a device: regions whose bytes are not those captured
	leaves  []uint64        // Flush to a disk tier that outlives the store: hashes of leaves
}

// unmap unmaps the bytes of a fetch that no operation has taken over.
func (m *moved) unmap() {
	if m.fetched != nil {
		_ = m.fetched.Unmap() // mapped for this transfer; no other goroutine uses it
	}
}

// moveByHost carries out a transfer without help of a device. It runs in a worker, without the lock: the engine holds source and destination for it.
func (w *worker) moveByHost(x *engine.Transfer) *moved {
	s, b := w.s, x.Rec.Version
	var m moved
	switch x.Kind {
	case engine.Flush:
		m.leaves, m.err = s.writeToDisk(x, b)
	case engine.Load:
		m.err = w.load(x, b)
	case engine.Spill:
		m.sums, m.err = s.spill(x)
		if !errors.Is(m.err, borrow.ErrAbandoned) {
			m.err = s.DiskError(m.err)
		}
	default:
		m.fetched, m.err = w.fetch(x, b)
	}
	return &m
}

// move carries out a transfer of any kind. It runs in a worker, without the lock: the engine holds source and destination for it.
func (w *worker) move(x *engine.Transfer) *moved {
	a := w.pool.device
	if a == nil || x.Kind == engine.Fetch || x.Kind == engine.Spill && w.s.DeviceOf(x.Rec) != a {
		return w.moveByHost(x)
	}
	lane, err := w.laneOf(a)
	if err != nil {
		return &moved{err: err}
	}
	switch b := x.Rec.Version; x.Kind {
	case engine.Spill:
		return w.s.moveBorrowed(a, lane, x, b)
	case engine.Flush:
		return &moved{err: w.s.flushFrom(a, lane, x, b)}
	default:
		return w.s.loadTo(a, lane, x, b)
	}
}
