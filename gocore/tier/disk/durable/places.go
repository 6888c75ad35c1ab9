package durable

import "github.com/tidwall/btree"

// places are ranges of the space that do not overlap.
type places struct{ ends btree.Map[int64, int64] } // ends, and where those begin

func (p *places) add(r run) { p.ends.Set(r.end, r.from) }

// covers tells whether one of them lies in a range, with a part at least.
func (p *places) covers(r run) (lies bool) {
	p.ends.Ascend(r.from+1, func(_, from int64) bool {
		lies = from < r.end
		return false
	})
	return lies
}
