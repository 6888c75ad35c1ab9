// Package fragment keeps the allocation table of one tier's cache buffer: the contiguous buffer is cut into
// fragments, each a checkpoint's bytes or a gap, in address order without holes (seed 000, sections 4.1.4 to 4.2).
//
// The table knows sizes and neighbours and carries, for each fragment, the few numbers that eviction scores are made of.
// It does no I/O, takes no lock and reads no clock.
package fragment

import (
	"math"

	"velocpy/gocore/lifecycle"
)

// ID names a fragment of one table until it is freed; IDs are reused afterwards.
type ID = int32

// None is no fragment.
const None ID = -1

// Unexpected is the Seq of a checkpoint that nobody is expected to restore.
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

// Fragment is one row of the table. Offset and Size belong to the table, the rest to its owner. It fills one cache line: eviction reads
// thousands of rows in the order of their addresses, which is no order in memory.
type Fragment[O any] struct {
	Offset, Size int64
	ETA          int64 // Flushing: the predicted time of the end of the flush, ns
	Seq          int64 // where the restore order expects it, or Unexpected
	Touched      int64 // count of the engine's operations when it was last written or restored
	Owner        O
	Born         uint32 // the low half of the same count when it was placed
	Lane         int32  // index of the restore order that Seq belongs to
	Pins         int32  // readers: leases and copies out
	Transfers    uint8  // flushes or loads that read or write it
	Class        Class
	State        lifecycle.State
	Verified     bool // the bytes here were checked against the checksum since they arrived
}

// Table is the allocation table of one buffer.
type Table[O any] struct {
	rows     []Fragment[O]
	next     []ID // by row: the fragment behind it
	prev     []ID
	order    order
	vacant   []ID
	first    ID
	capacity int64
	used     int64
	count    int
	gaps     bins
}

// New returns the table of a buffer of capacity bytes: one gap.
func New[O any](capacity int64) *Table[O] {
	t := &Table[O]{capacity: capacity, first: None}
	t.gaps.reset()
	if capacity > 0 {
		id := t.row()
		t.rows[id] = Fragment[O]{Size: capacity, Class: Gap, Seq: Unexpected}
		t.next[id], t.prev[id] = None, None
		t.first = id
		t.order.begin(id)
		t.binIn(id)
	}
	return t
}

// Capacity is the size of the buffer in bytes.
func (t *Table[O]) Capacity() int64 { return t.capacity }

// Used is the number of bytes in fragments that are not gaps.
func (t *Table[O]) Used() int64 { return t.used }

// Count is the number of fragments that are not gaps.
func (t *Table[O]) Count() int { return t.count }

// At gives the row of id. The pointer is valid until the next Place or Free.
func (t *Table[O]) At(id ID) *Fragment[O] { return &t.rows[id] }

// First is the fragment at offset 0, or None for an empty buffer.
func (t *Table[O]) First() ID { return t.first }

// Next is the fragment behind id in address order, or None.
func (t *Table[O]) Next(id ID) ID { return t.next[id] }

// List fills in the IDs of fragments in address order: first, and those behind it up to, not including, end. It returns how many there were room
// for, and the next one or None.
func (t *Table[O]) List(first, end ID, into []ID) (n int, next ID) {
	o := &t.order
	l, i := o.find(first)
	for {
		some := l.ids[i:l.n]
		if end != None && &o.leaves[o.leafOf[end]] == l {
			if _, j := o.find(end); j >= i {
				some = l.ids[i:j]
			}
		}
		m := copy(into[n:], some)
		n += m
		switch {
		case m < len(some):
			return n, some[m]
		case i+m < int(l.n):
			return n, end
		case l.next == None:
			return n, None
		}
		l, i = &o.leaves[l.next], 0
	}
}

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

// PlaceIn cuts the same out of one gap; false when it is not a gap or too small.
func (t *Table[O]) PlaceIn(gap ID, size, align int64, owner O) (ID, bool) {
	if t.rows[gap].Class != Gap || !t.fits(gap, size, align) {
		return None, false
	}
	return t.carve(gap, size, align, owner), true
}

// Free turns the fragment into a gap and merges it with gaps beside it; the gap's ID is returned.
func (t *Table[O]) Free(id ID) ID {
	var none O
	f := &t.rows[id]
	t.used -= f.Size
	t.count--
	f.Owner = none
	f.Class, f.State, f.Seq, f.Pins, f.Transfers, f.Verified = Gap, lifecycle.Init, Unexpected, 0, 0, false
	f.Touched, f.Born = 0, 0
	if p := t.prev[id]; p != None && t.rows[p].Class == Gap {
		t.binOut(p)
		t.absorb(p, id)
		id = p
	}
	if n := t.next[id]; n != None && t.rows[n].Class == Gap {
		t.binOut(n)
		t.absorb(id, n)
	}
	t.binIn(id)
	return id
}

// carve places a fragment in a gap that is known to be large enough.
func (t *Table[O]) carve(gap ID, size, align int64, owner O) ID {
	t.binOut(gap)
	if pad := Padding(t.rows[gap].Offset, align); pad > 0 {
		rest := t.split(gap, pad)
		t.binIn(gap)
		gap = rest
	}
	if t.rows[gap].Size > size {
		t.binIn(t.split(gap, size))
	}
	f := &t.rows[gap]
	f.Owner, f.Class, f.State = owner, Held, lifecycle.Init
	f.ETA, f.Seq, f.Pins, f.Transfers, f.Verified = 0, Unexpected, 0, 0, false
	t.used += size
	t.count++
	return gap
}

// Grow adds room behind the end of the buffer. O(fragments).
func (t *Table[O]) Grow(capacity int64) {
	more := capacity - t.capacity
	if more <= 0 {
		return
	}
	last := t.first
	for last != None && t.next[last] != None {
		last = t.next[last]
	}
	if last != None && t.rows[last].Class == Gap {
		t.binOut(last)
		t.rows[last].Size += more
		t.binIn(last)
	} else {
		t.binIn(t.append(last, more))
	}
	t.capacity = capacity
}

// append makes a gap of so many bytes behind the last fragment, not yet in a bin.
func (t *Table[O]) append(last ID, bytes int64) ID {
	id := t.row()
	t.rows[id] = Fragment[O]{Offset: t.capacity, Size: bytes, Class: Gap, Seq: Unexpected}
	t.next[id], t.prev[id] = None, last
	if last == None {
		t.first = id
		t.order.begin(id)
	} else {
		t.next[last] = id
		t.order.insert(last, id)
	}
	return id
}

// split shortens fragment id to size bytes and returns the new gap row behind it, not yet in a bin.
func (t *Table[O]) split(id ID, size int64) ID {
	rest := t.row()
	f := &t.rows[id]
	t.rows[rest] = Fragment[O]{Offset: f.Offset + size, Size: f.Size - size, Class: Gap, Seq: Unexpected}
	f.Size = size
	next := t.next[id]
	t.next[rest], t.prev[rest] = next, id
	if next != None {
		t.prev[next] = rest
	}
	t.next[id] = rest
	t.order.insert(id, rest)
	return rest
}

// absorb joins row b, which lies directly behind a, to a.
func (t *Table[O]) absorb(a, b ID) {
	t.rows[a].Size += t.rows[b].Size
	next := t.next[b]
	t.next[a] = next
	if next != None {
		t.prev[next] = a
	}
	t.order.remove(b)
	t.vacant = append(t.vacant, b)
}

func (t *Table[O]) row() ID {
	if n := len(t.vacant); n > 0 {
		id := t.vacant[n-1]
		t.vacant = t.vacant[:n-1]
		return id
	}
	t.rows = append(t.rows, Fragment[O]{})
	t.next, t.prev = append(t.next, None), append(t.prev, None)
	t.order.leafOf = append(t.order.leafOf, None)
	return ID(len(t.rows) - 1)
}
