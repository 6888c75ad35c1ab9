package schedule

import (
	"cmp"
	"slices"
)

// narrow keeps the width states that the guide ranks first, in the order of their clocks. Of states that it ranks alike it keeps one: the one whose
// cache is emptier when half of its backlog has been carried. i is the next checkpoint.
func (p *search) narrow(kept []state, i int) []state {
	p.cut = true
	p.order = p.order[:0]
	for k := range kept {
		s := &kept[k]
		p.order = append(p.order, ranked{p.worth(s, i), p.used(s, s.time+(s.link-s.time)/2), int32(k)})
	}
	slices.SortFunc(p.order, compareRanked)
	taken := 0
	for k, o := range p.order {
		if k > 0 && p.alike(&kept[o.index], &kept[p.order[max(taken-1, 0)].index]) {
			continue
		}
		if p.order[taken] = o; taken+1 == p.width {
			taken++
			break
		}
		taken++
	}
	p.order = p.order[:taken]
	slices.SortFunc(p.order, func(a, b ranked) int { return cmp.Compare(a.index, b.index) })
	for k, o := range p.order {
		kept[k] = kept[o.index]
	}
	return kept[:taken]
}

func (p *search) alike(a, b *state) bool {
	return a.time == b.time && a.link == b.link && a.raw == b.raw && a.encoded == b.encoded
}
