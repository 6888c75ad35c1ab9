package store

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/plan"
	"velocpy/gocore/policy/retention"
	"velocpy/gocore/tier/disk/catalog"
)

// History is one of a store's histories. A store has one value for each name.
type History struct {
	s      *Store
	h      *engine.History
	number uint64

	retention *retention.Kept // nil: the history has no rule, and no checkpoint is pruned
}

// Engine returns the history as the engine knows it; nil once the store has forgotten it. The lock is held.
func (h *History) Engine() *engine.History { return h.h }

// Number returns the handle of the history. The first call obtains it from name; later calls return the same handle.
func (h *History) Number(name func(*History) uint64) uint64 {
	h.s.Lock()
	defer h.s.Unlock()
	if h.number == 0 {
		h.number = name(h)
		h.s.histories.numbers = append(h.s.histories.numbers, h.number)
	}
	return h.number
}

// Store returns the store that the history belongs to.
func (h *History) Store() *Store { return h.s }

// Info describes one checkpoint.
type Info struct {
	Ticket              uint64 // 0: the checkpoint is only in the catalog; it is durable, and nothing of it is in progress
	Layout              uint64
	Slot, Payload, Meta int64
	Time                int64 // time of capture, ns since 1970 (UTC); 0: unknown
	Tiers               int32 // bit t is set when tier t of the contract has a complete copy
	Ready               bool  // the fastest tier has a complete copy, so a restore is a hit
}

// Lookup describes the checkpoint of a key. It makes no record of one that only the catalog has, unless it is the first of its layout: the caller may
// ask for the layout next.
func (h *History) Lookup(k model.Key) (Info, error) {
	s := h.s
	if err := s.Enter(); err != nil {
		return Info{}, err
	}
	defer s.Unlock()
	if i, ok := h.lookupRow(k); ok {
		return i, nil
	}
	r := h.h.Get(k)
	if r == nil || r.Lent() {
		return Info{}, cache.NotFound(h.h, k)
	}
	b := r.Version
	i := Info{Ticket: r.ID, Layout: b.Layout.ID, Slot: b.Layout.Slot, Payload: b.Layout.Payload, Meta: int64(len(b.Meta)), Time: b.Time}
	for t, number := range s.Tiers {
		if a := s.DeviceTier(t); s.Engine.Complete(r, t) && (a == nil || a.Device.Lost() == nil) {
			i.Tiers |= 1 << number
			i.Ready = i.Ready || t == r.Top()
		}
	}
	return i, nil
}

// lookupRow describes a checkpoint that only the catalog has; ok is false for any other, and for one whose layout nothing else uses.
func (h *History) lookupRow(key model.Key) (i Info, ok bool) {
	s := h.s
	row, l := h.row(key)
	if l == nil {
		return i, false
	}
	return Info{
		Layout: l.ID, Slot: l.Slot, Payload: l.Payload, Meta: int64(len(row.Meta)), Time: row.Time,
		Tiers: 1 << status.TierDisk, Ready: s.Host == nil && len(s.Devices) == 0,
	}, true
}

// row returns the row of a checkpoint that only the catalog has, and its layout; no layout for any other, and for one whose layout nothing else uses.
func (h *History) row(key model.Key) (row catalog.Row, l *checkpoint.Layout) {
	s := h.s
	if s.Disk == nil || h.h.Has(key) {
		return row, nil
	}
	row, ok := s.Disk.Row(h.h, key)
	if !ok {
		return row, nil
	}
	return row, s.Layouts.Find(&row.Layout.Layout)
}

// Len returns the number of checkpoints.
func (h *History) Len() (int64, error) {
	if err := h.s.Enter(); err != nil {
		return 0, err
	}
	defer h.s.Unlock()
	return int64(h.s.histories.len(h.h)), nil
}

// Keys returns the keys in the order of their latest write. The lock is not held during the sort.
func (h *History) Keys() ([]model.Key, error) {
	all, err := h.written()
	if err != nil {
		return nil, err
	}
	return inWritingOrder(all), nil
}

func (h *History) written() ([]retention.Written, error) {
	if err := h.s.Enter(); err != nil {
		return nil, err
	}
	defer h.s.Unlock()
	all := make([]retention.Written, 0, h.h.Len())
	h.h.Each(func(r *engine.Record) {
		if !r.Lent() {
			all = append(all, retention.Written{At: r.Written(), Key: r.Key})
		}
	})
	if h.s.Disk != nil {
		h.s.Disk.EachNotLoaded(h.h, func(k model.Key, serial uint64) { all = append(all, retention.Written{At: int64(serial), Key: k}) })
	}
	return all, nil
}

// Drop removes a checkpoint and cancels its pending flushes. The bytes of existing leases stay exact.
func (h *History) Drop(k model.Key) error {
	if err := h.s.EnterToWrite(); err != nil {
		return err
	}
	defer h.s.Leave()
	r := h.h.Get(k)
	hidden := r != nil && r.Lent()
	if !h.s.Engine.Drop(h.s.Now(), h.h, k) || hidden {
		return cache.NotFound(h.h, k)
	}
	return nil
}

// Clear removes every checkpoint and the plan.
func (h *History) Clear() error {
	if err := h.s.EnterToWrite(); err != nil {
		return err
	}
	defer h.s.Leave()
	h.clear()
	return nil
}

// Hint appends to the restore order. It returns how many hints ahead the order is known now, as Outcome.HintsLeft does.
func (h *History) Hint(hints []plan.Hint) (int64, error) {
	if err := h.s.Enter(); err != nil {
		return 0, err
	}
	defer h.s.Leave()
	if len(hints) > 0 {
		h.s.Engine.Hint(h.s.Now(), h.h, hints)
	}
	return int64(h.h.HintsLeft()), nil
}

// NextDue takes the next restore of the plan for a loop over the plan. number identifies it for ReturnDue. ok is false when the plan has none.
func (h *History) NextDue() (k model.Key, last bool, number int64, ok bool, err error) {
	if err := h.s.Enter(); err != nil {
		return k, false, 0, false, err
	}
	defer h.s.Leave()
	k, last, number, ok = h.h.Due().Take()
	return k, last, number, ok, nil
}

// ReturnDue makes a restore due again that NextDue returned and that the caller did not carry out.
func (h *History) ReturnDue(number int64, k model.Key, last bool) error {
	if err := h.s.Enter(); err != nil {
		return err
	}
	defer h.s.Leave()
	h.h.Due().Return(number, k, last)
	return nil
}

// ClearHints withdraws the restore order.
func (h *History) ClearHints() error {
	if err := h.s.Enter(); err != nil {
		return err
	}
	defer h.s.Leave()
	h.s.Engine.ClearHints(h.s.Now(), h.h)
	return nil
}

// Prefetch starts prefetching before the first restore.
func (h *History) Prefetch() error {
	if err := h.s.Enter(); err != nil {
		return err
	}
	defer h.s.Leave()
	h.s.Engine.StartPrefetch(h.s.Now(), h.h)
	return nil
}

// clear removes every checkpoint of the history, and those that only the catalog has. The lock is held.
func (h *History) clear() {
	s := h.s
	inEngine := func() { s.Engine.Clear(s.Now(), h.h) }
	if s.Disk == nil {
		inEngine()
		return
	}
	s.Disk.Clear(h.h, inEngine)
	if s.Disk.Durable() && h.retention != nil {
		h.retention.Clear() // also of checkpoints that only the catalog had
	}
}

// histories is the histories of a store, and applies their rules of retention.
type histories struct {
	*cache.Cache

	byName  map[string]*History
	numbers []uint64 // handles
}

// len returns how many checkpoints of a history can be restored. The lock is held.
func (hs *histories) len(h *engine.History) int {
	if hs.Disk == nil {
		return h.Len()
	}
	return h.Len() + hs.Disk.NotLoaded(h.Name)
}
