// Package bandwidth estimates how long transfers over a link take, from those that were seen.
//
// The model is a latency plus bytes over a rate. Bulk transfers teach the rate, each weighing as much as its bytes; small ones teach
// the latency alone, so that a thousand tiny records do not make a fast link look slow. The package is pure and not safe for concurrent use.
package bandwidth

import "math"

const (
	// small is the size below which a transfer says more about the latency than about the rate.
	small = 64 << 10

	// fallback is the rate assumed when no sensible prior is given: bytes per second.
	fallback = 1e9

	// priorBytes is the weight of the prior: after so many bytes it counts half.
	priorBytes = 4 << 20

	// The estimate remembers about the last second of bulk transfers, two when they became slower, but not less and not more bytes than these.
	leastMemory = 64 << 20
	mostMemory  = 4 << 30
	slowMemory  = 2e9 // ns

	// Rates outside these are not believed: bytes per second.
	slowest = 1
	fastest = 1e15

	// A transfer that took outlier times longer or shorter than predicted counts as that much only, once the estimate rests on trustAfter bulk
	// transfers and trustBytes: one stall does not spoil it, and a lasting change wins within a few transfers all the same.
	outlier    = 4
	trustAfter = 4
	trustBytes = 64 << 20

	// latencyGain is how much of its deviation an empty transfer adds to the latency. One of tiny bytes adds half of that, and so on: the more
	// bytes it has, the less it says.
	latencyGain = 1.0 / 8
	tiny        = 4 << 10
)

// Estimator estimates one direction of one link.
type Estimator struct {
	bytes   float64 // of the bulk transfers remembered, decaying
	ns      float64 // their time without latency, decaying alike
	latency float64 // ns
	bulk    int     // bulk transfers seen …
	seen    float64 // … and their bytes, until they are enough to trust
	begun   bool    // a small transfer was seen
}

// New returns an estimator that assumes prior bytes per second and no latency until it has seen transfers. A prior that is not
// a positive number means 1 GB/s.
func New(prior float64) *Estimator {
	if !(prior > 0) || math.IsInf(prior, 0) {
		prior = fallback
	}
	prior = min(max(prior, slowest), fastest)
	return &Estimator{bytes: priorBytes, ns: priorBytes / prior * 1e9}
}

// Assume takes another prior, unless bulk transfers have been seen. One that is not a positive number changes nothing.
func (e *Estimator) Assume(prior float64) {
	if e.bulk == 0 && prior > 0 && !math.IsInf(prior, 0) {
		e.bytes, e.ns = priorBytes, priorBytes/min(max(prior, slowest), fastest)*1e9
	}
}

// Trusted tells whether the estimate rests on enough bulk transfers to be compared with another one; before that the prior has a part in it.
func (e *Estimator) Trusted() bool { return e.bulk >= trustAfter && e.seen >= trustBytes }

// Observe learns from a transfer. Negative sizes and times that are not positive are ignored. O(1).
func (e *Estimator) Observe(bytes, ns int64) {
	if bytes < 0 || ns <= 0 {
		return
	}
	switch {
	case bytes < small:
		e.observeLatency(float64(bytes), float64(ns), latencyGain/(1+float64(bytes)/tiny))
	case float64(ns) < 2*e.latency: // mostly latency as it seems, which is thus put to the test, too
		e.observeLatency(float64(bytes), float64(ns), latencyGain)
	default:
		e.observeBulk(float64(bytes), float64(ns))
	}
}

func (e *Estimator) observeLatency(bytes, ns, gain float64) {
	seen := ns - bytes*e.ns/e.bytes
	if !e.begun {
		e.begun, e.latency = true, max(0, seen)
		return
	}
	// A single hiccup among microseconds must not become the latency.
	seen = min(seen, 2*e.latency+1e4)
	e.latency = max(0, e.latency+gain*(seen-e.latency))
}

func (e *Estimator) observeBulk(bytes, ns float64) {
	moving := ns - e.latency
	if !e.Trusted() {
		e.bulk++
		e.seen += bytes
	} else {
		expected := bytes * e.ns / e.bytes
		moving = min(max(moving, expected/outlier), expected*outlier)
	}
	moving = min(max(moving, bytes/fastest*1e9), bytes/slowest*1e9)
	keep := math.Exp(-max(bytes/e.memory(), moving/slowMemory))
	e.bytes = keep*e.bytes + bytes
	e.ns = keep*e.ns + moving
}

// memory is how many bytes the estimate remembers: what the link moves in a second.
func (e *Estimator) memory() float64 { return min(max(e.Rate(), leastMemory), mostMemory) }

// Predict returns how many nanoseconds a transfer will take: never negative, and never less for more bytes. O(1).
func (e *Estimator) Predict(bytes int64) int64 {
	if bytes < 0 {
		bytes = 0
	}
	ns := e.latency + float64(bytes)*e.ns/e.bytes
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(ns)
}

// Rate returns the estimated bytes per second of a long transfer. Always positive.
func (e *Estimator) Rate() float64 { return e.bytes / e.ns * 1e9 }

// Latency returns the estimated nanoseconds that a transfer of nothing takes.
func (e *Estimator) Latency() int64 { return int64(e.latency) }
