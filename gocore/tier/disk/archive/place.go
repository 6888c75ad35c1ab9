package archive

import (
	"cmp"
	"fmt"

	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// place finds room for what a batch brings. Neighbouring ranks go to one file, one behind the other, and files get bytes as equally as that allows. nodes are those of the
// ranks, if they write themselves; nil: one process does.
func (p *Push) place(batch []*task, nodes []int) error {
	bytes := make([]int64, len(p.ranks))
	each := func(f func(rank int, m *move)) {
		for _, t := range batch {
			for k, x := range t.parts {
				for i := range x.news {
					f(t.ranks[k], &x.news[i])
				}
			}
		}
	}
	each(func(rank int, m *move) { bytes[rank] += m.room.End - m.room.From })
	var next []int64 // by rank: where its next room begins
	for file, end := range aggregation.Groups(bytes, len(p.ends)) {
		from := len(next)
		var of []int
		if nodes != nil {
			of = nodes[from:end]
		}
		begins, err := p.take(file, bytes[from:end], of)
		if err != nil {
			return err
		}
		next = append(next, begins...)
	}
	each(func(rank int, m *move) {
		p.lay(p.ranks[rank].number, m, next[rank])
		next[rank] += m.room.End - m.room.From
	})
	p.refer(batch)
	return nil
}

// take takes room behind the end of a file, for several ranks, and returns where that of each begins.
func (p *Push) take(file int, bytes []int64, nodes []int) (begins []int64, err error) {
	start := int64(file)*segmentBytes - p.to.InFile(catalog.Extent{}) // where the file would begin in the space: stripes are counted from there
	begins, end := aggregation.Lay(p.ends[file]-start, bytes, nodes, cmp.Or(p.o.Stripe, aggregation.Stripe))
	for i := range begins {
		begins[i] += start
		if bytes[i] > 0 {
			p.wrote[file] = true
		}
	}
	if end += start; end > int64(file+1)*segmentBytes {
		return nil, fmt.Errorf("%s: %w", segment.FileName(uint64(file)+1), ErrFull)
	}
	p.ends[file] = end
	return begins, nil
}
