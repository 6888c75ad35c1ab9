package dedup

import (
	"cmp"
	"slices"

	"velocpy/gocore/reduction/difference"
)

// consolidate joins leaves to subtrees: first occurrences of all regions, then shifted duplicates, which may lie in subtrees of the former.
func (w *work) consolidate() error {
	for i := range w.parts {
		p := &w.parts[i]
		p.raiseFirsts(func(level int, f first) {
			w.local.Insert(p.tree.Level(level)[f.index], w.place(f.offset, len(p.node(level, f.index))))
			for len(w.joined) < level {
				w.joined = append(w.joined, nil)
			}
			w.joined[level-1] = append(w.joined[level-1], joined{p, f})
		}, func(level int, f first) {
			w.firsts = append(w.firsts, difference.Entry{Position: p.position + uint64(f.index)<<level, Extent: uint32(level)})
		})
	}
	for i := range w.parts {
		if err := w.raiseShifts(&w.parts[i]); err != nil {
			return err
		}
	}
	slices.SortFunc(w.firsts, func(a, b difference.Entry) int { return cmp.Compare(a.Position, b.Position) })
	slices.SortFunc(w.shifted, func(a, b difference.Shift) int { return cmp.Compare(a.Position, b.Position) })
	return nil
}

// sibling says what a node of a wave has beside it.
type sibling uint8

const (
	none  sibling = iota // its parent has no other child
	same                 // the next node of the wave
	other                // a node that is not of the wave
)

// beside returns the sibling of a node, given the next node of the wave: ascending, so that a right child without its left one has another sibling.
func beside(index, count, next int) sibling {
	switch {
	case index%2 == 0 && index+1 == count:
		return none
	case index%2 == 0 && index+1 == next:
		return same
	}
	return other
}

// raiseFirsts visits the nodes with two children that are first occurrences, by level, and where first occurrences do not go on to a parent.
func (p *part) raiseFirsts(joined, stopped func(level int, f first)) {
	wave := slices.Clone(p.firsts)
	for level := 0; len(wave) > 0; level++ {
		count := len(p.tree.Level(level))
		up := wave[:0]
		for i := 0; i < len(wave); i++ {
			f := wave[i]
			next := -1
			if i+1 < len(wave) {
				next = wave[i+1].index
			}
			kind := beside(f.index, count, next)
			if count == 1 || kind == other {
				stopped(level, f)
				continue
			}
			f.index /= 2
			if kind == same {
				i++
				joined(level+1, f)
			}
			up = append(up, f)
		}
		wave = up
	}
}

// recordFirsts offers the first occurrences to the record: their leaves by position, and then their nodes, level by level.
func (w *work) recordFirsts() {
	r := w.lineage.record
	room := r.Cap() - r.Len()
	for i := range w.parts {
		p := &w.parts[i]
		n := min(room, len(p.firsts))
		room -= n
		for _, f := range p.firsts[:n] {
			w.offer(p, 0, f)
		}
	}
	for i, nodes := range w.joined {
		if r.Len()+len(nodes) > r.Cap() {
			return
		}
		for _, n := range nodes {
			w.offer(n.part, i+1, n.first)
		}
	}
}

// offer adds a node to the record unless that has its digest.
func (w *work) offer(p *part, level int, f first) {
	w.lineage.record.Insert(p.tree.Level(level)[f.index], w.place(f.offset, len(p.node(level, f.index))))
}

// raiseShifts makes entries of the largest subtrees of shifted duplicates that were stored as a subtree.
func (w *work) raiseShifts(p *part) error {
	wave := slices.Clone(p.shifts)
	for level := 0; len(wave) > 0; level++ {
		count := len(p.tree.Level(level))
		up := wave[:0]
		for i := 0; i < len(wave); i++ {
			s := wave[i]
			next := -1
			if i+1 < len(wave) {
				next = wave[i+1].index
			}
			kind := beside(s.index, count, next)
			if count > 1 && kind == none {
				up = append(up, shift{s.index / 2, s.place})
				continue
			}
			if count > 1 && kind == same {
				parent := s.index / 2
				place, ok, err := w.find(p.tree.Level(level + 1)[parent], p.node(level+1, parent))
				if err != nil {
					return err
				}
				i++
				if ok {
					up = append(up, shift{parent, place})
					continue
				}
				w.addShift(p, level, s, uint32(level))
				s = wave[i]
			}
			w.addShift(p, level, s, uint32(level))
		}
		wave = up
	}
	return nil
}
