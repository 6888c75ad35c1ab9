package schedule

import "slices"

// Course follows the checkpoints of one history, and tells what becomes of each: by letters that repeat, or by plans that are searched for the checkpoints
// of a profile. Where there is no profile, or it has ended, letters repeat that are the best for checkpoints like the last ones. It has no clock and no lock.
type Course struct {
	repeat  Plan // from a caller
	profile []Checkpoint
	scale   scale  // of the profile, as this run deviates from it
	steady  steady // behind the profile

	captured int   // checkpoints so far; their numbers begin with 0
	returned int64 // when the capture before returned …
	ended    bool  // … if one has
	changes  int   // of decisions that were made before
	seen     []Observation
	calls    []Measurement // of the encoder, the last ones
	told     []Measurement // … of the profile

	plan      Plan         // by number; Undecided where there was no plan in time
	planned   []Checkpoint // for which the plan was made, from first on
	first     int
	forecast  Forecast
	deviation Deviation
	stale     bool // the plan must be made anew
	searching bool
	plans     int
}

// Undecided stands for a checkpoint that no plan is made for. It is flushed as if there were no schedule.
const Undecided Decision = 0

const (
	// unknownBytes stands for the encoded bytes of a checkpoint that was not encoded yet.
	unknownBytes = -1
	// skippedBytes stands for those of a checkpoint that Skip was told of.
	skippedBytes = -2
	// mostCourse bounds the checkpoints that a course follows.
	mostCourse = 1 << 20
	// mostRepeated bounds the letters that repeat.
	mostRepeated = 4096
	// mostCalls bounds the calls of the encoder whose times count.
	mostCalls = 64
	// least is from how many checkpoints others are predicted.
	least = 4
)

// steady is what becomes of checkpoints that are all alike.
type steady struct {
	letters Plan // that repeat; none: nothing was decided yet
	from    int  // the checkpoint of the first letter
	each    Checkpoint
}

// Terms are what a plan depends on beside the checkpoints.
type Terms struct {
	Link  Link
	Cache int64 // bytes
	Group int64 // bytes that the encoder takes at once; 0: all
	// Longest bounds the bytes of a run, for the sake of the tier below; 0: no bound of its own.
	Longest int64
}

// NewCourse returns a course that has a profile, letters that repeat, or neither.
func NewCourse(p *Profile, repeat Plan) *Course {
	c := &Course{repeat: repeat, scale: scale{1, 1, 1}}
	if p != nil {
		c.profile, c.told = p.Checkpoints(), p.Measurements
	}
	return c
}

// Begin tells that a capture of so many bytes begins, and returns its number.
func (c *Course) Begin(now, size int64) int {
	number := c.captured
	c.captured++
	if number < mostCourse {
		interval := int64(0)
		if c.ended {
			interval = max(now-c.returned, 0)
		}
		c.seen = append(c.seen, Observation{Size: size, Encoded: unknownBytes, Interval: interval})
		if c.decided(number) == Undecided {
			c.set(number, c.next(number))
		}
		c.endAlone(number)
	}
	return number
}

// End tells that the capture has returned: its application works again.
func (c *Course) End(now int64) { c.returned, c.ended = now, true }

// Skip tells that a checkpoint will not leave the cache: its capture has failed, or it went elsewhere. The run before it ends, and no profile has it.
func (c *Course) Skip(number int) {
	if number < 0 || number >= len(c.seen) {
		return
	}
	c.seen[number].Encoded = skippedBytes
	c.set(number, Whole)
	c.endRun(number - 1)
	if number+1 < c.captured {
		c.endAlone(number + 1)
	}
	c.changes++
}

// endRun lets the run of a checkpoint end with it, if it is accumulated.
func (c *Course) endRun(number int) {
	if c.decided(number) == Accumulate {
		c.set(number, Bulk)
		c.endAlone(number)
	}
}

// endAlone lets a checkpoint be encoded alone that ends a run of which no other is left.
func (c *Course) endAlone(number int) {
	if c.decided(number) == Bulk && c.decided(number-1) != Accumulate {
		c.set(number, Alone)
	}
}

// Changes is how often a decision was changed that the letters had before.
func (c *Course) Changes() int { return c.changes }

// next is the letter of a checkpoint that no plan is made for.
func (c *Course) next(number int) Decision {
	switch s := &c.steady; {
	case len(c.repeat) > 0:
		return c.repeat[number%len(c.repeat)]
	case len(s.letters) > 0:
		return s.letters[(number-s.from)%len(s.letters)]
	}
	return Undecided
}

func (c *Course) decided(number int) Decision {
	if number < 0 || number >= len(c.plan) {
		return Undecided
	}
	return c.plan[number]
}

func (c *Course) set(number int, d Decision) {
	for len(c.plan) <= number {
		c.plan = append(c.plan, Undecided)
	}
	c.plan[number] = d
}

// Decision is what becomes of a checkpoint.
func (c *Course) Decision(number int) Decision { return c.decided(number) }

// Last is the checkpoint whose capture ends the run of an accumulated one: itself where it is not accumulated.
func (c *Course) Last(number int) int {
	for c.foreseen(number) == Accumulate {
		switch c.foreseen(number + 1) {
		case Accumulate, Bulk:
		default:
			return number
		}
		number++
	}
	return number
}

// foreseen is the letter of a checkpoint that may be still to come.
func (c *Course) foreseen(number int) Decision {
	if d := c.decided(number); d != Undecided || number < c.captured {
		return d
	}
	return c.next(number)
}

// Captured is how many checkpoints there are.
func (c *Course) Captured() int { return c.captured }

// Until predicts how many ns pass from the last capture to that of a later checkpoint.
func (c *Course) Until(number int) (ns int64) {
	for i := c.captured; i <= number; i++ {
		if x, ok := c.expected(i); ok {
			ns += x.Interval
		} else if len(c.seen) > 0 {
			ns += c.seen[len(c.seen)-1].Interval
		}
	}
	return ns
}

// expected is the checkpoint that a plan was made for; ok is false where none was.
func (c *Course) expected(number int) (x Checkpoint, ok bool) {
	switch k := number - c.first; {
	case k >= 0 && k < len(c.planned):
		return c.planned[k], true
	case len(c.steady.letters) > 0 && number >= c.steady.from:
		return c.steady.each, true
	}
	return x, false
}

// Flushed tells that a checkpoint has left the cache, and how many bytes encoding made of it; below 0: it was not encoded.
func (c *Course) Flushed(number int, encoded int64) {
	if number < 0 || number >= len(c.seen) || c.seen[number].Encoded == skippedBytes {
		return
	}
	o := &c.seen[number]
	if encoded >= 0 {
		o.Encoded = encoded
		if number > 0 { // nothing was captured before the first one, which has no interval
			c.forecast.Observe(*o)
		}
	}
	x, ok := c.expected(number)
	if c.stale || !ok {
		return
	}
	saw := *o
	if saw.Encoded == unknownBytes {
		saw.Encoded = x.Encoded
	}
	c.stale = c.deviation.Observe(x, saw)
}

// Call tells how long a call of the encoder took.
func (c *Course) Call(bytes, ns int64) {
	c.calls = append(c.calls, Measurement{Bytes: bytes, Seconds: float64(ns) / 1e9})
	if len(c.calls) > mostCalls {
		c.calls = slices.Delete(c.calls, 0, len(c.calls)-mostCalls)
	}
}

// Plans is how many plans were made.
func (c *Course) Plans() int { return c.plans }

// Letters are the decisions on the checkpoints so far, with '-' for those that no plan was made for.
func (c *Course) Letters() string {
	letters := make([]byte, min(c.captured, mostCourse))
	for i := range letters {
		if letters[i] = byte(c.decided(i)); letters[i] == byte(Undecided) {
			letters[i] = '-'
		}
	}
	return string(letters)
}

// Profile is what this run has observed, for a run like it.
func (c *Course) Profile() Profile {
	p := Profile{Observations: slices.Clone(c.seen), Measurements: slices.Clone(c.calls)}
	for i := range p.Observations {
		o := &p.Observations[i]
		switch {
		case o.Encoded != unknownBytes: // it is known, or the checkpoint was skipped
		case i < len(c.profile):
			o.Encoded = c.profile[i].Encoded
		case c.forecast.sized:
			o.Encoded = rounded(float64(o.Size) * c.forecast.ratio)
		default:
			o.Encoded = o.Size
		}
	}
	p.Observations = slices.DeleteFunc(p.Observations, func(o Observation) bool { return o.Encoded == skippedBytes })
	return p
}
