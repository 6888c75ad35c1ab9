package fragment

import "fmt"

// Check returns what is wrong with the table, or nil. Fragments tile the buffer, no two gaps are neighbours, the sums are right. Every gap before the
// capacity is in the one list for its size, and those behind it are in none.
func (t *Table[O]) Check() error {
	var used, at int64
	count := 0
	binned := map[ID]bool{}
	seen := map[ID]bool{}
	prev := None
	for id := t.First(); id != None; id = t.Next(id) {
		f := &t.rows[id]
		switch {
		case seen[id]:
			return fmt.Errorf("fragment %d comes twice", id)
		case f.Offset != at:
			return fmt.Errorf("fragment %d begins at %d, the one before ends at %d", id, f.Offset, at)
		case f.Size <= 0:
			return fmt.Errorf("fragment %d has %d bytes", id, f.Size)
		case t.odd != 0 && f.Offset%(t.odd&-t.odd) != 0 || t.odd == 0 && f.Offset != 0:
			return fmt.Errorf("fragment %d begins at %d, but all are said to be multiples of %d", id, f.Offset, t.odd&-t.odd)
		case f.Class == Gap && f.Offset < t.capacity && f.Offset+f.Size > t.capacity:
			return fmt.Errorf("gap %d, [%d,+%d), crosses the capacity of %d", id, f.Offset, f.Size, t.capacity)
		case f.Class == Gap && prev != None && t.rows[prev].Class == Gap && f.Offset != t.capacity:
			return fmt.Errorf("gaps %d and %d are neighbours", prev, id)
		}
		seen[id] = true
		if f.Class == Gap && f.Offset < t.capacity {
			binned[id] = true
		} else if f.Class != Gap {
			used += f.Size
			count++
		}
		at, prev = at+f.Size, id
	}
	if at != t.end || at < t.capacity || used != t.used || count != t.count {
		return fmt.Errorf("tiles %d of %d bytes and up to %d, %d used (says %d) in %d fragments (says %d)", at, t.capacity, t.end, used, t.used, count, t.count)
	}
	if prev != None && t.rows[prev].Class == Gap && t.rows[prev].Offset >= t.capacity {
		return fmt.Errorf("the last of all is %+v, a gap behind the capacity of %d", t.rows[prev], t.capacity)
	}
	for _, id := range t.vacant {
		if seen[id] {
			return fmt.Errorf("row %d is vacant and in use", id)
		}
		seen[id] = true
	}
	if len(seen) != len(t.rows) {
		return fmt.Errorf("%d rows of %d are lost", len(t.rows)-len(seen), len(t.rows))
	}
	if err := t.checkOrder(); err != nil {
		return err
	}
	return t.checkBins(binned)
}

// checkOrder follows the leaves. Each is linked both ways, not empty, and the leaf of its fragments. It ends where the next one begins, and none is
// lost. Entries agree with their rows.
func (t *Table[O]) checkOrder() error {
	o := &t.order
	seen, prev, end := len(o.vacant), None, int64(0)
	for at := int32(0); len(o.leaves) > 0 && at != None; at = o.leaves[at].next {
		l := &o.leaves[at]
		if l.n <= 0 || l.n > leafSize || l.prev != prev {
			return fmt.Errorf("leaf %d: %d fragments, behind %d, not %d", at, l.n, l.prev, prev)
		}
		if prev != None && l.n <= leafLow && o.leaves[prev].n <= leafLow {
			return fmt.Errorf("leaves %d and %d hold next to nothing", prev, at)
		}
		if l.entries[0].Offset != end {
			return fmt.Errorf("leaf %d begins at %d, the one before ends at %d", at, l.entries[0].Offset, end)
		}
		for i, id := range l.ids[:l.n] {
			f := &t.rows[id]
			if o.leafOf[id] != at || l.entries[i] != t.entry(f) || l.entries[i+1].Offset != f.Offset+f.Size {
				return fmt.Errorf("fragment %d, place %d of leaf %d, says leaf %d; %+v for %+v", id, i, at, o.leafOf[id], l.entries[i], *f)
			}
		}
		prev, end = at, l.entries[l.n].Offset
		seen++
	}
	if end != t.end || seen != len(o.leaves) {
		return fmt.Errorf("%d leaves of %d are lost; they end at %d", len(o.leaves)-seen, len(o.leaves), end)
	}
	return nil
}

func (t *Table[O]) checkBins(gaps map[ID]bool) error {
	largest := int64(0)
	for id := range gaps {
		largest = max(largest, t.rows[id].Size)
	}
	if over := t.NoGapOver(); over < largest || over != largest && len(gaps) <= counted || over > largest+largest>>subBits {
		return fmt.Errorf("no gap is over %d, they say; the largest of %d has %d bytes", over, len(gaps), largest)
	}
	b := &t.gaps
	for i := range b.head {
		if (b.head[i] != None) != (b.full[i/64]&(1<<(i%64)) != 0) {
			return fmt.Errorf("list %d: head %d, but the bit map says otherwise", i, b.head[i])
		}
		before := None
		for id := b.head[i]; id != None; id, _ = t.rows[id].links() {
			if !gaps[id] {
				return fmt.Errorf("list %d holds %d, which is no gap or was there already", i, id)
			}
			delete(gaps, id)
			if _, prev := t.rows[id].links(); prev != before || binOf(t.rows[id].Size) != i {
				return fmt.Errorf("list %d: gap %d of %d bytes behind %d", i, id, t.rows[id].Size, prev)
			}
			before = id
		}
	}
	if len(gaps) > 0 {
		return fmt.Errorf("gaps in no list: %v", gaps)
	}
	return nil
}
