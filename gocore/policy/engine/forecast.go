package engine

import "velocpy/gocore/policy/fragment"

// forecast is the number of bytes still to be captured according to the plans: keys that are expected and have not been written. The engine trusts it
// during a sweep, as long as every capture was expected. Where captures and restores alternate, or keys are written again, the copies of today may
// well be consumed before the rest comes.
type forecast struct {
	coming   [MaxTiers]float64 // bytes, by the tier that will capture them
	surprise int64             // Engine.count at the last operation that is not part of a sweep
	planned  bool              // the last capture was expected
	into     int               // the tier of the last capture
	turn     int               // index of the history whose part is refreshed next
}

// confidence is how many operations in a row have to be part of a sweep. A history without a capture for givenUp operations is expected to capture
// nothing more.
const (
	confidence = 4
	givenUp    = 32
)

// hurry is the factor by which the remaining work of a link is overestimated. Several transfers share its rate, and a link that has begun too late
// makes callers wait. The factor is larger for copies that are sure to cross the link. Any other copy that is flushed too early may be needed first.
const (
	hurry     = 2
	hurrySure = 8
)

// sweep is a history's part in the forecast.
type sweep struct {
	top      int // the tier that captures its checkpoints
	captures float64
	bytes    float64 // captured so far
	awaited  int     // number of its checkpoints that are expected
	coming   float64 // expected bytes that have not been captured
	last     int64   // Engine.count at the last capture
	mixed    bool    // the plan has begun before all of it was captured: new captures may find the room of consumed checkpoints
}

// foresee updates the forecast from the plan and the checkpoints of h. It does not ask the guess, which may cost more than it is worth.
func (e *Engine) foresee(h *History) {
	s, coming := &h.sweep, 0.0
	s.mixed = s.mixed && h.order.Len() > 0
	if s.captures > 0 && h.sweeps() && e.count-s.last <= givenUp {
		coming = float64(max(h.order.Distinct()-s.awaited, 0)) * s.bytes / s.captures
	}
	e.forecast.coming[s.top] += coming - s.coming
	s.coming = coming
}

// sweeps tells whether the plan of h looks like that of a sweep: it has not begun, and restores no key twice.
func (h *History) sweeps() bool {
	n := h.order.Len()
	return n > 0 && n == h.order.Distinct() && !h.sweep.mixed
}

// swept records a capture in tier t; fresh: its key had no checkpoint.
func (e *Engine) swept(r *Record, t int, fresh bool) {
	s := &r.Hist.sweep
	e.forecast.coming[s.top] -= s.coming
	s.coming, s.top, e.forecast.into = 0, t, t
	s.captures++
	s.bytes += float64(r.capturedBytes(t))
	s.last = e.count
	e.foresee(r.Hist)
	e.forecast.planned = fresh && r.seq != fragment.Unexpected && r.Hist.sweeps()
	if !e.forecast.planned {
		e.forecast.surprise = e.count
	}
	e.forecast.turn = (e.forecast.turn + 1) % len(e.histories)
	e.foresee(e.histories[e.forecast.turn])
}

// begun records that the plan of h has begun.
func (e *Engine) begun(h *History) {
	h.sweep.mixed = h.sweep.mixed || h.sweep.coming > 0
	e.foresee(h)
}

// foreseen tells whether the forecast is to be trusted.
func (e *Engine) foreseen() bool { return e.count-e.forecast.surprise >= confidence }

// written tells whether the sweep has captured all that was announced.
func (f *forecast) written() bool {
	sum := 0.0
	for _, bytes := range f.coming {
		sum += bytes
	}
	return f.planned && sum < 1
}

// coming is how many bytes are going to come into tier t: captures into it, and overflow of the tiers above.
func (e *Engine) coming(t int) float64 {
	sum := e.forecast.coming[t]
	for _, l := range e.links {
		if l.lower == t {
			above := e.tiers[l.upper]
			sum += (max(e.coming(l.upper)-float64(above.ready()), 0) + float64(above.bytes[fragment.Flushing])) * l.writes
		}
	}
	return sum
}

// ready is how many bytes of the tier are empty or evictable now, or will be when the queued flushes have ended.
func (tr *tier) ready() int64 {
	return tr.bytes[fragment.Gap] + tr.bytes[fragment.Free] + tr.bytes[fragment.Flushing]
}

// late tells whether a flush of o over l should begin now: otherwise the link would not finish before the last bytes come. The link l itself counts
// at the rate at which bytes come in above it. If o is sure to cross further links, each of them counts at the rate of captures.
func (e *Engine) late(l *link, o *Object) bool {
	if e.pressed(l, &e.tiers[l.upper].inflow, hurry) {
		return true
	}
	captures := &e.tiers[e.forecast.into].inflow
	for t := l.upper; t < len(e.links); t = e.links[t].lower {
		if e.pressed(e.links[t], captures, hurrySure) && e.outlies(o, t) {
			return true
		}
	}
	return false
}

// pressed tells whether a link is late with the bytes that have to leave its upper tier, at that rate of arrivals.
func (e *Engine) pressed(l *link, in *inflow, hurry float64) bool {
	coming := e.coming(l.upper)
	short := coming - float64(e.tiers[l.upper].ready())
	return short > 0 && in.faster(l.drain(e)*coming/(hurry*short))
}

// outlies tells whether more bytes are expected before o than the tiers down to tier t hold.
func (e *Engine) outlies(o *Object, t int) bool {
	h := o.first().Hist
	if o.next() == fragment.Unexpected || h.sweep.captures == 0 {
		return false
	}
	room := 0.0
	for u, tr := range e.tiers[:t+1] {
		if e.uses(o, u) {
			room += float64(tr.Capacity) * (float64(o.home.Size) / float64(o.Bytes(u)))
		}
	}
	return float64(o.next()-e.heads[h.lane])*h.sweep.bytes/h.sweep.captures > room
}
