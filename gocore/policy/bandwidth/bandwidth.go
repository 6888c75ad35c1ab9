// Package bandwidth estimates the duration of transfers over a link from earlier ones.
//
// The model is a latency plus bytes over a rate. Bulk transfers update the rate, weighted by their bytes. Small transfers update only the latency, so
// that a thousand tiny records do not make a fast link look slow. The package is pure and not safe for concurrent use.
package bandwidth

import "math"

const (
	// small is the size below which a transfer tells more about the latency than about the rate.
	small = 64 << 10

	// fallback is the rate (bytes/s) without a sensible prior.
	fallback = 1e9

	// priorBytes is the weight of the prior: after so many bytes it counts half.
	priorBytes = 4 << 20

	// The estimate covers about the last second of bulk transfers, or two when they became slower, within these bounds in bytes.
	leastMemory = 64 << 20
	mostMemory  = 4 << 30
	slowMemory  = 2e9 // ns

	// Estimates are bounded to these rates (bytes/s).
	slowest = 1
	fastest = 1e15

	// A transfer that took more than outlier times longer or shorter than predicted counts only as outlier times. This applies once the estimate is
	// based on trustAfter bulk transfers and trustBytes. So one stall does not spoil the estimate, and a lasting change still prevails within a few
	// transfers.
	outlier    = 4
	trustAfter = 4
	trustBytes = 64 << 20

	// latencyGain is the part of its deviation that an empty transfer adds to the latency. A transfer of tiny bytes adds half of that, and so on: the
	// more bytes it has, the less it counts.
	latencyGain = 1.0 / 8
	tiny        = 4 << 10
)

// Estimator estimates one direction of one link.
type Estimator struct {
	bytes   float64 // of the bulk transfers remembered, decaying
	ns      float64 // their time without latency, decaying alike
	latency float64 // ns
	bulk    int     // bulk transfers observed …
	seen    float64 // … and their bytes, until they are enough to trust
	begun   bool    // a small transfer was observed
}

// New returns an estimator that assumes prior bytes per second and no latency until it has observed transfers. A prior that is not a positive number
// means 1 GB/s.
func New(prior float64) *Estimator {
	if !(prior > 0) || math.IsInf(prior, 0) {
		prior = fallback
	}
	prior = min(max(prior, slowest), fastest)
	return &Estimator{bytes: priorBytes, ns: priorBytes / prior * 1e9}
}

// Assume sets another prior, unless bulk transfers have been observed. It ignores a prior that is not a positive number.
func (e *Estimator) Assume(prior float64) {
	if e.bulk == 0 && prior > 0 && !math.IsInf(prior, 0) {
		e.bytes, e.ns = priorBytes, priorBytes/min(max(prior, slowest), fastest)*1e9
	}
}

// Trusted tells whether the estimate is based on enough bulk transfers to compare it with another one. Before that, the prior has a part in it.
func (e *Estimator) Trusted() bool { return e.bulk >= trustAfter && e.seen >= trustBytes }

// Observe updates the estimate from a transfer. It ignores negative sizes and times that are not positive. O(1).
func (e *Estimator) Observe(bytes, ns int64) {
	if bytes < 0 || ns <= 0 {
		return
	}
	switch {
	case bytes < small:
		e.observeLatency(float64(bytes), float64(ns), latencyGain/(1+float64(bytes)/tiny))
	case float64(ns) < 2*e.latency: // apparently mostly latency, which it tests as well
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

// memory is the number of bytes that the estimate covers: those that the link moves in a second.
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

// Latency returns the estimated nanoseconds of an empty transfer.
func (e *Estimator) Latency() int64 { return int64(e.latency) }
