package object

import (
	"cmp"
	"slices"

	"velocpy/gocore/reduction/difference"
)

// extent says where first occurrences of an object lie in the slot of a checkpoint that refers to them.
type extent struct {
	from, end int64 // in the first occurrences
	at        int64 // of from, in the slot
}

// extents finds what the checkpoint may have of the lost bytes: by the number of the object, ascending and disjoint. It leaves out regions that are not good.
func (r *Reader) extents(all []lost, good func(region int) bool) map[uint32][]extent {
	hulls, found := hullsOf(all), map[uint32][]extent{}
	for i := range r.locations.Regions {
		l, asked, right := &r.locations.Regions[i], false, false
		l.Each(0, l.Size, func(run difference.Run, bytes uint64) bool {
			s := extentOf(run, bytes, r.spans[i].Offset)
			if hull, some := hulls[run.Checkpoint]; !some || s.end <= hull.from || s.from >= hull.end {
				return true
			}
			if !asked {
				asked, right = true, good(i)
			}
			if right {
				found[run.Checkpoint] = append(found[run.Checkpoint], s)
			}
			return right
		})
	}
	for number, list := range found {
		found[number] = disjoint(list)
	}
	return found
}

// extentOf is the extent of a run of so many bytes, in a region that lies at an offset of the slot.
func extentOf(run difference.Run, bytes uint64, region int64) extent {
	if run.Period > 0 {
		bytes = min(bytes, uint64(run.Period))
	}
	return extent{from: int64(run.Offset), end: int64(run.Offset + bytes), at: region + int64(run.At)}
}

// hullsOf returns, for each object, the extent from its first lost byte to its last.
func hullsOf(all []lost) map[uint32]extent {
	hulls := map[uint32]extent{}
	for _, x := range all {
		h, some := hulls[x.number]
		if !some {
			h.from = x.at
		}
		h.from, h.end = min(h.from, x.at), max(h.end, x.at+int64(len(x.to)))
		hulls[x.number] = h
	}
	return hulls
}

// disjoint orders extents, and shortens those that begin in one before.
func disjoint(list []extent) []extent {
	slices.SortFunc(list, func(a, b extent) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.end, a.end), cmp.Compare(a.at, b.at))
	})
	kept, end := list[:0], int64(0)
	for _, s := range list {
		if begin := max(s.from, end); begin < s.end {
			kept, end = append(kept, extent{begin, s.end, s.at + begin - s.from}), s.end
		}
	}
	return kept
}
