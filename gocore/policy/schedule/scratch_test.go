package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestScratchGrid(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(3, 4))
		var losses [4][]float64
		exact, slow := 0, 0
		var took time.Duration
		for i, c := range grid() {
			in := c.instance(60, 0.1, rng)
			if i%5 != 0 {
				continue
			}
			in.Overlap, in.Slowdown = overlap, 1.3
			var o [4]int64
			for k, w := range []int{12, 64, 128, 256} {
				began := time.Now()
				r, err := Bounded(in, w)
				if err != nil {
					t.Fatal(err)
				}
				o[k] = r.Outcome.Application
				if k == 3 {
					took = max(took, time.Since(began))
					if r.Optimal {
						exact++
					} else {
						slow++
					}
				}
			}
			for k := range o {
				losses[k] = append(losses[k], float64(o[k])/float64(slices.Min(o[:])))
			}
		}
		for k := range losses {
			l := losses[k]
			slices.Sort(l)
			t.Log(overlap, k, len(l), l[len(l)/2], l[len(l)*9/10], l[len(l)*95/100], l[len(l)-1])
		}
		t.Log(exact, slow, took)
	}
}
