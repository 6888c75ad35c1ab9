package engine

import "velocpy/gocore/policy/fragment"

// forecast is the number of bytes still to be captured according to the plans: keys that are expected and have not been written. The engine trusts it
// during a sweep, as long as every capture was expected. Where captures and restores alternate, or keys are written again, the copies of today may
// well be consumed before the rest comes.
type forecast struct {
	coming   [MaxTiers]float64 // bytes, by the tier that will capture them
	surprise int64             // state.count at the last operation that is not part of a sweep
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
	last     int64   // state.count at the last capture
	mixed    bool    // the plan has begun before all of it was captured: new captures may find the room of consumed checkpoints
}

// forecasts predicts which bytes captures will still bring.
type forecasts struct {
	*state

	forecast forecast
}

// foresee updates the forecast from the plan and the checkpoints of h. It does not ask the guess, which may cost more than it is worth.
func (fc *forecasts) foresee(h *History) {
	s, coming := &h.sweep, 0.0
	s.mixed = s.mixed && h.order.Len() > 0
	if s.captures > 0 && h.sweeps() && fc.count-s.last <= givenUp {
		coming = float64(max(h.order.Distinct()-s.awaited, 0)) * s.bytes / s.captures
	}
	fc.forecast.coming[s.top] += coming - s.coming
	s.coming = coming
}

// sweeps tells whether the plan of h looks like that of a sweep: it has not begun, and restores no key twice.
func (h *History) sweeps() bool {
	n := h.order.Len()
	return n > 0 && n == h.order.Distinct() && !h.sweep.mixed
}

// swept records a capture in tier t; fresh: its key had no checkpoint.
func (fc *forecasts) swept(r *Record, t int, fresh bool) {
	s := &r.Hist.sweep
	fc.forecast.coming[s.top] -= s.coming
	s.coming, s.top, fc.forecast.into = 0, t, t
	s.captures++
	s.bytes += float64(r.capturedBytes(t))
	s.last = fc.count
	fc.foresee(r.Hist)
	fc.forecast.planned = fresh && r.seq != fragment.Unexpected && r.Hist.sweeps()
	if !fc.forecast.planned {
		fc.surprised()
	}
	fc.forecast.turn = (fc.forecast.turn + 1) % len(fc.histories)
	fc.foresee(fc.histories[fc.forecast.turn])
}

// begun records that the plan of h has begun.
func (fc *forecasts) begun(h *History) {
	h.sweep.mixed = h.sweep.mixed || h.sweep.coming > 0
	fc.foresee(h)
}

// surprised records an operation that is not part of a sweep.
func (fc *forecasts) surprised() { fc.forecast.surprise = fc.count }

// foreseen tells whether the forecast is to be trusted.
func (fc *forecasts) foreseen() bool { return fc.count-fc.forecast.surprise >= confidence }

// written tells whether the sweep has captured all that was announced.
func (f *forecast) written() bool {
	sum := 0.0
	for _, bytes := range f.coming {
		sum += bytes
	}
	return f.planned && sum < 1
}

// coming is how many bytes are going to come into tier t: captures into it, and overflow of the tiers above.
func (fc *forecasts) coming(t int) float64 {
	sum := fc.forecast.coming[t]
	for _, l := range fc.links {
		if l.lower == t {
			above := fc.tiers[l.upper]
			sum += (max(fc.coming(l.upper)-float64(above.ready()), 0) + float64(above.bytes[fragment.Flushing])) * l.writes
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
func (fc *forecasts) late(l *link, o *Object) bool {
	if fc.pressed(l, &fc.tiers[l.upper].inflow, hurry) {
		return true
	}
	captures := &fc.tiers[fc.forecast.into].inflow
	for t := l.upper; t < len(fc.links); t = fc.links[t].lower {
		if fc.pressed(fc.links[t], captures, hurrySure) && fc.outlies(o, t) {
			return true
		}
	}
	return false
}

// pressed tells whether a link is late with the bytes that have to leave its upper tier, at that rate of arrivals.
func (fc *forecasts) pressed(l *link, in *inflow, hurry float64) bool {
	coming := fc.coming(l.upper)
	short := coming - float64(fc.tiers[l.upper].ready())
	return short > 0 && in.faster(l.drain(fc.state)*coming/(hurry*short))
}

// outlies tells whether more bytes are expected before o than the tiers down to tier t hold.
func (fc *forecasts) outlies(o *Object, t int) bool {
	h := o.first().Hist
	if o.next() == fragment.Unexpected || h.sweep.captures == 0 {
		return false
	}
	room := 0.0
	for u, tr := range fc.tiers[:t+1] {
		if fc.copies.uses(o, u) {
			room += float64(tr.Capacity) * (float64(o.home.Size) / float64(o.Bytes(u)))
		}
	}
	return float64(o.next()-fc.orders.heads[h.lane])*h.sweep.bytes/h.sweep.captures > room
}
