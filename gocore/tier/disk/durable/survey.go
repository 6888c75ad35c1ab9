package durable

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// Data file number n holds the n-th range of the space of checkpoints, which begins at (n-1) times the segment length. So extents in files map to ranges of
// the space, and back.

// extents splits a range of the space into pieces of data files.
func (i *identity) extents(off, n int64) []catalog.Extent {
	var all []catalog.Extent
	for end := off + n; off < end; {
		number := off / i.segment
		next := min(end, (number+1)*i.segment)
		all = append(all, catalog.Extent{File: uint64(number) + 1, Offset: off - number*i.segment, Bytes: next - off})
		off = next
	}
	return all
}

// locate sets the extents of a row whose bytes lie at an offset of the space, and those of its sources.
func (i *identity) locate(row *catalog.Row, off int64) {
	row.Extents, row.Sources = i.extents(off, row.Bytes()), nil
	if row.Difference == nil {
		return
	}
	for _, s := range row.Difference.Sources {
		row.Sources = append(row.Sources, i.extents(s.Offset, blocks(s.Bytes())))
	}
}

// place returns the range of the space that extents make up; false when they are not contiguous, or outside of all possible files.
func (i *identity) place(extents []catalog.Extent) (run, bool) {
	var r run
	for k, x := range extents {
		if x.File == 0 || x.File > uint64(math.MaxInt64/2/i.segment) || x.Offset < 0 || x.Bytes <= 0 || x.Offset > i.segment-x.Bytes {
			return r, false
		}
		from := int64(x.File-1)*i.segment + x.Offset
		if k > 0 && from != r.end {
			return r, false
		}
		if k == 0 {
			r.from = from
		}
		r.end = from + x.Bytes
	}
	return r, len(extents) > 0
}

// Occupied yields the ranges of the space, ascending, that the catalog referred to when the directory was opened. A room that several rows have, for their
// own object or for a source, is yielded once.
func (c *contents) Occupied() iter.Seq2[int64, int64] {
	return func(yield func(from, end int64) bool) {
		for _, r := range c.runs {
			if !yield(r.from, r.end) {
				return
			}
		}
	}
}

// survey returns the ranges that the catalog refers to, those of sources included, ascending and merged.
func (c *contents) survey() ([]run, error) {
	runs, sorted, err := c.ownRuns()
	if err != nil {
		return nil, err
	}
	shared, err := c.shared()
	if err != nil {
		return nil, err
	}
	runs = append(runs, shared...)
	if !sorted || len(shared) > 0 {
		slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.from, b.from) })
	}
	return merged(runs)
}

// ownRuns returns the ranges of the rows' own bytes. Adjacent ones that come one after the other are merged.
func (c *contents) ownRuns() (runs []run, sorted bool, bad error) {
	sorted = true
	before := uint64(math.MaxUint64) // serial of the previous extent's row; no row has this initial value
	c.state.EachExtent(func(history uint32, serial uint64, x catalog.Extent) bool {
		r, ok := c.identity.place([]catalog.Extent{x})
		n := len(runs)
		if ok && serial == before && r.from != runs[n-1].end {
			ok = false // the engine allocates one contiguous range per checkpoint
		}
		if before = serial; !ok {
			bad = fmt.Errorf("%w: a checkpoint of history %d lies where no checkpoint can: %+v", ErrDamaged, history, x)
			return false
		}
		if n > 0 && runs[n-1].end == r.from {
			runs[n-1].end = r.end
			return true
		}
		sorted = sorted && (n == 0 || runs[n-1].end < r.from)
		runs = append(runs, r)
		return true
	})
	return runs, sorted, bad
}

// merged merges adjacent ranges, which ascend. It fails with ErrDamaged if two overlap.
func merged(runs []run) ([]run, error) {
	merged := runs[:0]
	for _, r := range runs {
		switch n := len(merged); {
		case n > 0 && r.from < merged[n-1].end:
			return nil, fmt.Errorf("%w: two checkpoints lie at the same place, byte %d of the space", ErrDamaged, r.from)
		case n > 0 && r.from == merged[n-1].end:
			merged[n-1].end = r.end
		default:
			merged = append(merged, r)
		}
	}
	return merged, nil
}

// placed is a row of the catalog with its rooms.
type placed struct {
	rooms   []claim
	history string
	key     model.Key
	serial  uint64
}

// untangle drops rows that cannot be right: those at impossible locations, and of two that contradict each other about a room the older. The missing part of
// the catalog had recorded that it was dropped or replaced, and its bytes have been overwritten.
//
// That also holds where the room of a source is concerned: when the newer row was put, all its rooms had their bytes, and the older row, whose bytes are not
// those, was gone. So a row whose source lies partly under a newer row is lost, and one whose source lies partly under an older row makes that one lost. A row
// keeps the rooms of its sources as its own: where it is lost, they are free, unless another row needs them.
func (c *contents) untangle() error {
	var all []placed
	drop := catalog.NewWriter(c.state).Record()
	var failed error
	lose := func(p placed, why string) {
		c.lose(fmt.Errorf("checkpoint %s of history %.80q lies %s", p.key, p.history, why))
		failed = errors.Join(failed, drop.Drop(p.history, p.key, p.serial))
	}
	for _, info := range c.state.Histories() {
		c.state.Each(info.ID, func(row catalog.Row) bool {
			p := placed{history: info.Name, key: row.Key, serial: row.Serial}
			ok := true
			if row.Readable() {
				if p.rooms, ok = c.identity.claims(&row); ok {
					all = append(all, p)
				}
			}
			if !ok {
				lose(p, "where no checkpoint can")
			}
			return true
		})
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(b.serial, a.serial) })
	var kept rooms // of the rows that stay
	for _, p := range all {
		if !kept.admits(p.rooms) {
			lose(p, "where a newer one does")
		} else {
			kept.add(p.rooms)
		}
	}
	if failed != nil {
		return failed
	}
	return c.state.Apply(drop.Bytes())
}

// used tells whether a data file has bytes that the catalog refers to.
func (c *contents) used(number uint64) bool {
	if number-1 > uint64(math.MaxInt64/2/c.identity.segment) {
		return false
	}
	from := int64(number-1) * c.identity.segment
	i := c.firstRun(from)
	return i < len(c.runs) && c.runs[i].from < from+c.identity.segment
}

// firstRun is the index of the first range that ends after an offset.
func (c *contents) firstRun(off int64) int {
	i, _ := slices.BinarySearchFunc(c.runs, off, func(r run, off int64) int { return cmp.Compare(r.end, off+1) })
	return i
}

// sweep removes unused data files, except those that belong to another store and those whose head cannot be read.
func (c *contents) sweep() (removed []string, err error) {
	if c.state.Unreadable() > 0 {
		return nil, nil // the locations of those checkpoints are unknown
	}
	names, err := c.o.FS.List(c.o.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		//mutation:foreign-data-file-swept
		//mutation:used-data-file-swept
		if number, ok := segment.FileNumber(name); ok && !c.used(number) && c.own(number) {
			if err := c.o.FS.Remove(c.o.path(name)); err != nil {
				return removed, err
			}
			removed = append(removed, name)
		}
	}
	return removed, nil
}
