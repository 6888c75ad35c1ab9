package durable

import (
	"cmp"
	"slices"

	"velocpy/gocore/catalog"
	"velocpy/gocore/plan"
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
	named := map[plan.Key]bool{}
	for _, k := range r.Keys {
		named[k] = true
	}
	for i, x := range rows {
		switch {
		case uint64(i) < r.Last, named[x.key], x.key.IsText && r.Named:
		case !x.key.IsText && r.Every > 0 && multiple(x.key.Number, r.Every):
		default:
			gone = append(gone, x)
		}
	}
	return gone
}

// multiple tells whether every divides a number.
func multiple(n int64, every uint64) bool {
	if n < 0 {
		return -uint64(n)%every == 0
	}
	return uint64(n)%every == 0
}
