package fragment

// The fragments' order is in leaves: linked arrays of a few dozen fragments. For each fragment a leaf holds an Entry with the values that an eviction
// weighs. So a decision over thousands of fragments reads consecutive memory and loads none of their rows. Inserting or removing a fragment moves a
// few entries, however many fragments there are.
const (
	leafSize = 61               // the fields to find a fragment in a leaf, and the links, fill a cache line
	leafLow  = leafSize / 4     // a leaf with no more is merged with an adjacent one ...
	leafFull = leafSize * 3 / 4 // ... if the two do not fill it more than this: it must not overflow again soon
)

// LeafSize is the most fragments in a leaf.
const LeafSize = leafSize

// Entry is the part of a fragment that an eviction weighs: a summary of its row, as of the owner's latest Update.
type Entry struct {
	Offset int64
	// Value is the number by which the table is ranked: Expected, or Touched or Born negated. Its sum with a number for its Lane is a distance or an
	// age.
	Value int64
	Lane  int32 // selects that number: LaneOfGaps, LaneOfTheRest, or Lanes plus the index of a restore order
	Class Class
}

// The meanings of an entry's Lane.
const (
	LaneOfGaps    = iota // a gap; Value is 0
	LaneOfTheRest        // not expected, or not ranked by the restore order
	Lanes                // the first restore order
)

type leaf struct {
	n          int32 // never 0
	next, prev int32 // leaves, or None
	ids        [leafSize]ID
	entries    [leafSize + 1]Entry // the Offset behind the last fragment is the end of the leaf
}

// place is the position of a fragment in the order.
type place struct {
	at int32 // the leaf
	i  int
}

// order is the sequence of all rows in use. Its first leaf is always number 0: the fragment at offset 0 is never absorbed.
type order struct {
	leaves []leaf
	leafOf []int32 // by row
	hints  []uint8 // by row: its index in the leaf at the last search
	vacant []int32
}

// begin makes the sequence of one fragment, which ends at offset end.
func (o *order) begin(id ID, e Entry, end int64) {
	o.leaves = append(o.leaves, leaf{n: 1, next: None, prev: None})
	l := &o.leaves[0]
	l.set(0, id, e)
	l.entries[1].Offset = end
	o.leafOf[id] = 0
}

func (l *leaf) set(i int, id ID, e Entry) {
	l.ids[i], l.entries[i] = id, e
}

// find returns the place of a fragment: usually the same as before.
func (o *order) find(id ID) place {
	at, i := o.leafOf[id], int(o.hints[id])
	l := &o.leaves[at]
	if i >= int(l.n) || l.ids[i] != id {
		i = l.search(id)
		o.hints[id] = uint8(i)
	}
	return place{at, i}
}

// search returns the index of an ID that is in the leaf.
func (l *leaf) search(id ID) int {
	for i, x := range l.ids[:l.n] {
		if x == id {
			return i
		}
	}
	panic("fragment: an ID of no fragment")
}

func (o *order) id(p place) ID        { return o.leaves[p.at].ids[p.i] }
func (o *order) entry(p place) *Entry { return &o.leaves[p.at].entries[p.i] }

// behind is the place behind p; false at the end.
func (o *order) behind(p place) (place, bool) {
	l := &o.leaves[p.at]
	if p.i+1 < int(l.n) {
		return place{p.at, p.i + 1}, true
	}
	return place{l.next, 0}, l.next != None
}

// before is the place before p; false at the beginning.
func (o *order) before(p place) (place, bool) {
	if p.i > 0 {
		return place{p.at, p.i - 1}, true
	}
	prev := o.leaves[p.at].prev
	if prev == None {
		return p, false
	}
	return place{prev, int(o.leaves[prev].n) - 1}, true
}

// last is the place of the last fragment.
func (o *order) last() place {
	at := int32(0)
	for o.leaves[at].next != None {
		at = o.leaves[at].next
	}
	return place{at, int(o.leaves[at].n) - 1}
}

// insert puts a fragment behind p and returns its place.
func (o *order) insert(p place, id ID, e Entry) place {
	p.i++
	if o.leaves[p.at].n == leafSize {
		p = o.divide(p)
	}
	l := &o.leaves[p.at]
	copy(l.ids[p.i+1:], l.ids[p.i:l.n])
	copy(l.entries[p.i+1:], l.entries[p.i:l.n+1])
	l.n++
	l.set(p.i, id, e)
	o.leafOf[id], o.hints[id] = p.at, uint8(p.i)
	o.begins(p)
	return p
}

// begins updates the end of the previous leaf from the first fragment of this one.
func (o *order) begins(p place) {
	if p.i == 0 {
		l := &o.leaves[p.at]
		before := &o.leaves[l.prev]
		before.entries[before.n].Offset = l.entries[0].Offset
	}
}

// divide makes room in a full leaf and returns the new position of its place p. The last leaf stays full: a table fills from its beginning.
func (o *order) divide(p place) place {
	half := leafSize / 2
	if p.i == leafSize && o.leaves[p.at].next == None {
		half = leafSize
	}
	behind := o.leaf(p.at)
	o.move(p.at, behind, half)
	if p.i > half || half == leafSize {
		return place{behind, p.i - half}
	}
	return p
}

// leaf links an empty leaf behind another one.
func (o *order) leaf(before int32) int32 {
	at := int32(len(o.leaves))
	if n := len(o.vacant); n > 0 {
		at, o.vacant = o.vacant[n-1], o.vacant[:n-1]
	} else {
		o.leaves = append(o.leaves, leaf{})
	}
	b := &o.leaves[before]
	l := &o.leaves[at]
	l.n, l.prev, l.next = 0, before, b.next
	if l.next != None {
		o.leaves[l.next].prev = at
	}
	b.next = at
	return at
}

// move appends the fragments of one leaf, from index i on, to another one, which then has the end of the first.
func (o *order) move(from, to int32, i int) {
	a, b := &o.leaves[from], &o.leaves[to]
	for _, id := range a.ids[i:a.n] {
		o.leafOf[id] = to
	}
	copy(b.entries[b.n:], a.entries[i:a.n+1])
	b.n += int32(copy(b.ids[b.n:], a.ids[i:a.n]))
	a.n = int32(i)
}

// remove removes the fragment at p, which is not the first one: its bytes belong to the one before. The caller must tidy the leaf afterwards.
func (o *order) remove(p place) {
	l := &o.leaves[p.at]
	copy(l.ids[p.i:], l.ids[p.i+1:l.n])
	copy(l.entries[p.i:], l.entries[p.i+1:l.n+1])
	l.n--
	o.begins(p)
}

// tidy merges a nearly empty leaf with an adjacent one.
func (o *order) tidy(at int32) {
	l := &o.leaves[at]
	if l.n > leafLow {
		return
	}
	switch next, prev := l.next, l.prev; {
	case l.n == 0:
		o.unlink(at)
	case next != None && l.n+o.leaves[next].n <= leafFull:
		o.move(next, at, 0)
		o.unlink(next)
	case prev != None && l.n+o.leaves[prev].n <= leafFull:
		o.move(at, prev, 0)
		o.unlink(at)
	}
}

func (o *order) unlink(at int32) {
	l := &o.leaves[at]
	o.leaves[l.prev].next = l.next
	if l.next != None {
		o.leaves[l.next].prev = l.prev
	}
	o.vacant = append(o.vacant, at)
}
