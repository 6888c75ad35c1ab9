package workers

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The shares of transfers that run beside each other add up to the time in which any ran, and none is longer than its transfer.
func TestShares(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var o occupied
		type transfer struct {
			before float64
			began  int64
		}
		var under []transfer
		now, busy, shares := int64(0), int64(0), 0.0
		end := func(i int) {
			o.until(now)
			o.running--
			share := o.each - under[i].before
			if share < 0 || share > float64(now-under[i].began)+1e-6 {
				t.Fatalf("seed %d: a share of %g in %d ns", seed, share, now-under[i].began)
			}
			shares += share
			under = append(under[:i], under[i+1:]...)
		}
		for range 100 {
			step := r.Int64N(1000)
			if len(under) > 0 {
				busy += step
			}
			now += step
			if len(under) == 0 || len(under) < 5 && r.IntN(2) == 0 {
				o.until(now)
				o.running++
				under = append(under, transfer{o.each, now})
			} else {
				end(r.IntN(len(under)))
			}
		}
		for len(under) > 0 {
			end(0)
		}
		if math.Abs(shares-float64(busy)) > 1e-3 {
			t.Errorf("seed %d: shares of %g in %d ns", seed, shares, busy)
		}
	}
}
