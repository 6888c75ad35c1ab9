package disk

import (
	"cmp"
	"slices"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/catalog"
)

// unloaded are the checkpoints that can be restored and have no record: the store has found them in the catalog, and no operation has needed them yet. The
// store's lock guards them.
type unloaded struct {
	tier  *Tier
	count map[string]int // by history
}

// NotLoaded is the number of checkpoints of a history that can be restored and have no record.
func (u *unloaded) NotLoaded(history string) int { return u.count[history] }

// EachNotLoaded calls f for the checkpoints that have a row in the catalog and no record. serial orders them by the time of writing.
func (u *unloaded) EachNotLoaded(h *engine.History, f func(key model.Key, serial uint64)) {
	if u.count[h.Name] == 0 {
		return
	}
	v := u.tier.versions
	id, ok := v.state.History(h.Name)
	if !ok {
		return
	}
	v.state.EachKey(id, func(key model.Key, serial uint64) bool {
		if !h.Has(key) && !v.tombstones.hide(place{h.Name, key}, serial) {
			f(key, serial)
		}
		return true
	})
}

// Meta returns the description and the annotation of a checkpoint that only the catalog has, without making a record.
func (u *unloaded) Meta(history string, key model.Key) (text, meta string, ok bool) {
	state := u.tier.versions.state
	id, _ := state.History(history)
	l, meta, ok := state.Meta(id, key)
	if !ok {
		return "", "", false
	}
	return l.Text, meta, true
}

// Lookup tells whether the catalog has a checkpoint without a record, and the size of its slot in the tiers.
func (u *unloaded) Lookup(h *engine.History, key model.Key) (size int64, ok bool) {
	row, ok := u.Row(h, key)
	if !ok {
		return 0, false
	}
	size, _ = checkpoint.Room(row.Layout.Slot)
	return size, true
}

// Row returns the row of a checkpoint that can be restored and has no record.
func (u *unloaded) Row(h *engine.History, key model.Key) (row catalog.Row, ok bool) {
	if u.count[h.Name] == 0 {
		return row, false
	}
	row, ok = u.tier.versions.row(h.Name, key)
	return row, ok && row.Readable()
}

// Find makes a record of a checkpoint that only the catalog has; nil when there is none.
func (u *unloaded) Find(h *engine.History, key model.Key) *engine.Record {
	row, ok := u.Row(h, key)
	if !ok {
		return nil
	}
	v := u.tier.versions
	off, _, err := v.Place(&row)
	x, failed := v.Difference(&row)
	if err != nil || failed != nil {
		return nil // cannot happen: opening the store would have failed
	}
	u.count[h.Name]--
	b := &checkpoint.Version{
		Layout: u.tier.o.Layouts.Adopt(&row.Layout.Layout), Meta: row.Meta, Time: row.Time, Encoding: row.Encoding, Difference: x, Serial: row.Serial,
	}
	b.Keep(row.Sums)
	size, align := checkpoint.Room(row.Layout.Slot)
	return u.tier.engine().Adopt(h, key, engine.Stored{
		Tier: u.tier.index, Size: size, Align: align, Offset: off, Top: u.tier.o.Top, Written: int64(row.Serial), Version: b, Shape: u.shapeOf(b),
	})
}

// shapeOf says how a stored version is kept in the tiers; nil: as it is in all of them.
func (u *unloaded) shapeOf(b *checkpoint.Version) *engine.Shape {
	s, tier := &engine.Shape{}, u.tier.index
	switch {
	case b.Difference != nil:
		s.Forms[tier], s.Sizes[tier] = engine.Difference, b.Difference.Bytes()
	case b.Encoding != nil:
		s.Forms[tier], s.Sizes[tier] = engine.Encoded, b.Encoding.Bytes()
	default:
		return nil
	}
	return s
}

// loadAll makes records of all rows of the catalog, in the order of writing.
func (u *unloaded) loadAll() {
	type row struct {
		h      *engine.History
		key    model.Key
		serial uint64
	}
	var rows []row
	state := u.tier.versions.state
	for _, info := range state.Histories() {
		h := u.tier.engine().History(info.Name)
		state.EachKey(info.ID, func(key model.Key, serial uint64) bool {
			rows = append(rows, row{h, key, serial})
			return true
		})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.serial, b.serial) })
	for _, r := range rows {
		if r.h.Get(r.key) != nil {
			r.h.Wrote(r.key)
		}
	}
}
