package schedule

import "math"

// bound computes lower bounds of the end of the application, for states with n-i checkpoints to go.
//
// Every continuation satisfies two inequalities. Let x be the set of the coming checkpoints that are encoded, t the state's clock and T the end.
//
//	T >= t + sum of intervals + sum over x of cost(i)
//	T >= t + (bytes left to carry + sum of the coming bytes, encoded if in x - Cache) / Rate
//
// The second one holds since at T at most Cache bytes have not been carried yet. cost(i) is a share of the encoder's time: Size times the least time
// per byte of any call that the cache has room for. With Overlap, cost is 0. Any mixture of the inequalities with weights w and 1-w holds too, and for a
// mixture the best x is chosen for each checkpoint alone. So suffix sums for a few weights suffice.
type bound struct {
	perByte float64     // least encoder time per byte, ns; 0 with Overlap
	room    float64     // ns that the link needs for a full cache
	carry   float64     // ns per byte
	rest    [][]float64 // by weight, then by index of the next checkpoint
	work    []int64     // sum of intervals from the index on
}

// weights is the number of mixtures, from the first inequality alone to the second alone.
const weights = 9

func newBound(r *rules) *bound {
	n := len(r.Checkpoints)
	b := &bound{perByte: r.perByte(), carry: 1e9 / r.Link.Rate, work: make([]int64, n+1), rest: make([][]float64, weights)}
	b.room = float64(r.Cache) * b.carry
	for i := n - 1; i >= 0; i-- {
		b.work[i] = b.work[i+1] + r.Checkpoints[i].Interval
	}
	for k := range b.rest {
		w := float64(k) / (weights - 1)
		rest := make([]float64, n+1)
		for i := n - 1; i >= 0; i-- {
			c := &r.Checkpoints[i]
			whole := w * float64(c.Size) * b.carry
			encoded := w*float64(c.Encoded)*b.carry + (1-w)*float64(c.Size)*b.perByte
			rest[i] = rest[i+1] + min(whole, encoded) + (1-w)*float64(c.Interval)
		}
		b.rest[k] = rest
	}
	return b
}

// perByte is a lower bound of the encoder's time per byte, over all sizes of the cache at most. Between two sizes of the grid the time is at least
// that of the lower one, and the bytes at most those of the upper one.
func (r *rules) perByte() float64 {
	if r.Overlap {
		return 0
	}
	least := math.Inf(1)
	for size := int64(0); size <= r.Cache; {
		next := size + size/32 + 1
		least = min(least, float64(r.encodeTime(size))/float64(next))
		size = next
	}
	return least
}

// end is a lower bound of the application's end, for a state with n-i checkpoints to go. left is the number of bytes that the link has to carry.
func (b *bound) end(s *state, left int64, i int) int64 {
	most, first := 0.0, float64(s.raw)*b.perByte
	second := (float64(left)+float64(s.encoded))*b.carry - b.room
	for k, rest := range b.rest {
		w := float64(k) / (weights - 1)
		most = max(most, (1-w)*first+w*second+rest[i])
	}
	return s.time + int64(most*(1-1e-9)) // rounding must not lift it
}
