// Package fragment keeps the allocation table of one tier's cache buffer: the contiguous buffer is cut into
// fragments, each a checkpoint's bytes or a gap, in address order without holes (seed 000, sections 4.1.4 to 4.2).
//
// The table knows sizes and neighbours and carries, for each fragment, the few numbers that eviction scores are made of.
// It does no I/O, takes no lock and reads no clock.
package fragment

import (
	"math"

	"velocpy/gocore/policy/lifecycle"
)

// ID names a fragment of one table until it is freed; IDs are reused afterwards.
type ID = int32

// None is no fragment.
const None ID = -1

// Unexpected is where a checkpoint stands that nobody is expected to restore.
const Unexpected = int64(math.MaxInt64)

// Class says what stands between a fragment and its eviction. The owner keeps it current.
type Class uint8

// The classes, from the most to the least evictable.
const (
	Gap      Class = iota // no bytes
	Free                  // evictable now
	Flushing              // evictable when its queued or running flush ends, at ETA
	Dirty                 // evictable after a flush that nobody has asked for yet
	Promised              // prefetched or hinted for a restore that is still to come: only a demand may break the promise
	Held                  // being read or written, or lent to the caller: not evictable by any means
)

// Fragment is one row of the table, and fills one cache line. Offset and Size belong to the table, the rest to its owner, which calls Update when it
// has changed what eviction weighs: Class, Expected, Touched, Born, Lane.
type Fragment[O any] struct {
	Offset, Size int64
	ETA          int64 // Flushing: the predicted time of the end of the flush, ns; a gap's is the table's
	Expected     int64 // where on the restore order's axis of intervals it is expected, or Unexpected
	Touched      int64 // count of the engine's operations when it was last written or restored
	Owner        O
	Born         uint32 // the low half of the same count when it was placed
	Lane         int32  // index of the restore order that expects it
	Pins         int32  // readers: leases and copies out
	Transfers    uint8  // flushes or loads that read or write it
	Class        Class
	State        lifecycle.State
	Verified     bool // the bytes here were checked against the checksum since they arrived
}

// Rank says by what fragments are compared that nothing keeps from being evicted.
type Rank uint8

// The ranks.
const (
	ByRestore Rank = iota // Expected, and what nobody expects by Touched
	ByUse                 // Touched
	ByStay                // Born
)

// Table is the allocation table of one buffer.
type Table[O any] struct {
	rows     []Fragment[O]
	order    order
	vacant   []ID
	rank     Rank
	capacity int64
	end      int64 // where the last fragment ends, which may be behind the capacity
	used     int64
	count    int
	odd      int64 // the ones of all sizes and alignments that were ever placed: offsets have no other low bits
	gaps     bins
}

// New returns the table of a buffer of capacity bytes: one gap.
func New[O any](capacity int64) *Table[O] {
	t := &Table[O]{}
	t.gaps.reset()
	t.Resize(capacity)
	return t
}

// Capacity is the size of the buffer in bytes: nothing is placed behind it.
func (t *Table[O]) Capacity() int64 { return t.capacity }

// Used is the number of bytes in fragments that are not gaps.
func (t *Table[O]) Used() int64 { return t.used }

// Count is the number of fragments that are not gaps.
func (t *Table[O]) Count() int { return t.count }

// At gives the row of id. The pointer is valid until the next Place or Free.
func (t *Table[O]) At(id ID) *Fragment[O] { return &t.rows[id] }

// First is the fragment at offset 0, or None for an empty buffer.
func (t *Table[O]) First() ID {
	if len(t.rows) == 0 {
		return None
	}
	return t.order.leaves[0].ids[0]
}

// Next is the fragment behind id in address order, or None.
func (t *Table[O]) Next(id ID) ID {
	if p, ok := t.order.behind(t.order.find(id)); ok {
		return t.order.id(p)
	}
	return None
}

// Leaf names a few fragments that lie beside each other in memory, until the next Place or Free.
type Leaf = int32

// LeafOf is where a fragment lies, and its index there.
func (t *Table[O]) LeafOf(id ID) (Leaf, int) {
	p := t.order.find(id)
	return p.at, p.i
}

// Leaf gives the fragments of a leaf in address order, and the next leaf or None. There is one entry more than fragments: its Offset is where
// the last of them ends. All is valid until the next Place, Free or Update.
func (t *Table[O]) Leaf(at Leaf) (ids []ID, entries []Entry, next Leaf) {
	l := &t.order.leaves[at]
	return l.ids[:l.n], l.entries[:l.n+1], l.next
}

// RankBy makes the entries' values those of a rank. O(1) if they are already, or else O(fragments).
func (t *Table[O]) RankBy(r Rank) {
	if t.rank == r {
		return
	}
	t.rank = r
	for id := t.First(); id != None; id = t.Next(id) {
		t.Update(id)
	}
}

// Update brings the entry of id in line with its row. O(1).
func (t *Table[O]) Update(id ID) {
	*t.order.entry(t.order.find(id)) = t.entry(&t.rows[id])
}

func (t *Table[O]) entry(f *Fragment[O]) Entry {
	e := Entry{Offset: f.Offset, Class: f.Class, Lane: LaneOfTheRest, Value: -f.Touched}
	switch {
	case f.Class == Gap:
		e.Lane, e.Value = LaneOfGaps, 0
	case t.rank == ByStay:
		e.Value = -int64(f.Born)
	case t.rank == ByRestore && f.Expected != Unexpected:
		e.Lane, e.Value = Lanes+f.Lane, f.Expected
	}
	return e
}

// Aligned tells whether all fragments begin at multiples of align, which is a power of two. It may be false though they do.
func (t *Table[O]) Aligned(align int64) bool { return t.odd&(align-1) == 0 }

// Padding is what must be skipped at offset so that the rest is aligned.
func Padding(offset, align int64) int64 {
	if align <= 1 {
		return 0
	}
	return (align - offset%align) % align
}

// Place cuts size bytes, aligned, out of some gap and gives them to owner; false when no single gap is large enough.
// O(1) but for a short walk among gaps of about the same size.
func (t *Table[O]) Place(size, align int64, owner O) (ID, bool) {
	gap := t.findGap(size, align)
	if gap == None {
		return None, false
	}
	return t.carve(gap, size, align, owner), true
}

// PlaceIn cuts the same out of one gap; false when it is not a gap, or behind the capacity, or too small.
func (t *Table[O]) PlaceIn(gap ID, size, align int64, owner O) (ID, bool) {
	if f := &t.rows[gap]; f.Class != Gap || f.Offset >= t.capacity || !t.fits(gap, size, align) {
		return None, false
	}
	return t.carve(gap, size, align, owner), true
}

// Free turns the fragment into a gap and merges it with gaps beside it; the gap's ID is returned. What lies behind the capacity is no gap any
// more but nothing: of a fragment that lies there altogether None is left.
func (t *Table[O]) Free(id ID) ID {
	o := &t.order
	p := o.find(id)
	t.empty(id)
	*o.entry(p) = Entry{Offset: t.rows[id].Offset}
	if f := &t.rows[id]; f.Offset+f.Size > t.capacity {
		return t.freeBehind(id)
	}
	at, beside := p.at, p.at
	if q, ok := o.behind(p); ok && o.entry(q).Class == Gap && o.entry(q).Offset < t.capacity {
		beside = q.at
		t.absorb(id, q)
	}
	if q, ok := o.before(p); ok && o.entry(q).Class == Gap {
		id = o.id(q)
		t.binOut(id)
		t.join(id, p)
	}
	if beside != at { // first: it may be merged into the other
		o.tidy(beside)
	}
	o.tidy(at)
	t.binIn(id)
	return id
}

// empty makes a row one of a gap.
func (t *Table[O]) empty(id ID) {
	var none O
	f := &t.rows[id]
	t.used -= f.Size
	t.count--
	f.Owner = none
	f.Class, f.State, f.Expected, f.Pins, f.Transfers, f.Verified = Gap, lifecycle.Init, Unexpected, 0, 0, false
	f.Touched, f.Born = 0, 0
}

// carve places a fragment in a gap that is known to be large enough.
func (t *Table[O]) carve(gap ID, size, align int64, owner O) ID {
	t.binOut(gap)
	p := t.order.find(gap)
	if pad := Padding(t.rows[gap].Offset, align); pad > 0 {
		rest := t.split(p, pad)
		t.binIn(gap)
		p, gap = rest, t.order.id(rest)
	}
	t.odd |= t.rows[gap].Offset | size
	f := &t.rows[gap]
	f.Owner, f.Class, f.State = owner, Held, lifecycle.Init
	f.ETA, f.Expected, f.Pins, f.Transfers, f.Verified = 0, Unexpected, 0, 0, false
	*t.order.entry(p) = t.entry(f)
	if f.Size > size {
		t.binIn(t.order.id(t.split(p, size)))
	}
	t.used += size
	t.count++
	return gap
}

// split shortens the fragment at p to size bytes; the rest is a new gap, not yet in a bin, whose place is returned.
func (t *Table[O]) split(p place, size int64) place {
	f := &t.rows[t.order.id(p)]
	gap := Fragment[O]{Offset: f.Offset + size, Size: f.Size - size, Class: Gap, Expected: Unexpected}
	f.Size = size
	return t.order.insert(p, t.row(gap), Entry{Offset: gap.Offset})
}

// absorb joins the gap at p to the fragment before it.
func (t *Table[O]) absorb(before ID, p place) {
	t.binOut(t.order.id(p))
	t.join(before, p)
}

// join makes the bytes of the fragment at p the one's before it.
func (t *Table[O]) join(before ID, p place) {
	id := t.order.id(p)
	t.rows[before].Size += t.rows[id].Size
	t.order.remove(p)
	t.vacant = append(t.vacant, id)
}

// row gives a row an ID.
func (t *Table[O]) row(f Fragment[O]) ID {
	if n := len(t.vacant); n > 0 {
		id := t.vacant[n-1]
		t.vacant = t.vacant[:n-1]
		t.rows[id] = f
		return id
	}
	t.rows = append(t.rows, f)
	t.order.leafOf, t.order.hints = append(t.order.leafOf, None), append(t.order.hints, 0)
	return ID(len(t.rows) - 1)
}
