package hazard

import (
	"math/rand/v2"
	"slices"
)

// fewReaders is how many readers a segment may have before passed ones are searched.
const fewReaders = 8

func newSegment(from, to int64) *segment {
	return &segment{from: from, to: to, look: fewReaders, priority: rand.Uint64()}
}

// read adds a reader. Searching for passed ones whenever their number has doubled costs each reader O(1).
func (s *segment) read(n *note) {
	if len(s.readers) >= s.look {
		s.clean()
		s.look = max(fewReaders, 2*len(s.readers))
	}
	s.readers = append(s.readers, n.use())
}

// clean removes events that have passed.
func (s *segment) clean() {
	s.writer = s.writer.unlessPassed()
	s.readers = slices.DeleteFunc(s.readers, func(n *note) bool { return n.unlessPassed() == nil })
	s.swept = 0
}

// sweep does the same for as many events as the allowance permits, and returns whether it has checked all.
func (s *segment) sweep(left *allowance) (through bool) {
	if s.swept == 0 {
		left.spend(s.writer)
		s.writer = s.writer.unlessPassed()
	}
	for !left.spent() && s.swept < len(s.readers) {
		left.spend(s.readers[s.swept])
		if s.readers[s.swept].unlessPassed() != nil {
			s.swept++
			continue
		}
		last := len(s.readers) - 1
		s.readers[s.swept], s.readers[last] = s.readers[last], nil
		s.readers = s.readers[:last]
	}
	if s.swept < len(s.readers) {
		return false
	}
	s.swept = 0
	return true
}

func (s *segment) forget() {
	s.writer.release()
	for _, n := range s.readers {
		n.release()
	}
	s.writer, s.readers = nil, nil
}

// behind is the part of a segment from at on; s keeps the part before.
func (s *segment) behind(at int64) *segment {
	n := newSegment(at, s.to)
	s.to = at
	n.look = s.look
	if s.writer != nil {
		n.writer = s.writer.use()
	}
	n.readers = slices.Clone(s.readers)
	for _, r := range n.readers {
		r.use()
	}
	return n
}

// part splits a tree into the segments that begin before at and the others.
func part(s *segment, at int64) (before, after *segment) {
	if s == nil {
		return nil, nil
	}
	if s.from < at {
		s.right, after = part(s.right, at)
		return s, after
	}
	before, s.left = part(s.left, at)
	return before, s
}

// join merges two trees; all of a is before all of b.
func join(a, b *segment) *segment {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		a.right = join(a.right, b)
		return a
	}
	b.left = join(a, b.left)
	return b
}

// crack makes at a border between segments, if it is inside one.
func (s *segment) crack(at int64) *segment {
	before, after := part(s, at)
	if last := before.last(); last != nil && last.to > at {
		after = join(last.behind(at), after)
	}
	return join(before, after)
}

func (s *segment) last() *segment {
	for s != nil && s.right != nil {
		s = s.right
	}
	return s
}

// next is the first segment that ends after at.
func (s *segment) next(at int64) (found *segment) {
	for s != nil {
		if s.to > at {
			found, s = s, s.left
		} else {
			s = s.right
		}
	}
	return found
}

// meet visits, in order, the segments that overlap with [from, to).
func (s *segment) meet(from, to int64, visit func(*segment)) {
	if s == nil || from >= to {
		return
	}
	if s.from > from { // the segments to the left end at s.from or before
		s.left.meet(from, to, visit)
	}
	if s.from < to && s.to > from {
		visit(s)
	}
	if s.to < to {
		s.right.meet(from, to, visit)
	}
}

// each visits all segments, in order.
func (s *segment) each(visit func(*segment)) {
	if s != nil {
		s.left.each(visit)
		visit(s)
		s.right.each(visit)
	}
}

// fill returns a tree that covers all of [from, to), the range of s, with new segments in its gaps.
func (s *segment) fill(from, to int64) *segment {
	var gaps [][2]int64
	s.each(func(x *segment) {
		if x.from > from {
			gaps = append(gaps, [2]int64{from, x.from})
		}
		from = x.to
	})
	if from < to {
		gaps = append(gaps, [2]int64{from, to})
	}
	for _, g := range gaps {
		before, after := part(s, g[0])
		s = join(join(before, newSegment(g[0], g[1])), after)
	}
	return s
}
