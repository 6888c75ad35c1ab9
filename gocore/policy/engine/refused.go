package engine

import (
	"math"
	"slices"
)

// A flush that finds no room below is refused until room may have appeared there. Flushes that need at least as much are refused with it. Flushes
// that need less go on.

// need is the room that a copy takes in a tier.
type need struct{ size, align int64 }

func (tr *tier) need(o *Object) need { return need{tr.extent(o), tr.align(o)} }

// within tells whether every place that suits o also suits n.
func (n need) within(o need) bool { return n.size <= o.size && o.align%n.align == 0 }

// boundless is larger than every need.
var boundless = need{size: math.MaxInt64}

// common is a need within both.
func (n need) common(o need) need {
	for o.align != 0 {
		n.align, o.align = o.align, n.align%o.align
	}
	return need{min(n.size, o.size), n.align}
}

// refused are the needs that could not be met; none of them is within another.
type refused []need

func (rs refused) covers(n need) bool {
	return slices.ContainsFunc(rs, func(r need) bool { return r.within(n) })
}

func (rs *refused) add(n need) {
	if !rs.covers(n) {
		*rs = append(slices.DeleteFunc(*rs, n.within), n)
	}
}

// unknown is more than any tier has.
const unknown = math.MaxInt64

// retryRefused retries refused flushes that need at most n.
func (l *link) retryRefused(n need) {
	l.refused = slices.DeleteFunc(l.refused, func(r need) bool { return r.within(n) })
	l.passable = unknown
}

// refuses tells whether the flush of o would find no room below.
func (l *link) refuses(s *state, o *Object) bool {
	return len(l.refused) > 0 && l.refused.covers(s.tiers[l.lower].need(o))
}

// refusesAll tells that no dirty object would find room below. It may be false although that is so.
func (l *link) refusesAll() bool { return l.refused.covers(l.dirty.least) }

// recount recomputes how many of the upper tier's dirty bytes could be flushed.
func (fs *flushes) recount(l *link) {
	l.dirty.least, l.passable = boundless, 0
	l.dirty.each(func(o *Object) {
		n := fs.tiers[l.lower].need(o)
		l.dirty.least = l.dirty.least.common(n)
		if !l.refused.covers(n) {
			l.passable += fs.tiers[l.upper].extent(o)
		}
	})
}

// refuse records that the lower tier has no room for o.
func (fs *flushes) refuse(now int64, l *link, o *Object) {
	lower := fs.tiers[l.lower]
	l.refused.add(lower.need(o))
	if fs.Below(l.lower) < 0 { // no copy leaves it for a lower tier: gaps are all the room there is
		l.refused.add(need{lower.table.NoGapOver() + 1, 1})
	}
	for _, q := range []*fifo[*Object]{&l.urgent, &l.normal} {
		q.without(func(queued *Object) bool {
			barred := l.refuses(fs.state, queued)
			if barred && fs.unqueue(now, l, queued) {
				fs.copies.updateCopy(now, queued, l.upper)
				fs.objects.wakeAll(now, queued)
			}
			return barred
		})
	}
	if l.queued == 0 {
		l.backlog = now
	}
	fs.copies.roomAppeared(l.upper) // flushes from above may have waited for the refused ones
	fs.rooms.serve(now, l.upper)
}
