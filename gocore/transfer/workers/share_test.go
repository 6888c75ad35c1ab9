package workers

import (
	"math/rand/v2"
	"testing"
)

// The shares of transfers that run beside each other add up to the time in which any ran, and none is longer than its transfer.
func TestShares(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var o occupied
		var under []use
		now, busy, shares, ended := int64(0), int64(0), int64(0), int64(0)
		end := func(i int) {
			share := under[i].end(now, r.Int64N(100))
			if share < 0 || share > now-under[i].began {
				t.Fatalf("seed %d: a share of %d in %d ns", seed, share, now-under[i].began)
			}
			shares += share
			ended++
			under = append(under[:i], under[i+1:]...)
		}
		for range 100 {
			step := r.Int64N(1000)
			if len(under) > 0 {
				busy += step
			}
			now += step
			if len(under) == 0 || len(under) < 5 && r.IntN(2) == 0 {
				under = append(under, o.begin(now))
			} else {
				end(r.IntN(len(under)))
			}
		}
		for len(under) > 0 {
			end(0)
		}
		if shares > busy || shares < busy-ended { // each is rounded
			t.Errorf("seed %d: shares of %d in %d ns", seed, shares, busy)
		}
	}
}
