package fragment

// PlaceFrom is Place at one offset inside a gap. It also returns the gap that is left behind the fragment, or None.
func (t *Table[O]) PlaceFrom(gap ID, offset, size int64, owner O) (id, behind ID) {
	t.binOut(gap)
	p := t.order.find(gap)
	if before := offset - t.rows[gap].Offset; before > 0 {
		rest := t.split(p, before)
		t.binIn(gap)
		p, gap = rest, t.order.id(rest)
	}
	behind = None
	if t.rows[gap].Size > size {
		rest := t.order.id(t.split(p, size))
		t.binIn(rest)
		behind = rest
	}
	t.odd |= offset | size
	f := &t.rows[gap]
	f.Owner, f.Class = owner, Held
	f.ETA, f.Expected = 0, Unexpected
	t.used += size
	t.count++
	*t.order.entry(t.order.find(gap)) = t.entry(f)
	return gap, behind
}

// Cut makes a part of a fragment, which is no gap, a fragment of its own. The part before keeps the ID. The part behind gets a new one, or None if it
// is empty. The rows differ only in offset and size.
func (t *Table[O]) Cut(id ID, offset, size int64) (part, behind ID) {
	part, behind = id, None
	if before := offset - t.rows[id].Offset; before > 0 {
		part = t.part(id, before)
	}
	if t.rows[part].Size > size {
		behind = t.part(part, size)
	}
	t.odd |= offset | size
	return part, behind
}

// part shortens a fragment to size bytes; the rest becomes a fragment with the same row.
func (t *Table[O]) part(id ID, size int64) ID {
	p := t.order.find(id)
	row := t.rows[id]
	row.Offset, row.Size = row.Offset+size, row.Size-size
	t.rows[id].Size = size
	t.count++
	rest := t.row(row)
	t.order.insert(p, rest, t.entry(&row))
	return rest
}
