package store

import (
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// Description is what is known of one version of a checkpoint without a look at its bytes.
type Description struct {
	Ticket uint64 // as in Info
	Serial uint64 // of the version in the catalog, which no other version of the store has; 0: not yet assigned
	Layout uint64
	Slot   int64
	Sums   []uint64   // per region; nil without checksums, and before the capture has ended
	Leaves [][]uint64 // per region, if there are checksums: the hashes of its leaves if it has several; nil: not known
	Meta   string
}

// Describe describes the current version of a checkpoint. Like Lookup, it makes a record only for the first checkpoint of a layout.
func (h *History) Describe(k model.Key) (Description, error) {
	s := h.s
	if err := s.Enter(); err != nil {
		return Description{}, err
	}
	defer s.Unlock()
	ticket, version := uint64(0), h.catalogued(k)
	if version == nil {
		r := h.h.Get(k)
		if r == nil || r.Lent() {
			return Description{}, cache.NotFound(h.h, k)
		}
		h.adoptLeaves(r)
		ticket, version = r.ID, r.Version
	}
	if err := version.Layout.Undescribed(); err != nil {
		return Description{}, err
	}
	return Description{
		Ticket: ticket, Serial: version.Serial, Layout: version.Layout.ID, Slot: version.Layout.Slot, Meta: version.Meta,
		Sums: version.Sums, Leaves: version.LeavesByRegion(),
	}, nil
}

// catalogued returns the version of a checkpoint that only the catalog has; nil for any other, and for one whose layout nothing else uses.
func (h *History) catalogued(k model.Key) *checkpoint.Version {
	row, l := h.row(k)
	if l == nil {
		return nil
	}
	v := &checkpoint.Version{Layout: l, Meta: row.Meta, Serial: row.Serial}
	v.Keep(row.Sums)
	if v.HasLeaves() {
		v.AdoptLeaves(row.Leaves)
	}
	return v
}

// adoptLeaves takes over the hashes of leaves that only the catalog has.
func (h *History) adoptLeaves(r *engine.Record) {
	if h.s.Disk != nil {
		h.s.Disk.AdoptLeaves(r)
	}
}
