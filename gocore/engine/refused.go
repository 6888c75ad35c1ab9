package engine

import (
	"math"
	"slices"
)

// A flush that finds no room below is not under way any more until something changes there, and neither are those that need no less. What needs less
// room goes on.

// need is the room that a copy takes in a tier.
type need struct{ size, align int64 }

func (tr *tier) need(r *Record) need { return need{tr.extent(r), tr.align(r)} }

// within tells whether every place that would do for o would do for n.
func (n need) within(o need) bool { return n.size <= o.size && o.align%n.align == 0 }

// anything is what every need is within.
var anything = need{size: math.MaxInt64}

// common is within both.
func (n need) common(o need) need {
	for o.align != 0 {
		n.align, o.align = o.align, n.align%o.align
	}
	return need{min(n.size, o.size), n.align}
}

// refused are needs that could not be met, none of them within another.
type refused []need

func (rs refused) covers(n need) bool {
	return slices.ContainsFunc(rs, func(r need) bool { return r.within(n) })
}

func (rs *refused) add(n need) {
	*rs = append(slices.DeleteFunc(*rs, n.within), n)
}

// barred tells whether the flush of rec would find no room below.
func (l *link) barred(e *Engine, rec *Record) bool {
	return len(l.refused) > 0 && l.refused.covers(e.tiers[l.lower].need(rec))
}

// shut tells that no flush over the link would find room below; it may be so when it does not say so.
func (l *link) shut() bool { return l.refused.covers(l.dirty.least) }

// refuse notes that the lower tier has no room for rec.
func (e *Engine) refuse(now int64, l *link, rec *Record) {
	l.refused.add(e.tiers[l.lower].need(rec))
	bit := uint8(1) << l.upper
	for _, q := range []*fifo[*Record]{&l.urgent, &l.normal} {
		q.without(func(queued *Record) bool {
			if !l.barred(e, queued) {
				return false
			}
			if queued.queuedOn&bit != 0 && queued.runs&bit == 0 {
				queued.queuedOn &^= bit
				l.queued--
				l.backlog = max(l.backlog-e.flushTime(l, queued), now)
				e.settle(now, queued, l.upper)
				e.wakeWaits(now, queued)
			}
			return true
		})
	}
	e.roomier(l.upper)
	e.serve(now, l.upper)
}
