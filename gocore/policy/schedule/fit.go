package schedule

import (
	"errors"
	"fmt"
	"math"

	"velocpy/gocore/base/quantity"
)

// ErrFit marks measurements that determine no cost model.
var ErrFit = errors.New("measurements determine no encoder cost")

// Measurement is one timed call of the encoder.
type Measurement struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// longestCall bounds a measurement, in seconds: 30 years. Squares of such times do not overflow.
const longestCall = 1e9

func (m Measurement) check() error {
	if m.Bytes < 0 || !(m.Seconds >= 0 && m.Seconds <= longestCall) {
		return fmt.Errorf("%w: %v s for %s", ErrFit, m.Seconds, quantity.Exact(m.Bytes))
	}
	return nil
}

// Cost is the model t(n) = Fixed + n / Rate of an encoder's time.
type Cost struct {
	Fixed float64 // seconds; at least 0
	Rate  float64 // bytes a second; +Inf if the time does not grow with the bytes
}

// Time is an oracle for Encoder, in nanoseconds.
func (c Cost) Time(bytes int64) int64 {
	seconds := c.Fixed
	if bytes > 0 {
		seconds += float64(bytes) / c.Rate
	}
	return int64(math.Ceil(min(seconds*1e9, 1<<60)))
}

// FitCost fits the model by least squares to measurements of at least two different sizes.
//
// It withstands one outlier: with four measurements or more, each is left out in turn. The one without which the squares of the errors fall most is
// left out for good, if that reduces them to a tenth or less and two different sizes remain. So exact or slightly noisy measurements all count.
//
// Neither parameter is below zero: a slope below zero becomes 0 with the mean time as Fixed, and a Fixed below zero becomes 0 with the best slope
// through the origin.
func FitCost(all []Measurement) (Cost, error) {
	for i, m := range all {
		if err := m.check(); err != nil {
			return Cost{}, fmt.Errorf("measurement %d: %w", i, err)
		}
	}
	best, total := fitLine(all, -1)
	if math.IsNaN(total) {
		return Cost{}, fmt.Errorf("%w: %d measurements, not of two different sizes", ErrFit, len(all))
	}
	if len(all) >= 4 {
		least := total / 10
		for i := range all {
			if c, squares := fitLine(all, i); squares < least { // false for NaN
				best, least = c, squares
			}
		}
	}
	return best, nil
}

// fitLine fits the measurements except one, and returns the sum of the squared errors; NaN without two different sizes.
func fitLine(all []Measurement, except int) (Cost, float64) {
	var n, x, y float64
	each := func(visit func(x, y float64)) {
		for i, m := range all {
			if i != except {
				visit(float64(m.Bytes), m.Seconds)
			}
		}
	}
	each(func(a, b float64) { n, x, y = n+1, x+a, y+b })
	x, y = x/n, y/n
	var xx, xy, origin, cross float64
	each(func(a, b float64) {
		xx, xy = xx+(a-x)*(a-x), xy+(a-x)*(b-y)
		origin, cross = origin+a*a, cross+a*b
	})
	if !(xx > 0) {
		return Cost{}, math.NaN()
	}
	slope := xy / xx
	fixed := y - slope*x
	switch {
	case slope < 0:
		slope, fixed = 0, y
	case fixed < 0:
		slope, fixed = cross/origin, 0
	}
	squares := 0.0
	each(func(a, b float64) { squares += (b - fixed - slope*a) * (b - fixed - slope*a) })
	return Cost{Fixed: fixed, Rate: 1 / slope}, squares
}
