package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"velocpy/gocore/base/quantity"
)

// The errors of this package; use errors.Is.
var (
	// ErrInstance marks an Instance that is not valid: a size or a time below zero, a rate that is no rate, or times whose sum overflows.
	ErrInstance = errors.New("invalid schedule instance")
	// ErrPlan marks a plan that does not belong to its Instance, or that never fits its cache.
	ErrPlan = errors.New("invalid schedule plan")
)

// Checkpoint is one capture. Interval is the work of the application before it: nanoseconds since the end of the capture before.
type Checkpoint struct {
	Size     int64 // bytes, as they are
	Encoded  int64 // bytes once encoded; may exceed Size
	Interval int64 // nanoseconds
}

// Encoder predicts the costs of one call of the encoder. Neither function may fall when bytes grow: the search relies on it.
type Encoder struct {
	Time      func(bytes int64) int64 // nanoseconds to encode that many bytes in one call; below zero counts as zero
	Temporary func(bytes int64) int64 // bytes of the temporary buffer that such a call needs; nil: as many as the input has
}

// Link carries one transfer at a time out of the cache. A transfer of n bytes takes Fixed + n / Rate.
type Link struct {
	Rate  float64 // bytes a second, above zero
	Fixed int64   // nanoseconds for each transfer
}

// Instance is one scheduling problem.
type Instance struct {
	Checkpoints []Checkpoint
	Encoder     Encoder
	Link        Link
	Cache       int64 // bytes
	// Overlap makes the encoder run beside the application instead of blocking it. While it runs, the application needs Slowdown times as long.
	Overlap  bool
	Slowdown float64 // at least 1; only with Overlap
	// Keeps lets a call of the encoder keep all that it holds until its transfer has ended, as in this store, where what is encoded passes through memory of the
	// encoder. Otherwise only the encoded bytes are left when the encoder has ended (the paper's model).
	Keeps bool
	// Longest bounds the bytes of a run; 0: the cache alone does. A checkpoint that is larger can be encoded alone.
	Longest int64
}

// The share of its speed that the application keeps beside the encoder is a multiple of 2^-shareBits.
const shareBits = 20

// longest bounds the sum of all times of an Instance, in nanoseconds: 36 years. Sums of a few such times do not overflow.
const longest = 1 << 60

// largestCache bounds a cache, in bytes. All checkpoints together have at most half of it, so that a larger one allows nothing more, but sums could overflow.
const largestCache = 1 << 61

// rules are an Instance's functions with checked inputs; all times are nanoseconds.
type rules struct {
	*Instance
	share uint64 // of 1 << shareBits
}

// rules checks the Instance.
func (in *Instance) rules() (*rules, error) {
	clamped := *in
	clamped.Cache = min(in.Cache, largestCache)
	r := &rules{Instance: &clamped, share: 1 << shareBits}
	if in.Overlap {
		if !(in.Slowdown >= 1 && in.Slowdown <= 1<<(shareBits/2)) {
			return nil, fmt.Errorf("%w: a slowdown of %v, not 1 to %d", ErrInstance, in.Slowdown, 1<<(shareBits/2))
		}
		r.share = uint64(math.Round((1 << shareBits) / in.Slowdown))
	}
	switch {
	case in.Encoder.Time == nil:
		return nil, fmt.Errorf("%w: no oracle for the encoder's time", ErrInstance)
	case !(in.Link.Rate > 0) || math.IsInf(in.Link.Rate, 0):
		return nil, fmt.Errorf("%w: a link rate of %v bytes/s", ErrInstance, in.Link.Rate)
	case in.Link.Fixed < 0:
		return nil, fmt.Errorf("%w: a fixed cost of %d ns for each transfer", ErrInstance, in.Link.Fixed)
	case in.Cache < 0:
		return nil, fmt.Errorf("%w: a cache of %s", ErrInstance, quantity.Exact(in.Cache))
	}
	return r, r.bounded()
}

// bounded refuses negative numbers, and sums that could overflow.
func (r *rules) bounded() error {
	var bytes, time float64
	for i, c := range r.Checkpoints {
		if c.Size < 0 || c.Encoded < 0 || c.Interval < 0 {
			return fmt.Errorf("%w: checkpoint %d has a number below zero: %+v", ErrInstance, i, c)
		}
		bytes += float64(c.Size) + float64(c.Encoded)
		time += float64(c.Interval)*float64(1<<shareBits)/float64(r.share) + float64(max(c.Size, c.Encoded))/r.Link.Rate*1e9 + float64(r.Link.Fixed) + 1
	}
	if bytes > 1<<60 {
		return fmt.Errorf("%w: %.3g bytes in all", ErrInstance, bytes)
	}
	most := min(int64(bytes), r.Cache)
	time += float64(len(r.Checkpoints)) * float64(r.encodeTime(most))
	if time > longest {
		return fmt.Errorf("%w: %.3g ns in all", ErrInstance, time)
	}
	if t := r.temporary(most); t < 0 {
		return fmt.Errorf("%w: a temporary buffer of %s", ErrInstance, quantity.Exact(t))
	}
	return nil
}

// transfer is how long the link carries n bytes.
func (r *rules) transfer(n int64) int64 {
	return r.Link.Fixed + int64(math.Ceil(float64(n)/r.Link.Rate*1e9))
}

func (r *rules) encodeTime(n int64) int64 { return max(r.Encoder.Time(n), 0) }

func (r *rules) temporary(n int64) int64 {
	if r.Encoder.Temporary == nil {
		return n
	}
	return r.Encoder.Temporary(n)
}

// hold is the cache that a call of the encoder occupies: the temporary buffer, and the input until the output is copied to a buffer of its own size.
func (r *rules) hold(raw, encoded int64) int64 {
	most, temporary := max(raw, encoded), r.temporary(raw)
	if most > r.Cache || temporary > r.Cache { // the sum might overflow
		return math.MaxInt64
	}
	return most + temporary
}

// allows tells whether a run may have so many bytes.
func (r *rules) allows(raw int64) bool { return r.Longest <= 0 || raw <= r.Longest }

// remains is the part of what a call holds that stays until its transfer has ended.
func (r *rules) remains(held, encoded int64) int64 {
	if r.Keeps {
		return held
	}
	return encoded
}

// work returns when the application has done an interval's work that it begins at now, beside an encoder that is busy until then. What it does beside
// the encoder is rounded down once, so the result never falls when now or busy grows.
func (r *rules) work(now, busy, interval int64) int64 {
	if busy <= now || interval == 0 {
		return now + interval
	}
	high, low := bits.Mul64(uint64(busy-now), r.share)
	beside := int64(high<<(64-shareBits) | low>>shareBits)
	if interval > beside {
		return busy + interval - beside
	}
	high, low = bits.Mul64(uint64(interval), 1<<shareBits)
	low, carry := bits.Add64(low, r.share-1, 0)
	slow, _ := bits.Div64(high+carry, low, r.share)
	return now + int64(slow)
}
