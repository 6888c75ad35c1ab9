// Package fragment keeps the allocation table of one tier's cache buffer. The contiguous buffer is cut into fragments in address order, without holes
// (Maurya et al., HPDC'23, sections 4.1.4 to 4.2). A fragment is a checkpoint's bytes or a gap.
//
// The table knows sizes and neighbours. For each fragment it carries the few numbers from which eviction scores are computed. It does no I/O, takes
// no lock and reads no clock.
package fragment

import (
	"math"

	"velocpy/gocore/policy/lifecycle"
)

// ID names a fragment of one table until it is freed; IDs are reused afterwards.
type ID = int32

// None is no fragment.
const None ID = -1

// Unexpected is the place of a checkpoint of which no restore is expected.
const Unexpected = int64(math.MaxInt64)

// Class says how a fragment can become evictable. The owner keeps it current.
type Class uint8

// The classes, from the most to the least evictable.
const (
	Gap      Class = iota // no bytes
	Free                  // evictable now
	Flushing              // evictable when its queued or running flush ends, at ETA
	Dirty                 // evictable after a flush that is not queued yet
	Promised              // prefetched or hinted for a coming restore: only a demand may break the promise
	Held                  // being read or written, or lent to the caller: not evictable
)

// Fragment is one row of the table, and fills one cache line. Offset and Size belong to the table, the rest to its owner. The owner calls Update
// after a change of the fields that eviction weighs: Class, Expected, Touched, Born, Lane.
type Fragment[O any] struct {
	Offset, Size int64
	ETA          int64 // Flushing: predicted end of the flush, ns; in a gap it belongs to the table
	Expected     int64 // place on the restore order's axis of intervals, or Unexpected
	Touched      int64 // the engine's count of operations when it was last written or restored
	Owner        O
	Born         uint32 // the low half of the same count when it was placed
	Lane         int32  // index of the restore order that expects it
	Pins         int32  // readers: leases and copies out
	Transfers    uint8  // flushes or loads that read or write it
	Class        Class
	State        lifecycle.State
	Verified     bool // the bytes here were verified against the checksum since they arrived
}

// Rank is the order by which evictable fragments are compared.
type Rank uint8

// The ranks.
const (
	ByRestore Rank = iota // Expected, and unexpected fragments by Touched
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
	end      int64 // end of the last fragment, which may be behind the capacity
	used     int64
	count    int
	odd      int64 // bitwise OR of all offsets and sizes ever placed: offsets have no other low bits
	gaps     bins
}

// New returns the table of a buffer of capacity bytes: one gap.
func New[O any](capacity int64) *Table[O] {
	t := &Table[O]{}
	t.gaps.reset()
	t.Resize(capacity)
	return t
}

// Capacity is the size of the buffer in bytes; no fragment is placed behind it.
func (t *Table[O]) Capacity() int64 { return t.capacity }

// Used is the number of bytes in fragments that are not gaps.
func (t *Table[O]) Used() int64 { return t.used }

// Count is the number of fragments that are not gaps.
func (t *Table[O]) Count() int { return t.count }

// At returns the row of id. The pointer is valid until the next Place or Free.
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

// Leaf names a few fragments that are adjacent in memory, until the next Place or Free.
type Leaf = int32

// LeafOf is the leaf of a fragment, and its index there.
func (t *Table[O]) LeafOf(id ID) (Leaf, int) {
	p := t.order.find(id)
	return p.at, p.i
}

// Leaf returns the fragments of a leaf in address order, and the next leaf or None. There is one more entry than fragments: its Offset is the end of
// the last one. All is valid until the next Place, Free or Update.
func (t *Table[O]) Leaf(at Leaf) (ids []ID, entries []Entry, next Leaf) {
	l := &t.order.leaves[at]
	return l.ids[:l.n], l.entries[:l.n+1], l.next
}

// RankBy computes the entries' values for a rank. O(1) if they already have it, otherwise O(fragments).
func (t *Table[O]) RankBy(r Rank) {
	if t.rank == r {
		return
	}
	t.rank = r
	for id := t.First(); id != None; id = t.Next(id) {
		t.Update(id)
	}
}

// Update copies the row of id to its entry. O(1).
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

// Aligned tells whether all fragments begin at multiples of align, a power of two. It may be false although they do.
func (t *Table[O]) Aligned(align int64) bool { return t.odd&(align-1) == 0 }

// Padding is the number of bytes to skip at offset for alignment.
func Padding(offset, align int64) int64 {
	if align <= 1 {
		return 0
	}
	return (align - offset%align) % align
}

// Place cuts size bytes, aligned, out of a gap and gives them to owner; false if no single gap is large enough. O(1) except for a short walk among
// gaps of about the same size.
func (t *Table[O]) Place(size, align int64, owner O) (ID, bool) {
	gap := t.findGap(size, align)
	if gap == None {
		return None, false
	}
	return t.carve(gap, size, align, owner), true
}

// PlaceIn is Place in one gap; false if it is no gap, or behind the capacity, or too small.
func (t *Table[O]) PlaceIn(gap ID, size, align int64, owner O) (ID, bool) {
	if f := &t.rows[gap]; f.Class != Gap || f.Offset >= t.capacity || !t.fits(gap, size, align) {
		return None, false
	}
	return t.carve(gap, size, align, owner), true
}

// Free turns the fragment into a gap, merges it with adjacent gaps, and returns the gap's ID. The part behind the capacity is removed instead. For a
// fragment entirely behind the capacity, Free returns None.
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
	if beside != at { // first: it may be merged into the other leaf
		o.tidy(beside)
	}
	o.tidy(at)
	t.binIn(id)
	return id
}

// empty turns a row into that of a gap.
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

// split shortens the fragment at p to size bytes. The rest is a new gap, not yet in a bin; split returns its place.
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

// join gives the bytes of the fragment at p to the one before it.
func (t *Table[O]) join(before ID, p place) {
	id := t.order.id(p)
	t.rows[before].Size += t.rows[id].Size
	t.order.remove(p)
	t.vacant = append(t.vacant, id)
}

// row assigns an ID to a row.
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
