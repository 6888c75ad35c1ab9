// Package coldstart predicts how long an application is blocked while the host tier below its devices is prefaulted and registered. It does so for
// each strategy and chooses one.
//
// The pages of a fresh host tier are absent. Touching a page makes the kernel allocate it. Registering a range lets a device copy to it at the full
// rate of its link. Maurya et al., HiPC'22, sections IV-A and IV-B, describe the trade-off. Touching competes with copies for the memory. A page that
// was touched first is registered faster. A call that registers all pages blocks captures while it lasts. The paper chooses between concurrent and
// sequential touching by the interval between checkpoints, their size, the number of processes and the rates. Predict runs the same inputs through a
// fluid model; Choose compares.
//
// The package is pure: it takes times and rates, reads no clock and does no I/O.
// The package is pure: it takes times and rates, reads no clock and does no I/O.
package coldstart

import "math"

// Strategy is a way to make the host tier ready.
type Strategy uint8

// The strategies. Concurrent, Sequential and Direct are the paper's. Pipeline registers each piece as soon as it has been touched; a flush waits
// until its range has been registered.
const (
	Pipeline   Strategy = iota
	Concurrent          // touches while flushes copy to unregistered memory, and registers all of it in one call at the end
	Sequential          // the same, but touches only while no flush is under way
	Direct              // registers all of it at once, untouched, before anything else happens
)

var names = [...]string{"pipeline", "concurrent", "sequential", "direct"}

func (s Strategy) String() string { return names[s] }

// Strategies lists them in the order in which Choose prefers equals.
func Strategies() []Strategy { return []Strategy{Pipeline, Concurrent, Sequential, Direct} }

// Workload is the application's load and the memory to prepare. Times are seconds, sizes bytes.
type Workload struct {
	Interval   float64 // from the end of one capture to the next one
	Checkpoint float64 // bytes of a capture
	Buffer     float64 // bytes of the device's tier: when it is full, a capture waits for a flush
	Host       float64 // bytes of the host tier that are not registered yet; the application is expected to fill them
	Touched    float64 // of these, bytes that have been touched, at the front
	Ready      float64 // bytes before them that are registered and not written yet
	Processes  int     // processes of the node that prepare their tiers at the same time, including this one; below 1: 1
}

// Rates are in bytes per second; all of them are above zero.
type Rates struct {
	Touch         float64 // of one process that touches pages, alone
	TouchNode     float64 // of all processes of the node together; 0: they do not slow each other down
	Register      float64 // of touched pages, by all processes of the node together: the driver and the kernel serve one at a time
	RegisterFresh float64 // of pages that were not touched, likewise
	Pinned        float64 // of a copy to registered memory
	Pageable      float64 // of a copy to touched memory that is not registered
	Fresh         float64 // of a copy to pages that were not touched
	// Share is the part of its rate that touching keeps beside a copy to unregistered memory, and the part that the copy keeps. ShareDMA is the same
	// beside a copy to registered memory. Both are above 0 and at most 1.
	Share, ShareDMA float64
	Call            float64 // bytes that Pipeline registers per call of the driver
}

// advantage is the gain over Pipeline that another strategy needs to be chosen: the inputs are estimates, and a change has its cost.
const advantage = 0.05

// Choose returns the strategy with the least blocked time, and the prediction for each, in the order of Strategies. It keeps Pipeline unless another
// one saves a twentieth of its blocked time and a millisecond.
func Choose(w Workload, r Rates) (best Strategy, blocked [4]float64) {
	for _, s := range Strategies() {
		blocked[s] = Predict(s, w, r)
		if blocked[s] < blocked[best] {
			best = s
		}
	}
	if saved := blocked[Pipeline] - blocked[best]; saved < max(advantage*blocked[Pipeline], 1e-3) {
		best = Pipeline
	}
	return best, blocked
}

// mostSteps bounds the number of simulated captures; beyond, several are simulated as one.
const mostSteps = 2048

// Predict is for how many seconds the application is blocked from now until the host tier has been filled and registered. The strategy blocks before
// the first capture. Captures block while they wait for room on the device or for the driver. The rest blocks after the last capture. Cost: at most a
// few thousand steps of arithmetic.
func Predict(s Strategy, w Workload, r Rates) float64 {
	m := newModel(s, w, r)
	if s == Direct {
		m.blocked += m.processes * w.Host / r.RegisterFresh
		m.touched, m.registered = m.size, m.size
	}
	for left := m.size; left > grain; left -= m.checkpoint {
		m.advance(m.interval, -1)
		m.capture(min(m.checkpoint, left))
	}
	m.blocked += m.finish()
	return m.blocked
}

// model is the state of one simulation.
type model struct {
	strategy   Strategy
	rates      Rates
	interval   float64
	checkpoint float64
	buffer     float64
	processes  float64
	size       float64 // bytes to be written in total

	now, blocked float64
	queue        float64 // bytes on the device that wait for their flush
	written      float64 // bytes of the host tier that flushes have reached
	touched      float64 // … that are touched
	registered   float64 // … that are registered
	whole        float64 // bytes that the final call registers
	turn         float64 // start of that call; infinite while pages are left to touch
	calls        float64 // seconds of Pipeline's calls that no capture has met
	steps        int     // steps that it may still take, so that rounding cannot make it endless
}

// Smaller amounts count as zero: bytes, and seconds.
const (
	grain   = 1.0
	instant = 1e-9
)

func newModel(s Strategy, w Workload, r Rates) *model {
	m := &model{strategy: s, rates: r, processes: float64(max(w.Processes, 1)), size: w.Ready + w.Host, whole: w.Host, turn: math.Inf(1), calls: w.Host / r.Register, steps: 32 * mostSteps}
	m.registered, m.touched = w.Ready, w.Ready+min(w.Touched, w.Host)
	several := math.Ceil(max(m.size/max(w.Checkpoint, grain)/mostSteps, 1))
	m.interval, m.checkpoint = w.Interval*several, max(w.Checkpoint, grain)*several
	m.buffer = max(w.Buffer, m.checkpoint)
	m.endTouching()
	return m
}

// capture waits for the driver and for room on the device, and adds a checkpoint there.
func (m *model) capture(bytes float64) {
	m.blocked += m.advance(max(m.callEnds()-m.now, 0), -1)
	if room := m.buffer - bytes; m.queue > room {
		m.blocked += m.advance(math.Inf(1), room)
	}
	m.queue += bytes
	m.meetCall()
}

// meetCall blocks a capture for half of a Pipeline call, with the probability that one is under way. The total never exceeds the duration of the
// calls.
func (m *model) meetCall() {
	if m.strategy != Pipeline || m.registered > m.size-grain {
		return
	}
	_, _, registering := m.speeds()
	met := min(m.rates.Call/2/m.rates.Register*min(registering/m.rates.Register, 1), m.calls)
	m.blocked += met
	m.calls -= met
}

// finish is the time until all memory is registered.
func (m *model) finish() float64 {
	began := m.now
	for m.registered < m.size-grain && m.step(math.Inf(1), -1) {
	}
	return m.now - began
}

// callEnds is the end of the final call, which holds the driver; 0 while it is not under way.
func (m *model) callEnds() float64 {
	if m.now < m.turn {
		return 0
	}
	return m.turn + m.whole/m.rates.Register
}

// advance lets time pass: that many seconds, or until at most that many bytes wait for their flush (below 0: no such condition). It returns the
// elapsed time.
func (m *model) advance(seconds, waiting float64) float64 {
	began := m.now
	for end := m.now + seconds; m.now < end && (waiting < 0 || m.queue > waiting+grain) && m.step(end-m.now, waiting); {
	}
	return m.now - began
}

// step advances to the next change of a rate, or by that many seconds, or until that many bytes wait; false when nothing moves.
func (m *model) step(seconds, waiting float64) bool {
	flush, touch, register := m.speeds()
	dt := seconds
	until := func(distance, speed float64) {
		if distance >= grain && speed > 0 {
			dt = min(dt, distance/speed)
		}
	}
	until(m.queue-max(waiting, 0), flush)
	until(m.registered-m.written, flush-register)
	until(m.touched-m.written, flush-touch)
	until(m.touched-m.registered, register-touch)
	until(m.size-m.touched, touch)
	for _, moment := range []float64{m.turn, m.callEnds()} {
		if moment > m.now {
			dt = min(dt, moment-m.now)
		}
	}
	if math.IsInf(dt, 1) || m.steps == 0 {
		return false
	}
	m.steps--
	m.now += max(dt, instant)
	m.queue = snap(max(m.queue-flush*dt, 0), 0)
	m.move(m.written+flush*dt, m.touched+touch*dt, m.registered+register*dt)
	m.endTouching()
	m.endCall()
	return true
}

// move updates the three positions. The copy to a page touches it at the latest, and no copy of Pipeline's overtakes registering.
func (m *model) move(written, touched, registered float64) {
	limit := m.size
	if m.strategy != Pipeline {
		touched = max(touched, written)
	}
	m.touched = snap(min(touched, m.size), m.size)
	m.registered = snap(min(registered, m.touched), m.touched)
	if m.strategy == Pipeline {
		limit = m.registered
	}
	m.written = snap(snap(min(written, limit), m.registered), m.touched)
}

// snap replaces a position by another one if only rounding separates them.
func snap(x, to float64) float64 {
	if math.Abs(x-to) < grain {
		return to
	}
	return x
}

// endTouching sets the start of the final call: on average, half of the other processes are served before.
func (m *model) endTouching() {
	if atEnd := m.strategy == Concurrent || m.strategy == Sequential; atEnd && m.touched >= m.size && math.IsInf(m.turn, 1) {
		m.turn = m.now + (m.processes-1)/2*m.whole/m.rates.Register
	}
}

func (m *model) endCall() {
	if end := m.callEnds(); end > 0 && m.now >= end-instant {
		m.registered = m.size
	}
}

// speeds are the present rates of flushing, touching and registering, bytes/s.
func (m *model) speeds() (flush, touch, register float64) {
	if m.now >= m.turn && m.registered < m.size { // the driver does nothing else
		return 0, 0, 0
	}
	r, flushes, pinned := &m.rates, m.queue > 0, m.written < m.registered
	share := 1.0
	if touches := m.touched < m.size && !(m.strategy == Sequential && flushes); touches {
		if flushes && (pinned || m.strategy == Pipeline) {
			share = r.ShareDMA
		} else if flushes {
			share = r.Share
		}
		touch = r.Touch
		if r.TouchNode > 0 {
			touch = min(touch, r.TouchNode/m.processes)
		}
		touch *= share
	}
	if m.strategy == Pipeline {
		if register = r.Register / m.processes; m.registered >= m.touched {
			register = min(register, touch)
		}
	}
	switch {
	case !flushes:
	case pinned || m.registered >= m.size:
		flush = r.Pinned * share
	case m.strategy == Pipeline:
		flush = min(r.Pinned*share, register)
	case m.written < m.touched:
		flush = r.Pageable * share
	default: // directly behind the thread that touches, or the copy itself touches
		flush = max(min(r.Pageable*share, touch), r.Fresh*share)
	}
	return flush, touch, register
}
