package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"velocpy/gocore/base/quantity"
)

// Outcome is the result of a plan; times are nanoseconds since the beginning of the first interval.
type Outcome struct {
	Application int64 // the application ends: the last capture has returned
	Flushed     int64 // the last transfer ends
	// The rest explains the first. It belongs to Run: a search leaves it out of its comparisons.
	Waited  int64 // nanoseconds in which captures waited for room, and for transfers past the cache
	Encoded int64 // nanoseconds in which the encoder ran
	Linked  int64 // nanoseconds in which the link carried transfers
	Peak    int64 // most bytes of the cache in use at one time
}

// Before tells whether o is better: its application ends earlier, or at the same time and its last transfer earlier.
func (o Outcome) Before(other Outcome) bool {
	if o.Application != other.Application {
		return o.Application < other.Application
	}
	return o.Flushed < other.Flushed
}

// Run simulates the plan, event by event, by the rules in the package comment. It returns ErrPlan for a plan of another length or form, and for one
// whose next capture would not fit even after every transfer has ended.
func (in *Instance) Run(plan Plan) (Outcome, error) {
	r, err := in.rules()
	if err != nil {
		return Outcome{}, err
	}
	return r.simulate(plan)
}

func (r *rules) simulate(plan Plan) (Outcome, error) {
	if err := plan.check(len(r.Checkpoints)); err != nil {
		return Outcome{}, err
	}
	m := machine{rules: r, releases: make([]release, 0, 2*len(plan))} // a capture queues two at most
	for i, d := range plan {
		m.compute(r.Checkpoints[i].Interval)
		if err := m.capture(r.Checkpoints[i], d); err != nil {
			return Outcome{}, fmt.Errorf("%w: checkpoint %d, decision %c", err, i, d)
		}
	}
	m.out.Application, m.out.Flushed = m.now, m.link
	return m.out, nil
}

// release is room of the cache that becomes free at a known time.
type release struct{ at, bytes int64 }

// machine is the simulated device: the clock is the application's.
type machine struct {
	*rules
	now      int64
	link     int64     // end of the last transfer that was queued
	encoder  int64     // end of the last call of the encoder that was queued
	used     int64     // bytes of the cache
	releases []release // sorted by time
	members  int       // checkpoints that are accumulated
	raw      int64     // … their bytes
	encoded  int64     // … once encoded
	out      Outcome
}

// compute lets the application work, slowed down while the encoder runs.
func (m *machine) compute(interval int64) {
	m.now = m.work(m.now, m.encoder, interval)
	m.settle()
}

// settle performs the releases that are due.
func (m *machine) settle() {
	for len(m.releases) > 0 && m.releases[0].at <= m.now {
		m.used -= m.releases[0].bytes
		m.releases = m.releases[1:]
	}
}

// allocate blocks the application until the cache has room, and takes it.
func (m *machine) allocate(bytes int64) error {
	if bytes > m.Cache-m.raw {
		return fmt.Errorf("%w: %s beside %s that are accumulated never fit a cache of %s", ErrPlan, quantity.Sized(bytes), quantity.Sized(m.raw), quantity.Sized(m.Cache))
	}
	began := m.now
	for m.used > m.Cache-bytes {
		m.now = m.releases[0].at
		m.settle()
	}
	m.out.Waited += m.now - began
	m.used += bytes
	m.out.Peak = max(m.out.Peak, m.used)
	return nil
}

// release frees room later.
func (m *machine) release(at, bytes int64) {
	place, _ := slices.BinarySearchFunc(m.releases, at+1, func(r release, at int64) int { return cmp.Compare(r.at, at) })
	m.releases = slices.Insert(m.releases, place, release{at, bytes})
}

// flush queues a transfer of bytes that can begin at ready, and returns its end.
func (m *machine) flush(ready, bytes int64) int64 {
	t := m.transfer(bytes)
	m.link = max(m.link, ready) + t
	m.out.Linked += t
	return m.link
}

func (m *machine) capture(c Checkpoint, d Decision) error {
	switch {
	case d == Whole && c.Size > m.Cache: // past the cache
		end := m.flush(m.now, c.Size)
		m.out.Waited += end - m.now
		m.now = end
		m.settle()
	case d == Whole:
		if err := m.allocate(c.Size); err != nil {
			return err
		}
		m.release(m.flush(m.now, c.Size), c.Size)
	case d == Accumulate:
		if err := m.allocate(c.Size); err != nil {
			return err
		}
		m.raw, m.encoded, m.members = m.raw+c.Size, m.encoded+c.Encoded, m.members+1
	default:
		return m.encode(c)
	}
	return nil
}

// encode queues one call of the encoder for the checkpoint and the accumulated ones, and the transfer behind it.
func (m *machine) encode(c Checkpoint) error {
	raw, encoded := m.raw+c.Size, m.encoded+c.Encoded
	if m.members > 0 && !m.allows(raw) {
		return fmt.Errorf("%w: a run of %s, and %s are allowed", ErrPlan, quantity.Sized(raw), quantity.Sized(m.Longest))
	}
	held := m.hold(raw, encoded)
	if err := m.allocate(held - m.raw); err != nil {
		return err
	}
	m.raw, m.encoded, m.members = 0, 0, 0
	t := m.encodeTime(raw)
	m.out.Encoded += t
	m.encoder = max(m.encoder, m.now) + t
	remains := m.remains(held, encoded)
	m.release(m.encoder, held-remains)
	m.release(m.flush(m.encoder, encoded), remains)
	if !m.Overlap {
		m.now = m.encoder
		m.settle()
	}
	return nil
}
