package fragment

// A buffer that shrinks keeps the fragments behind its new end until the owner frees them. Until then there are gaps behind the capacity, too. They
// are never found: they are in no list, none crosses the capacity, and none is the last fragment.

// Reach is where the buffer's memory may end: at the capacity, or at the end of the last fragment behind it.
func (t *Table[O]) Reach() int64 { return t.end }

// Behind calls f for the fragments that end behind the capacity, in address order, until f returns false. f may Update them.
func (t *Table[O]) Behind(f func(ID) bool) {
	t.from(t.capacity+1, func(id ID) bool { return t.rows[id].Class == Gap || f(id) })
}

// Resize changes the capacity of the buffer and returns the change in bytes of gaps. Fragments stay where they are. O(leaves, and fragments behind
// the old or the new capacity).
func (t *Table[O]) Resize(capacity int64) (gaps int64) {
	if capacity = max(capacity, 0); capacity == t.capacity {
		return 0
	}
	first := min(capacity, t.capacity)
	if capacity > t.end {
		t.extend(capacity)
	}
	var all []ID
	t.from(first, func(id ID) bool {
		all = append(all, id)
		return true
	})
	for _, id := range all {
		if f := &t.rows[id]; f.Class == Gap && f.Offset < t.capacity {
			t.binOut(id)
			gaps -= f.Size
		}
	}
	t.capacity = capacity
	for _, id := range t.merge(all) {
		f := &t.rows[id]
		if f.Class != Gap || f.Offset >= capacity {
			continue
		}
		if f.Offset+f.Size > capacity {
			t.cutAtCapacity(id)
			f = &t.rows[id]
		}
		t.binIn(id)
		gaps += f.Size
	}
	if len(t.order.leaves) > 0 {
		t.trim(t.order.last())
	}
	return gaps
}

// extend adds a gap that is in no list behind the last fragment.
func (t *Table[O]) extend(to int64) {
	gap := Fragment[O]{Offset: t.end, Size: to - t.end, Class: Gap, Expected: Unexpected}
	t.odd |= t.end
	t.end = to
	id := t.row(gap)
	o := &t.order
	if len(o.leaves) == 0 {
		o.begin(id, t.entry(&gap), to)
		return
	}
	p := o.insert(o.last(), id, t.entry(&gap))
	o.leaves[p.at].entries[p.i+1].Offset = to
}

// from calls f for the fragments that end at an offset or behind it, in address order, until f returns false.
func (t *Table[O]) from(offset int64, f func(ID) bool) {
	o := &t.order
	if len(o.leaves) == 0 || offset > t.end {
		return
	}
	at := o.last().at
	for at != 0 && o.leaves[at].entries[0].Offset >= offset {
		at = o.leaves[at].prev
	}
	for ; at != None; at = o.leaves[at].next {
		l := &o.leaves[at]
		for i, id := range l.ids[:l.n] {
			if l.entries[i+1].Offset >= offset && !f(id) {
				return
			}
		}
	}
}

// merge joins neighbouring gaps, none of which is in a list, and returns the remaining fragments.
func (t *Table[O]) merge(ids []ID) []ID {
	kept := ids[:0]
	for _, id := range ids {
		if n := len(kept); n > 0 && t.rows[id].Class == Gap && t.rows[kept[n-1]].Class == Gap {
			p := t.order.find(id)
			t.join(kept[n-1], p)
			t.order.tidy(p.at)
			continue
		}
		kept = append(kept, id)
	}
	return kept
}

// cutAtCapacity splits a gap that is in no list at the capacity.
func (t *Table[O]) cutAtCapacity(gap ID) (behind ID) {
	t.odd |= t.capacity
	return t.order.id(t.split(t.order.find(gap), t.capacity-t.rows[gap].Offset))
}

// freeBehind removes a fragment that ends behind the capacity and whose row is already a gap's. It returns the gap that is left before the capacity.
func (t *Table[O]) freeBehind(id ID) ID {
	left := None
	if t.rows[id].Offset < t.capacity {
		left, id = id, t.cutAtCapacity(id)
	}
	o := &t.order
	if q, ok := o.behind(o.find(id)); ok && o.entry(q).Class == Gap {
		t.join(id, q)
		o.tidy(q.at)
	}
	p := o.find(id)
	if q, ok := o.before(p); ok && o.entry(q).Class == Gap && o.entry(q).Offset >= t.capacity {
		id = o.id(q)
		t.join(id, p)
		o.tidy(p.at)
	}
	t.trim(o.find(id))
	if left == None {
		return None
	}
	p = o.find(left)
	if q, ok := o.before(p); ok && o.entry(q).Class == Gap {
		before := o.id(q)
		t.binOut(before)
		t.join(before, p)
		o.tidy(p.at)
		left = before
	}
	t.binIn(left)
	return left
}

// trim removes the fragment at p if it is the last one and a gap behind the capacity.
func (t *Table[O]) trim(p place) {
	o := &t.order
	id := o.id(p)
	f := &t.rows[id]
	if _, more := o.behind(p); more || f.Class != Gap || f.Offset < t.capacity {
		return
	}
	if t.end = f.Offset; t.end == 0 {
		t.rows, t.vacant, t.order = nil, nil, order{}
		return
	}
	l := &o.leaves[p.at]
	l.entries[l.n].Offset = t.end
	o.remove(p)
	o.tidy(p.at)
	t.vacant = append(t.vacant, id)
}
