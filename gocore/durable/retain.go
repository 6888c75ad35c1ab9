package durable

import (
	"cmp"
	"slices"

	"velocpy/gocore/catalog"
)

// unkept are the checkpoints that the retention of their history does not keep.
func (c *contents) unkept() (all []doomed) {
	for _, h := range c.state.Histories() {
		if h.Retention == nil {
			continue
		}
		var rows []doomed
		c.state.List(h.ID, 0, func(b catalog.Brief) bool {
			rows = append(rows, doomed{h.ID, h.Name, b.Key, b.Serial, rooms(b.Layout.Slot)})
			return true
		})
		all = append(all, notKept(rows, h.Retention)...)
	}
	return all
}

// notKept are those of a history's rows that a retention does not keep. Which are the last ones, the order of writing tells.
func notKept(rows []doomed, r *catalog.Retention) (gone []doomed) {
	slices.SortFunc(rows, func(a, b doomed) int { return cmp.Compare(b.serial, a.serial) })
	exempt := r.Exempts()
	for i, x := range rows {
		if uint64(i) >= r.Last && !exempt(x.key) {
			gone = append(gone, x)
		}
	}
	return gone
}
