package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
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
		Keeps:   rapid.Bool().Draw(t, "keeps"),
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
	in.Longest = rapid.SampledFrom([]int64{0, 0, 10, 50}).Draw(t, "longest run")
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

// The search without a width and without a limit from a bounded search, and Exact, find what brute force finds.
func equalsBruteForce(least, most int, overlap bool) func(*rapid.T) {
	return func(t *rapid.T) {
		in := instances(t, rapid.IntRange(least, most).Draw(t, "n"), overlap)
		want, plans := bruteForce(in)
		if plans == 0 {
			t.Fatal("not even the plan of U alone fits")
		}
		got, err := Exact(in, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got.Outcome.Application != want.Application || got.Outcome.Flushed != want.Flushed || !got.Optimal {
			t.Fatalf("%s: %+v, by brute force %+v", got.Plan, got, want)
		}
		r, err := in.rules()
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int64{math.MaxInt64, want.Application} {
			plain := newSearch(r, 0, 0, limit).run()
			if plain.Outcome.Application != want.Application || plain.Outcome.Flushed != want.Flushed {
				t.Fatalf("limit %d: %s: %+v, by brute force %+v", limit, plain.Plan, plain.Outcome, want)
			}
			if o, err := in.Run(plain.Plan); err != nil || o.Application != want.Application || o.Flushed != want.Flushed {
				t.Fatalf("limit %d: the simulator says %+v, %v for %s", limit, o, err, plain.Plan)
			}
		}
	}
}

// Each of these checks as many instances as rapid is told, several times.
func TestExactEqualsBruteForce(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		t.Run(fmt.Sprintf("overlap %v", overlap), func(t *testing.T) {
			for k := range 15 {
				t.Run(fmt.Sprint("up to 6, ", k), rapid.MakeCheck(equalsBruteForce(0, 6, overlap)))
			}
			for k := range 3 {
				t.Run(fmt.Sprint("7 or 8, ", k), rapid.MakeCheck(equalsBruteForce(7, 8, overlap)))
			}
		})
	}
}

// Twelve checkpoints have more than a hundred thousand plans.
func TestExactEqualsBruteForceForTwelve(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine searches: the run without the race detector says as much")
	}
	rng := rand.New(rand.NewPCG(11, 12))
	for k := range 4 {
		in := randomInstance(rng, 12-k%3, k%2 == 1)
		want, _ := bruteForce(in)
		got, err := Exact(in, 0)
		if err != nil || got.Outcome.Application != want.Application || got.Outcome.Flushed != want.Flushed {
			t.Fatalf("%+v, %v, by brute force %+v", got, err, want)
		}
	}
}

// randomInstance has checkpoints of 1 to 8 MiB and a cache for a few of them.
func randomInstance(rng *rand.Rand, n int, overlap bool) *Instance {
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	in := &Instance{
		Encoder: affine(int64(pick(5e3, 20e3, 95e3)), pick(50e9, 345e9, 1e12)), Link: Link{Rate: pick(25e9, 55e9), Fixed: int64(pick(0, 10e3))},
		Cache: int64(pick(5, 12, 40) * (1 << 20)), Overlap: overlap, Slowdown: pick(1, 1.2, 2),
	}
	pace, ratio := pick(20e9, 60e9, 200e9, 1e12), pick(0.9, 1.1, 1.5, 4, 20)
	for range n {
		size := float64(1<<20) * pick(1, 2, 2, 3, 8)
		in.Checkpoints = append(in.Checkpoints, Checkpoint{Size: int64(size), Encoded: int64(size / ratio * (0.9 + rng.Float64()/5)), Interval: int64(size / pace * 2e9 * rng.Float64())})
	}
	return in
}
