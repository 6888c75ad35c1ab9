package schedule

import "slices"

// narrow appends to kept at most width of the reached states that no other one dominates: those that the guide ranks first, in the order of their
// clocks. Of states that differ only by the room in the cache it keeps one: the one with the most transfers, which free room in the smallest pieces. If
// at most width states are undominated, it keeps them all. i is the next checkpoint.
func (p *search) narrow(kept, reached, others []state, i int) []state {
	p.rank(reached, i)
	chosen := p.choose(reached, others)
	slices.Sort(chosen)
	for _, place := range chosen {
		kept = append(kept, reached[p.order[place].index])
	}
	return kept
}

// rank sorts the reached states as the guide ranks them.
func (p *search) rank(reached []state, i int) {
	p.ranks = p.ranks[:0]
	for place, o := range p.order {
		s := &reached[o.index]
		p.ranks = append(p.ranks, ranked{p.worth(s, i), -int64(p.chains[s.flushes].depth), int32(place)})
	}
	sortRanked(p.ranks)
}

// choose returns the places, in p.order, of the states that narrow keeps. It tests the best ranks for dominance first and ends when it has enough
// states, so that most of the others are never tested. Dominance is transitive: the test against all reached states finds the same as the test against
// those that are undominated.
func (p *search) choose(reached, others []state) []int32 {
	p.found, p.chosen = p.found[:0], p.chosen[:0]
	var last *state
	for _, r := range p.ranks {
		s := &reached[p.order[r.index].index]
		if p.beaten(others, s) || p.beatenBefore(reached, r.index) {
			continue
		}
		p.found = append(p.found, r.index)
		if len(p.chosen) < p.width && (last == nil || !alike(s, last)) {
			p.chosen, last = append(p.chosen, r.index), s
		}
		if len(p.chosen) == p.width && len(p.found) > p.width {
			break
		}
	}
	if len(p.found) <= p.width {
		return p.found
	}
	p.cut = true
	return p.chosen
}

// beatenBefore tells whether the reached state at a place in p.order is dominated by one before it.
func (p *search) beatenBefore(reached []state, place int32) bool {
	s := &reached[p.order[place].index]
	for _, o := range p.order[:place] {
		if p.dominates(&reached[o.index], s) {
			return true
		}
	}
	return false
}

func alike(a, b *state) bool {
	return a.time == b.time && a.link == b.link && a.raw == b.raw && a.encoded == b.encoded
}
