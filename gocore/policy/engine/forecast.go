package engine

import "velocpy/gocore/policy/fragment"

// forecast is what the plans say of the bytes that are still to be captured: those of keys that are expected and have not been written. It is
// trusted during a sweep, as long as one capture after the other was expected. Where captures and restores take turns, or keys are written
// again, what is written may well go before the rest comes.
type forecast struct {
	coming   [MaxTiers]float64 // bytes, by the tier that they will be captured in
	surprise int64             // Engine.count when something last happened that sweeps do not consist of
	planned  bool              // the last capture was expected
	into     int               // the tier of the last capture
	turn     int               // of the histories, whose part is looked at anew
}

// confidence is how many operations in a row have to be part of a sweep. Of a history that has captured nothing for givenUp of them, nothing is
// expected to come any more.
const (
	confidence = 4
	givenUp    = 32
)

// hurry is by how much what is left to do over a link is overrated, as several transfers share its rate and a link that has begun too late is
// waited for. It is more for what is sure to cross it: anything else that goes down too early may be what is needed first.
const (
	hurry     = 2
	hurrySure = 8
)

// sweep is a history's part in the forecast.
type sweep struct {
	top      int // where its checkpoints are captured
	captures float64
	bytes    float64 // of its captures so far
	awaited  int     // its checkpoints that are expected
	coming   float64 // bytes of those that are expected and have not been captured
	last     int64   // Engine.count at the last capture
	mixed    bool    // the plan has been begun before all of it was captured: what comes may find the room of what goes
}

// foresee brings the forecast in line with the plan and the checkpoints of h. It asks no guess: that may cost more than it is worth.
func (e *Engine) foresee(h *History) {
	s, coming := &h.sweep, 0.0
	s.mixed = s.mixed && h.order.Len() > 0
	if s.captures > 0 && h.sweeps() && e.count-s.last <= givenUp {
		coming = float64(max(h.order.Distinct()-s.awaited, 0)) * s.bytes / s.captures
	}
	e.forecast.coming[s.top] += coming - s.coming
	s.coming = coming
}

// sweeps tells whether the plan of h looks like a sweep's: it has not been begun, and restores nothing twice.
func (h *History) sweeps() bool {
	n := h.order.Len()
	return n > 0 && n == h.order.Distinct() && !h.sweep.mixed
}

// swept notes a capture in tier t; fresh: of a key that had no checkpoint.
func (e *Engine) swept(r *Record, t int, fresh bool) {
	s := &r.Hist.sweep
	e.forecast.coming[s.top] -= s.coming
	s.coming, s.top, e.forecast.into = 0, t, t
	s.captures++
	s.bytes += float64(r.Size)
	s.last = e.count
	e.foresee(r.Hist)
	e.forecast.planned = fresh && r.seq != fragment.Unexpected && r.Hist.sweeps()
	if !e.forecast.planned {
		e.forecast.surprise = e.count
	}
	e.forecast.turn = (e.forecast.turn + 1) % len(e.histories)
	e.foresee(e.histories[e.forecast.turn])
}

// begun notes that the plan of h has been begun.
func (e *Engine) begun(h *History) {
	h.sweep.mixed = h.sweep.mixed || h.sweep.coming > 0
	e.foresee(h)
}

// foreseen tells whether the forecast is to be trusted.
func (e *Engine) foreseen() bool { return e.count-e.forecast.surprise >= confidence }

// written tells whether the sweep has written all that was announced.
func (f *forecast) written() bool {
	sum := 0.0
	for _, bytes := range f.coming {
		sum += bytes
	}
	return f.planned && sum < 1
}

// coming is how many bytes are going to come into tier t: what is captured there, and what has no room above.
func (e *Engine) coming(t int) float64 {
	sum := e.forecast.coming[t]
	for _, l := range e.links {
		if l.lower == t {
			above := e.tiers[l.upper]
			sum += max(e.coming(l.upper)-float64(above.ready()), 0) + float64(above.bytes[fragment.Flushing])
		}
	}
	return sum
}

// ready is how many bytes of the tier are empty or evictable, or will be when the flushes that are queued have ended.
func (tr *tier) ready() int64 {
	return tr.bytes[fragment.Gap] + tr.bytes[fragment.Free] + tr.bytes[fragment.Flushing]
}

// late tells whether a flush of rec over l should begin now, as a link that rests would not get done with what has to go down until the last bytes
// come: this link, as fast as bytes come in above it, or, if rec is sure to cross it, any from here on, as fast as they are captured.
func (e *Engine) late(l *link, rec *Record) bool {
	if e.pressed(l, &e.tiers[l.upper].inflow, hurry) {
		return true
	}
	captures := &e.tiers[e.forecast.into].inflow
	for t := l.upper; t < len(e.links); t = e.links[t].lower {
		if e.pressed(e.links[t], captures, hurrySure) && e.outlies(rec, t) {
			return true
		}
	}
	return false
}

// pressed tells whether a link is late with what has to leave its upper tier, when bytes come in like that.
func (e *Engine) pressed(l *link, in *inflow, hurry float64) bool {
	coming := e.coming(l.upper)
	short := coming - float64(e.tiers[l.upper].ready())
	return short > 0 && in.faster(l.down.Rate()*float64(e.cfg.Workers)*coming/(hurry*short))
}

// outlies tells whether more is expected before rec than the tiers down to tier t hold.
func (e *Engine) outlies(rec *Record, t int) bool {
	h := rec.Hist
	if rec.seq == fragment.Unexpected || h.sweep.captures == 0 {
		return false
	}
	room := int64(0)
	for u, tr := range e.tiers[:t+1] {
		if e.uses(rec, u) {
			room += tr.Capacity
		}
	}
	return float64(rec.seq-e.heads[h.lane])*h.sweep.bytes/h.sweep.captures > float64(room)
}
