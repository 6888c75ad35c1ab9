package schedule

import (
	"testing"

	"pgregory.net/rapid"
)

// everyPlan visits all plans for n checkpoints.
func everyPlan(n int, visit func(Plan)) {
	plan := make(Plan, n)
	var from func(i int, open bool)
	from = func(i int, open bool) {
		if i == n {
			visit(plan)
			return
		}
		choices := []Decision{Whole, Alone, Accumulate}
		if open {
			choices = []Decision{Bulk, Accumulate}
		}
		for _, d := range choices {
			if d == Accumulate && i == n-1 {
				continue
			}
			plan[i] = d
			from(i+1, d == Accumulate)
		}
	}
	from(0, false)
}

// bruteForce is the best outcome of all plans that fit, by the simulator.
func bruteForce(in *Instance) (best Outcome, plans int) {
	everyPlan(len(in.Checkpoints), func(p Plan) {
		o, err := in.Run(p)
		if err != nil {
			return
		}
		if plans++; plans == 1 || o.Before(best) {
			best = o
		}
	})
	return best, plans
}

// instances draws small problems whose numbers collide often: few sizes, few intervals, a cache of a few checkpoints.
func instances(t *rapid.T, n int, overlap bool) *Instance {
	in := &Instance{
		Cache:   rapid.Int64Range(0, 60).Draw(t, "cache"),
		Link:    Link{Rate: rapid.SampledFrom([]float64{1e9, 0.5e9, 0.3e9, 7e9}).Draw(t, "rate"), Fixed: rapid.SampledFrom([]int64{0, 0, 1, 7}).Draw(t, "fixed")},
		Overlap: overlap,
	}
	if overlap {
		in.Slowdown = rapid.SampledFrom([]float64{1, 1.1, 1.5, 2, 3.3, 50}).Draw(t, "slowdown")
	}
	fixed := rapid.SampledFrom([]int64{0, 1, 5, 20, 1000}).Draw(t, "encoder's fixed time")
	perByte := rapid.SampledFrom([]int64{0, 1, 2, 5, 30}).Draw(t, "encoder's bytes/ns")
	in.Encoder.Time = func(n int64) int64 {
		if perByte == 0 {
			return fixed
		}
		return fixed + (n+perByte-1)/perByte
	}
	switch header := rapid.Int64Range(-1, 3).Draw(t, "temporary buffer"); header {
	case -1:
	case 0:
		in.Encoder.Temporary = func(int64) int64 { return 0 }
	default:
		in.Encoder.Temporary = func(n int64) int64 { return n + header }
	}
	largest := rapid.SampledFrom([]int64{3, 15, 40, 90}).Draw(t, "largest")
	interval := rapid.SampledFrom([]int64{0, 3, 20, 60}).Draw(t, "longest interval")
	equal := rapid.Bool().Draw(t, "equal")
	for i := range n {
		c := Checkpoint{
			Size:     rapid.Int64Range(0, largest).Draw(t, "size"),
			Encoded:  rapid.Int64Range(0, largest/2+3).Draw(t, "encoded"),
			Interval: rapid.Int64Range(0, interval).Draw(t, "interval"),
		}
		if equal && i > 0 {
			c.Size = in.Checkpoints[0].Size
		}
		in.Checkpoints = append(in.Checkpoints, c)
	}
	return in
}

func equalsBruteForce(most int, overlap bool) func(*rapid.T) {
	return func(t *rapid.T) {
		in := instances(t, rapid.IntRange(0, most).Draw(t, "n"), overlap)
		want, _ := bruteForce(in)
		got, err := Exact(in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Outcome.Application != want.Application || got.Outcome.Flushed != want.Flushed || !got.Optimal {
			t.Fatalf("%s: %+v, by brute force %+v", got.Plan, got, want)
		}
	}
}

func TestExactEqualsBruteForce(t *testing.T)            { rapid.Check(t, equalsBruteForce(7, false)) }
func TestExactWithOverlapEqualsBruteForce(t *testing.T) { rapid.Check(t, equalsBruteForce(7, true)) }
