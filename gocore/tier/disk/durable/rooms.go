package durable

import "github.com/tidwall/btree"

// places are disjoint ranges of the space.
type places struct{ ends btree.Map[int64, int64] } // end -> begin

func (p *places) add(r run) { p.ends.Set(r.end, r.from) }

// covers tells whether one of the ranges overlaps r.
func (p *places) covers(r run) (lies bool) {
	p.ends.Ascend(r.from+1, func(_, from int64) bool {
		lies = from < r.end
		return false
	})
	return lies
}
