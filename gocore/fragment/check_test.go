package fragment

import "fmt"

// Check tells what is wrong with the table, or nil: fragments tile the buffer, no two gaps are neighbours, the sums are right, and
// every gap is in the one list that its size asks for.
func (t *Table[O]) Check() error {
	var used, at int64
	count := 0
	binned := map[ID]bool{}
	seen := map[ID]bool{}
	prev := None
	for id := t.first; id != None; id = t.next[id] {
		f := &t.rows[id]
		switch {
		case seen[id]:
			return fmt.Errorf("fragment %d comes twice", id)
		case f.Offset != at:
			return fmt.Errorf("fragment %d begins at %d, the one before ends at %d", id, f.Offset, at)
		case f.Size <= 0:
			return fmt.Errorf("fragment %d has %d bytes", id, f.Size)
		case t.prev[id] != prev:
			return fmt.Errorf("fragment %d thinks %d lies before it, not %d", id, t.prev[id], prev)
		case f.Class == Gap && prev != None && t.rows[prev].Class == Gap:
			return fmt.Errorf("gaps %d and %d are neighbours", prev, id)
		}
		seen[id] = true
		if f.Class == Gap {
			binned[id] = true
		} else {
			used += f.Size
			count++
		}
		at, prev = at+f.Size, id
	}
	if at != t.capacity || used != t.used || count != t.count {
		return fmt.Errorf("tiles %d of %d bytes, %d used (says %d) in %d fragments (says %d)", at, t.capacity, used, t.used, count, t.count)
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

// checkOrder follows the leaves: each is linked both ways, not empty and the one that its fragments name, their order is the fragments', and none is lost.
func (t *Table[O]) checkOrder() error {
	o := &t.order
	seen, prev, last := len(o.vacant), None, None
	for at := int32(0); len(o.leaves) > 0 && at != None; at = o.leaves[at].next {
		l := &o.leaves[at]
		if l.n <= 0 || l.n > leafSize || l.prev != prev {
			return fmt.Errorf("leaf %d: %d fragments, behind %d, not %d", at, l.n, l.prev, prev)
		}
		if prev != None && l.n <= leafLow && o.leaves[prev].n <= leafLow {
			return fmt.Errorf("leaves %d and %d hold next to nothing", prev, at)
		}
		for i, id := range l.ids[:l.n] {
			if o.leafOf[id] != at || t.prev[id] != last {
				return fmt.Errorf("fragment %d, place %d of leaf %d, lies behind %d and says leaf %d", id, i, at, last, o.leafOf[id])
			}
			last = id
		}
		prev = at
		seen++
	}
	if last != None && t.next[last] != None {
		return fmt.Errorf("the leaves end with %d", last)
	}
	if seen != len(o.leaves) {
		return fmt.Errorf("%d leaves of %d are lost", len(o.leaves)-seen, len(o.leaves))
	}
	return nil
}

func (t *Table[O]) checkBins(gaps map[ID]bool) error {
	b := &t.gaps
	for i := range b.head {
		if (b.head[i] != None) != (b.full[i/64]&(1<<(i%64)) != 0) {
			return fmt.Errorf("list %d: head %d, but the bit map says otherwise", i, b.head[i])
		}
		before := None
		for id := b.head[i]; id != None; id = b.next[id] {
			if !gaps[id] {
				return fmt.Errorf("list %d holds %d, which is no gap or was there already", i, id)
			}
			delete(gaps, id)
			if b.prev[id] != before || binOf(t.rows[id].Size) != i {
				return fmt.Errorf("list %d: gap %d of %d bytes behind %d", i, id, t.rows[id].Size, b.prev[id])
			}
			before = id
		}
	}
	if len(gaps) > 0 {
		return fmt.Errorf("gaps in no list: %v", gaps)
	}
	return nil
}
