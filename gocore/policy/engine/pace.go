package engine

import (
	"math"

	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
)

// pace is how fast the application goes through the restore order of a history. It makes distances of several histories comparable in time. Ten
// restores of a history that restores every millisecond are nearer than two of one that restores every second.
type pace struct {
	begun    bool    // there was a restore
	guessed  bool    // no hint expected the latest one
	at       int64   // time of the latest restore that moved the order
	place    int64   // place of the order after it
	interval float64 // ns, moving average; 0: not known
}

const (
	paceWeight = 0.2
	// paceStep caps one interval at that many times the average, so that an application that has paused goes on as before.
	paceStep = 4
	// alike is the weight of an interval of a history whose pace is not known, and of the fastest history. Other intervals count in proportion, up to
	// evict.LongestInterval.
	alike = 16
)

// restored records that the order has reached a place. Intervals that Advance has announced are part of the way there. A guess is remade at times and
// then numbers its places anew, so each guessed restore counts as one interval.
func (p *pace) restored(now, place int64, guessed bool) {
	n := place - p.place
	if guessed {
		n = 1
	}
	same := p.begun && guessed == p.guessed
	if same && n == 0 {
		return
	}
	if same && n > 0 {
		each := float64(max(now-p.at, 1)) / float64(n)
		if p.interval == 0 {
			p.interval = each
		}
		p.interval += paceWeight * (min(each, paceStep*p.interval) - p.interval)
	}
	p.begun, p.guessed, p.at, p.place = true, guessed, now, place
}

// now is the interval as far as it is known. It is at least the time since the latest restore.
func (p *pace) now(now int64) float64 {
	if p.interval == 0 {
		return 0
	}
	return max(p.interval, float64(now-p.at))
}

// compare updates the weights of the histories' intervals.
func (od *orders) compare(now int64) {
	if !od.paced {
		return
	}
	od.paced = false
	shortest := math.Inf(1)
	for _, h := range od.histories {
		if i := h.pace.now(now); i > 0 && (h.order.Len() > 0 || h.order.Guessing()) {
			shortest = min(shortest, i)
		}
	}
	for lane, h := range od.histories {
		od.intervals[lane] = alike
		if i := h.pace.now(now); i > shortest {
			od.intervals[lane] = int64(min(math.Round(alike*i/shortest), float64(evict.LongestInterval)))
		}
	}
}

// distance is how far ahead the restore of an expected checkpoint is.
func (od *orders) distance(r *Record) int64 {
	lane := r.Hist.lane
	return evict.Distance(r.place-od.places[lane], od.intervals[lane])
}

// later tells whether a is needed later than b, an object of another history: a is not expected, or its restore is farther ahead.
func (od *orders) later(a, b *Object) bool {
	x, y := a.next() != fragment.Unexpected, b.next() != fragment.Unexpected
	switch {
	case x != y:
		return !x
	case !x:
		return a.touched < b.touched
	}
	return od.distance(a.first()) > od.distance(b.first())
}
