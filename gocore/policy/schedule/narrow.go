package schedule

import "slices"

// narrow keeps at most width states, those that the guide ranks first, in the order of their clocks. Of states that differ only by the room in the cache
// it keeps one: the one with the most transfers, which free room in the smallest pieces. i is the next checkpoint.
func (p *search) narrow(kept []state, i int) []state {
	p.cut = true
	p.order = p.order[:0]
	for k := range kept {
		s := &kept[k]
		p.order = append(p.order, ranked{p.worth(s, i), -int64(p.chains[s.flushes].depth), int32(k)})
	}
	slices.SortFunc(p.order, compareRanked)
	taken := p.order[:0]
	for _, o := range p.order {
		if n := len(taken); n == p.width {
			break
		} else if n == 0 || !alike(&kept[o.index], &kept[taken[n-1].index]) {
			taken = append(taken, o)
		}
	}
	slices.SortFunc(taken, func(a, b ranked) int { return int(a.index - b.index) })
	for k, o := range taken {
		kept[k] = kept[o.index]
	}
	return kept[:len(taken)]
}

func alike(a, b *state) bool {
	return a.time == b.time && a.link == b.link && a.raw == b.raw && a.encoded == b.encoded
}
