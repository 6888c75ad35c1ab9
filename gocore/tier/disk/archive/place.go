package archive

import (
	"fmt"

	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/segment"
)

// place finds room for what a batch brings. Neighbouring ranks go to one file, one behind the other, and files get bytes as equally as that allows.
func (p *Push) place(batch []*task) error {
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
	next := make([]int64, len(p.ranks)) // by rank: where its next room begins
	from := 0
	for file, end := range aggregation.Groups(bytes, len(p.ends)) {
		at, err := p.take(file, bytes[from:end])
		if err != nil {
			return err
		}
		for ; from < end; from++ {
			next[from] = at
			at += bytes[from]
		}
	}
	each(func(rank int, m *move) {
		p.lay(p.ranks[rank].number, m, next[rank])
		next[rank] += m.room.End - m.room.From
	})
	p.refer(batch)
	return nil
}

// take takes room behind the end of a file.
func (p *Push) take(file int, bytes []int64) (at int64, err error) {
	sum := int64(0)
	for _, n := range bytes {
		sum += n
	}
	at = aggregation.Begin(p.ends[file], sum)
	if sum > int64(file+1)*segmentBytes-at {
		return 0, fmt.Errorf("%s: %w", segment.FileName(uint64(file)+1), ErrFull)
	}
	if p.ends[file] = at + sum; sum > 0 {
		p.wrote[file] = true
	}
	return at, nil
}
