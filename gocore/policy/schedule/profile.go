package schedule

import (
	"errors"
	"fmt"
	"math"
)

// ErrProfile marks a profile that is not valid.
var ErrProfile = errors.New("invalid checkpoint profile")

// Observation is one checkpoint of a run that measured: its bytes, its bytes once encoded, and the nanoseconds since the capture before.
type Observation struct {
	Size     int64 `json:"size"`
	Encoded  int64 `json:"encoded"`
	Interval int64 `json:"interval"`
}

// Profile is the oracle of sizes and intervals: the observations of a first run, in order. A run of the same application is expected to resemble it.
type Profile struct {
	Observations []Observation `json:"observations"`
	Measurements []Measurement `json:"measurements"` // timed calls of the encoder, for FitCost
}

// mostObservations bounds both lists of a profile.
const mostObservations = 1 << 20

// Check returns ErrProfile for numbers below zero, for times of the encoder that are no times, and for too many entries.
func (p *Profile) Check() error {
	if most := max(len(p.Observations), len(p.Measurements)); most > mostObservations {
		return fmt.Errorf("%w: %d entries, more than %d", ErrProfile, most, mostObservations)
	}
	for i, o := range p.Observations {
		if o.Size < 0 || o.Encoded < 0 || o.Interval < 0 {
			return fmt.Errorf("%w: observation %d has a number below zero: %+v", ErrProfile, i, o)
		}
	}
	for i, m := range p.Measurements {
		if err := m.check(); err != nil {
			return fmt.Errorf("%w: measurement %d: %w", ErrProfile, i, err)
		}
	}
	return nil
}

// Checkpoints are those that a run like the profile's will have.
func (p *Profile) Checkpoints() []Checkpoint {
	all := make([]Checkpoint, len(p.Observations))
	for i, o := range p.Observations {
		all[i] = Checkpoint(o)
	}
	return all
}

// Forecast predicts checkpoints without a profile: each number is an exponentially weighted mean of those seen, of the encoded bytes the ratio. The zero
// value has seen nothing.
type Forecast struct {
	size, interval, ratio float64
	seen, sized           bool // a checkpoint; one that is not empty, so that it has a ratio
}

// recent is the weight of a new observation: the last four make two thirds of the mean.
const recent = 0.25

// Observe takes a checkpoint into account.
func (f *Forecast) Observe(o Observation) {
	if o.Size > 0 {
		ratio := float64(o.Encoded) / float64(o.Size)
		f.ratio, f.sized = toward(f.ratio, ratio, f.sized), true
	}
	f.size = toward(f.size, float64(o.Size), f.seen)
	f.interval = toward(f.interval, float64(o.Interval), f.seen)
	f.seen = true
}

// toward is the mean with a new value; the value alone, if it is the first.
func toward(mean, value float64, seen bool) float64 {
	if !seen {
		return value
	}
	return mean + recent*(value-mean)
}

// Next predicts n checkpoints that are all alike; nil before anything has been observed.
func (f *Forecast) Next(n int) []Checkpoint {
	if !f.seen || n < 1 {
		return nil
	}
	all := make([]Checkpoint, n)
	for i := range all {
		all[i] = Checkpoint{Size: rounded(f.size), Encoded: rounded(f.size * f.ratio), Interval: rounded(f.interval)}
	}
	return all
}

func rounded(x float64) int64 { return int64(math.Round(min(x, 1<<62))) }

// Deviation tells when what happens differs from what a plan was made for. It keeps exponentially weighted means of three relative errors, with their
// signs, so that errors that cancel out do not count. The zero value expects nothing to differ.
type Deviation struct {
	size, encoded, interval float64
}

// Tolerance is the mean relative error from which on a plan must be remade. Maurya et al., HiPC'23, section IV-C1, saw ratios of one time step differ
// by at most 10 % between runs: so errors of that size alone do not cause a new plan.
const Tolerance = 0.15

// Observe compares a checkpoint with the plan's, and tells whether the rest of the plan must be remade. After true the caller makes a new plan and begins
// with a zero Deviation.
func (d *Deviation) Observe(planned Checkpoint, o Observation) bool {
	d.size += recent * (relative(planned.Size, o.Size) - d.size)
	d.encoded += recent * (relative(planned.Encoded, o.Encoded) - d.encoded)
	d.interval += recent * (relative(planned.Interval, o.Interval) - d.interval)
	return max(math.Abs(d.size), math.Abs(d.encoded), math.Abs(d.interval)) > Tolerance
}

// relative is the error of a prediction, by its size; 1 at most, so that one stray value cannot outweigh its successors for long.
func relative(planned, seen int64) float64 {
	if planned == seen {
		return 0
	}
	return min(max((float64(seen)-float64(planned))/float64(max(planned, 1)), -1), 1)
}
