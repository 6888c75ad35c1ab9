package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
)

// A range of a tier may be retired: nothing is placed there any more. Its free bytes are reserved at once, the others when their records or
// rows give them back. No copy there is evicted to make room. Bytes reserved this way are idle: they count neither as used nor as capacity in Use.

// span is a range of a tier's bytes.
type span struct{ from, end int64 }

// Retire retires a range of tier t and returns how many bytes of it were free. The range may reach beyond the tier's end: bytes that the tier
// grows by there are idle from the beginning.
func (bs *budgets) Retire(t int, from, end int64) (bytes int64) {
	if from >= end {
		return 0
	}
	tr := bs.tiers[t]
	tr.retired = append(tr.without(from, end), span{from, end})
	bs.reclassify(t, from, end)
	return bs.retire(t, tr.table.First(), from, min(end, tr.Capacity))
}

// retires tells whether a fragment lies in a retired range, at least in part. Evicting its copy would make no room.
func (tr *tier) retires(f *fragment.Fragment[*Object]) bool {
	return len(tr.retired) > 0 && slices.ContainsFunc(tr.retired, func(s span) bool { return s.from < f.Offset+f.Size && f.Offset < s.end })
}

// reclassify updates the copies in a range of tier t that has been retired or reinstated.
func (bs *budgets) reclassify(t int, from, end int64) {
	if bs.Below(t) < 0 {
		return // no copy there is evicted
	}
	var all []*Object
	tr := bs.tiers[t]
	for id := tr.table.First(); id != fragment.None && tr.table.At(id).Offset < end; id = tr.table.Next(id) {
		if f := tr.table.At(id); f.Owner != nil && f.Offset+f.Size > from {
			all = append(all, f.Owner)
		}
	}
	for _, o := range all {
		bs.copies.updateCopy(0, o, t)
	}
}

// Allot makes freed room of retired ranges idle only while more than so many bytes of tier t are not idle; 0: always.
func (bs *budgets) Allot(t int, bytes int64) { bs.tiers[t].allotted = bytes }

// Reinstate undoes Retire for a range of tier t, and returns how many bytes are free again.
func (bs *budgets) Reinstate(now int64, t int, from, end int64) (bytes int64) {
	tr := bs.tiers[t]
	tr.retired = tr.without(from, end)
	bs.reclassify(t, from, end)
	for _, s := range bs.tiers[t].idleIn(from, end) {
		id, _ := tr.idle.at(tr, s.from)
		n := s.end - s.from
		id = tr.cutFrom(&tr.idle, id, s.from, n)
		tr.idleBytes -= n
		tr.bytes[fragment.Held] -= n
		tr.bytes[fragment.Gap] += n
		tr.hand = tr.table.Free(id)
		bytes += n
	}
	if bytes > 0 {
		bs.copies.roomAppeared(t)
		bs.makeProgress(now)
	}
	return bytes
}

// Idle calls f for the idle ranges of tier t between two offsets, in ascending order, and returns their total size.
func (bs *budgets) Idle(t int, from, end int64, f func(from, end int64)) (bytes int64) {
	for _, s := range bs.tiers[t].idleIn(from, end) {
		f(s.from, s.end)
		bytes += s.end - s.from
	}
	return bytes
}

// Occupied calls f for the ranges of tier t that are neither free nor idle, in ascending order, and returns their total size.
func (bs *budgets) Occupied(t int, f func(from, end int64)) (bytes int64) {
	tr := bs.tiers[t]
	for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
		row := tr.table.At(id)
		if _, idle := tr.idle.Get(row.Offset); row.Class == fragment.Gap || idle {
			continue
		}
		f(row.Offset, row.Offset+row.Size)
		bytes += row.Size
	}
	return bytes
}

// InUse is how many bytes of tier t are not idle.
func (bs *budgets) InUse(t int) int64 {
	tr := bs.tiers[t]
	return tr.Capacity - tr.idleBytes
}

// idleIn are the idle ranges between two offsets.
func (tr *tier) idleIn(from, end int64) (all []span) {
	if id, ok := tr.idle.at(tr, from); ok {
		f := tr.table.At(id)
		all = append(all, span{from, min(f.Offset+f.Size, end)})
	}
	tr.idle.Ascend(from+1, func(at int64, id fragment.ID) bool {
		if at >= end {
			return false
		}
		all = append(all, span{at, min(at+tr.table.At(id).Size, end)})
		return true
	})
	return all
}

// without are the retired ranges except one.
func (tr *tier) without(from, end int64) (left []span) {
	for _, s := range tr.retired {
		if s.from < from {
			left = append(left, span{s.from, min(s.end, from)})
		}
		if s.end > end {
			left = append(left, span{max(s.from, end), s.end})
		}
	}
	return slices.DeleteFunc(left, func(s span) bool { return s.from >= s.end })
}

// retire reserves the free bytes of a range that does not begin before fragment id.
func (bs *budgets) retire(t int, id fragment.ID, from, end int64) (bytes int64) {
	tr := bs.tiers[t]
	for ; id != fragment.None && tr.table.At(id).Offset < end; id = tr.table.Next(id) {
		f := tr.table.At(id)
		a, b := max(f.Offset, from), min(f.Offset+f.Size, end)
		if f.Class != fragment.Gap || a >= b {
			continue
		}
		id, _ = tr.table.PlaceFrom(id, a, b-a, nil)
		tr.bytes[fragment.Gap] -= b - a
		tr.bytes[fragment.Held] += b - a
		tr.idleBytes += b - a
		tr.idle.Set(a, id)
		bytes += b - a
	}
	return bytes
}

// emptied records that bytes of tier t have been given back and are in a gap now. It reserves the retired part of them.
func (bs *budgets) emptied(t int, gap fragment.ID, off, size int64) {
	tr := bs.tiers[t]
	tr.hand = gap
	for _, s := range tr.retired {
		from, end := max(s.from, off), min(s.end, off+size)
		if tr.allotted > 0 {
			end = min(end, from+bs.InUse(t)-tr.allotted)
		}
		bs.retire(t, gap, from, end)
	}
	bs.copies.roomAppeared(t)
}
