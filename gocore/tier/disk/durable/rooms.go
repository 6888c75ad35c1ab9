package durable

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// The room of a checkpoint is the range of the space that its bytes take. A row of a difference also has the rooms of its sources. The row whose own room a
// source is may be gone: then the room is in use as long as a row refers to it. Rows that refer to one object have exactly the same range for it, so the
// ranges that are in use are disjoint where equal ones count once.
//
// Ranges that overlap otherwise contradict each other. The same holds for equal ranges that do not mean the same object: when a damaged part of the catalog
// had recorded that a row is gone, another object of the same length may have taken its room.

// tenant identifies the bytes in a room.
type tenant struct {
	lineage    uint64 // of an object of a lineage, as are number, data and meta
	number     uint32
	data, meta int64
	serial     uint64 // of a row without objects, which shares its room with no other
}

// claim is the use of a room by a row.
type claim struct {
	run
	tenant
	own bool // the room of the row's own bytes, which at most one row has
}

// sourceOf returns the claim of a source that lies in a room.
func sourceOf(d *model.Difference, i int, r run) claim {
	s := &d.Sources[i]
	return claim{run: r, tenant: tenant{lineage: d.Lineage, number: s.Number, data: s.Data, meta: s.Meta}}
}

// claims returns the rooms of a readable row, its own first; false if one of them is where nothing can lie.
func (i *identity) claims(row *catalog.Row) ([]claim, bool) {
	r, ok := i.place(row.Extents)
	if !ok {
		return nil, false
	}
	d := row.Difference
	if d == nil {
		return []claim{{r, tenant{serial: row.Serial}, true}}, true
	}
	all := make([]claim, 1, 1+len(row.Sources))
	all[0] = claim{r, tenant{lineage: d.Lineage, number: d.Number, data: d.Data, meta: d.Meta}, true}
	for k, extents := range row.Sources {
		if r, ok = i.place(extents); !ok {
			return nil, false
		}
		all = append(all, sourceOf(d, k, r))
	}
	return all, true
}

// rooms are disjoint ranges of the space that rows have, with their tenants.
type rooms struct{ ends btree.Map[int64, claim] }

// at returns the first room that ends after an offset.
func (r *rooms) at(off int64) (found claim, ok bool) {
	r.ends.Ascend(off+1, func(_ int64, x claim) bool {
		found, ok = x, true
		return false
	})
	return found, ok
}

// admits tells whether a row may have its rooms beside those that are there. Each is free, or has the same object, which is not the own one of two rows.
func (r *rooms) admits(all []claim) bool {
	for _, x := range all {
		if there, ok := r.at(x.from); ok && there.from < x.end && !there.shares(x) {
			return false
		}
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b claim) int { return cmp.Compare(a.from, b.from) })
	for i := range all[1:] {
		if all[i].end > all[i+1].from {
			return false
		}
	}
	return true
}

// shares tells whether two rows may have a room together.
func (c claim) shares(other claim) bool {
	return c.run == other.run && c.tenant == other.tenant && !(c.own && other.own)
}

// add adds the rooms of a row, which admits has accepted.
func (r *rooms) add(all []claim) {
	for _, x := range all {
		there, ok := r.ends.Get(x.end)
		x.own = x.own || ok && there.own
		r.ends.Set(x.end, x)
	}
}

// shared returns the rooms of sources that are no row's own room, each once. It fails with ErrDamaged if two rows differ on what lies in a room.
func (c *contents) shared() (all []run, err error) {
	found := map[int64]claim{} // by its beginning
	c.state.EachDifference(func(row catalog.Row) bool {
		claims, ok := c.identity.claims(&row)
		if !ok {
			err = fmt.Errorf("%w: a source of checkpoint %s of history %d lies where no checkpoint can", ErrDamaged, row.Key, row.History)
			return false
		}
		for _, x := range claims {
			there, ok := found[x.from]
			if ok && !there.shares(x) {
				err = fmt.Errorf("%w: checkpoint %s of history %d needs bytes where others lie, byte %d of the space", ErrDamaged, row.Key, row.History, x.from)
				return false
			}
			x.own = x.own || ok && there.own
			found[x.from] = x
		}
		return true
	})
	for _, x := range found {
		if !x.own {
			all = append(all, x.run)
		}
	}
	return all, err
}

// eachClaim calls f with the rooms of each readable row. The survey has verified that each row has some.
func (c *contents) eachClaim(f func([]claim)) {
	for _, h := range c.state.Histories() {
		c.state.Each(h.ID, func(row catalog.Row) bool {
			if all, ok := c.identity.claims(&row); ok && row.Readable() {
				f(all)
			}
			return true
		})
	}
}
