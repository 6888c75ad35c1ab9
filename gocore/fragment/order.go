package fragment

// The fragments' order lies in leaves, arrays of a few dozen IDs linked with each other, so that a walk runs through memory (it need not
// load one row to learn of the next one) and a fragment comes and goes at the cost of moving a few IDs, however many there are.
const (
	leafSize = 61               // with its links a leaf fills four cache lines
	leafLow  = leafSize / 4     // a leaf with no more is merged with one beside it ...
	leafFull = leafSize * 3 / 4 // ... if the two do not fill it more than this: it must not overflow again soon
)

type leaf struct {
	ids        [leafSize]ID
	n          int32 // never 0
	next, prev int32 // leaves, or None
}

// order is the sequence of all rows in use. Its first leaf is always number 0: the fragment at offset 0 is never absorbed.
type order struct {
	leaves []leaf
	leafOf []int32 // by row
	vacant []int32
}

// begin makes the sequence of one fragment.
func (o *order) begin(id ID) {
	o.leaves = append(o.leaves, leaf{n: 1, next: None, prev: None})
	o.leaves[0].ids[0] = id
	o.leafOf[id] = 0
}

// find gives the leaf of id and its place there.
func (o *order) find(id ID) (*leaf, int) {
	l := &o.leaves[o.leafOf[id]]
	for i, x := range l.ids[:l.n] {
		if x == id {
			return l, i
		}
	}
	panic("fragment: an ID of no fragment")
}

// insert puts id behind after.
func (o *order) insert(after, id ID) {
	l, i := o.find(after)
	at := o.leafOf[after]
	i++
	if l.n == leafSize {
		at, i = o.divide(at, i)
		l = &o.leaves[at]
	}
	copy(l.ids[i+1:l.n+1], l.ids[i:l.n])
	l.ids[i] = id
	l.n++
	o.leafOf[id] = at
}

// divide makes room in a full leaf and says where its place i has gone. The last leaf stays full: a table fills from its beginning.
func (o *order) divide(at int32, i int) (int32, int) {
	half := leafSize / 2
	if i == leafSize && o.leaves[at].next == None {
		half = leafSize
	}
	behind := o.leaf(at)
	o.move(at, behind, half)
	if i > half || half == leafSize {
		return behind, i - half
	}
	return at, i
}

// leaf links an empty leaf behind another.
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

// move appends the IDs of one leaf from place i on to another.
func (o *order) move(from, to int32, i int) {
	a, b := &o.leaves[from], &o.leaves[to]
	for _, id := range a.ids[i:a.n] {
		b.ids[b.n] = id
		b.n++
		o.leafOf[id] = to
	}
	a.n = int32(i)
}

// remove takes id out; it is not the first fragment.
func (o *order) remove(id ID) {
	at := o.leafOf[id]
	l, i := o.find(id)
	copy(l.ids[i:], l.ids[i+1:l.n])
	l.n--
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
