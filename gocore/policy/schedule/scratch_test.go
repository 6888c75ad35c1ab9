package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestScratchGrid(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		var ratios, losses []float64
		cut := 0
		rng := rand.New(rand.NewPCG(3, 4))
		var spent time.Duration
		for i, c := range grid() {
			if i%5 != 0 {
				continue
			}
			in := c.instance(60, 0.1, rng)
			in.Overlap, in.Slowdown = overlap, 1.3
			began := time.Now()
			r, err := Bounded(in, 0)
			spent += time.Since(began)
			if err != nil {
				t.Fatal(err)
			}
			_, base, _ := BestBaseline(in)
			ratio := float64(base.Application) / float64(r.Outcome.Application)
			ratios = append(ratios, ratio)
			if !r.Optimal {
				cut++
				wide, _ := Bounded(in, 100)
				loss := float64(r.Outcome.Application) / float64(wide.Outcome.Application)
				losses = append(losses, loss)
				if loss > 1.004 || ratio < 1 {
					t.Log(c.name, loss, ratio, "\n", r.Plan, "\n", wide.Plan)
				}
			}
		}
		slices.Sort(ratios)
		slices.Sort(losses)
		t.Log(overlap, len(ratios), "cut", cut, ratios[0], ratios[len(ratios)/2], ratios[len(ratios)-1], spent)
		if len(losses) > 0 {
			t.Log(losses[0], losses[len(losses)/2], losses[len(losses)*9/10], losses[len(losses)-1])
		}
	}
}
