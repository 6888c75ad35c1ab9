package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// No search is worse than a baseline, whatever its width, and the result is what the simulator says.
func TestNeverWorseThanBaselines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t, rapid.IntRange(0, 40).Draw(t, "n"), rapid.Bool().Draw(t, "overlap"))
		width := rapid.IntRange(0, 5).Draw(t, "width")
		got, err := Bounded(in, width)
		if err != nil {
			t.Fatal(err)
		}
		exact, err := Exact(in, 2000)
		if err != nil {
			t.Fatal(err)
		}
		base, out, err := BestBaseline(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []Result{got, exact} {
			if o, err := in.Run(r.Plan); err != nil || o != r.Outcome {
				t.Fatalf("%+v, but the simulator says %+v, %v", r, o, err)
			}
			if out.Before(r.Outcome) {
				t.Fatalf("%s: %+v, and %s %+v", r.Plan, r.Outcome, base.Name, out)
			}
		}
		if got.Outcome.Before(exact.Outcome) && exact.Optimal || got.Optimal && exact.Outcome.Before(got.Outcome) {
			t.Fatalf("bounded %+v, exact %+v", got, exact)
		}
		for _, r := range []Result{got, exact} {
			if r.Optimal && (got.Outcome.Application < r.Outcome.Application || exact.Outcome.Application < r.Outcome.Application) {
				t.Fatalf("bounded %+v, exact %+v", got, exact)
			}
		}
	})
}

// What Bounded loses against the optimum on even and uneven instances of up to 60 checkpoints, with its default width and with the one that it has for a
// thousand checkpoints. Instances for which Exact gives up do not count. The losses are deterministic.
func TestBoundedLoss(t *testing.T) {
	testLoss(t, func(*Instance) {}, map[int]loss{0: {0.0001, 0.005}, leastWidth: {0.001, 0.025}})
}

// The same with runs that are bounded and keep their input, for which the states are ranked less well.
func TestBoundedLossOfTheStore(t *testing.T) {
	testLoss(t, func(in *Instance) { in.Keeps, in.Longest = true, longestRun }, map[int]loss{0: {0.0005, 0.02}, leastWidth: {0.002, 0.05}})
}

type loss struct{ mean, most float64 }

func testLoss(t *testing.T, change func(*Instance), limits map[int]loss) {
	if raceDetector {
		t.Skip("one goroutine searches: the run without the race detector says as much")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	cells := grid()
	losses := map[int][]float64{}
	for k := range 120 {
		n, overlap := 1+rng.IntN(60), k%4 < 2
		in := randomInstance(rng, n, overlap)
		if k%2 == 0 {
			in = cells[rng.IntN(len(cells))].instance(n, 0.1, rng)
			in.Overlap, in.Slowdown = overlap, 1.3
		}
		change(in)
		exact, err := Exact(in, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if !exact.Optimal {
			continue
		}
		for _, width := range []int{0, leastWidth} {
			bounded, err := Bounded(in, width)
			if err != nil {
				t.Fatal(err)
			}
			losses[width] = append(losses[width], float64(bounded.Outcome.Application)/float64(exact.Outcome.Application)-1)
		}
	}
	for width, limit := range limits {
		list, sum := losses[width], 0.0
		for _, loss := range list {
			sum += loss
		}
		slices.Sort(list)
		mean, most := sum/float64(len(list)), list[len(list)-1]
		t.Logf("width %d, %d instances: mean loss %.4f %%, 95 of 100 at most %.4f %%, greatest %.4f %%", width, len(list), 100*mean, 100*list[len(list)*95/100], 100*most)
		if len(list) < 70 || mean > limit.mean || most > limit.most {
			t.Errorf("%d instances, mean loss %v, greatest %v", len(list), mean, most)
		}
	}
}

func TestBaselinesFit(t *testing.T) {
	in := &Instance{
		Checkpoints: slices.Concat(alikeCheckpoints(3, Checkpoint{10, 5, 4}), []Checkpoint{{50, 5, 4}, {90, 5, 0}}, alikeCheckpoints(2, Checkpoint{10, 5, 4})),
		Encoder:     Encoder{Time: constant(1)}, Link: Link{Rate: 1e9}, Cache: 60,
	}
	all, err := Baselines(in)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, b := range all {
		text = append(text, fmt.Sprint(b.Name, " ", b.Plan))
	}
	want := []string{"none UUUUUUU", "alone CCCUUCC", "accumulate 2 AXCUUAX", "accumulate 4 AAXUUAX", "accumulate 8 AAXUUAX"}
	if !slices.Equal(text[:5], want) {
		t.Errorf("%q, want %q", text, want)
	}
}

func TestSameInputSamePlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	in := randomInstance(rng, 200, true)
	first, err := Bounded(in, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := Bounded(in, 0); err != nil || again.Plan.String() != first.Plan.String() || again.Outcome != first.Outcome || again.Visited != first.Visited {
			t.Fatalf("%+v, %v, then %+v", first, err, again)
		}
	}
}

// A cache beyond all checkpoints changes nothing, up to the largest number.
func TestVastCache(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	in := &Instance{Encoder: Encoder{Time: Cost{Fixed: 1e-6, Rate: 5e9}.Time}, Link: Link{Rate: 1e9, Fixed: 10}, Cache: 1 << 50}
	for range 30 {
		n := random.Int64N(1 << 20)
		in.Checkpoints = append(in.Checkpoints, Checkpoint{Size: n, Encoded: random.Int64N(n + 1), Interval: random.Int64N(1 << 19)})
	}
	want, err := Exact(in, 2000)
	if err != nil {
		t.Fatal(err)
	}
	in.Cache = math.MaxInt64
	got, err := Exact(in, 2000)
	if err != nil || got.Plan.String() != want.Plan.String() || got.Outcome != want.Outcome {
		t.Errorf("%+v, want %+v: %v", got, want, err)
	}
	// A call of the encoder whose buffer is as large as the cache has no room for its input.
	in.Encoder.Temporary = func(int64) int64 { return math.MaxInt64 }
	if _, err := in.Run(Plan("C" + strings.Repeat("U", 29))); !errors.Is(err, ErrPlan) {
		t.Errorf("a buffer beyond the cache: %v", err)
	}
}

// A search of one state at a time is no worse than a baseline either, which it only is since it follows the best ones: without them every tenth would be.
func TestNarrowSearchFollowsBaselines(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, encoder := 10+r.IntN(60), Cost{Fixed: float64(r.IntN(2000)) * 1e-9, Rate: (1 + 9*r.Float64()) * 1e9}
		in := &Instance{Encoder: Encoder{Time: encoder.Time}, Link: Link{Rate: 1e9, Fixed: r.Int64N(300)}, Cache: 2000 + r.Int64N(20000)}
		for range n {
			size := 1 + r.Int64N(1000)
			in.Checkpoints = append(in.Checkpoints, Checkpoint{Size: size, Encoded: size * (10 + r.Int64N(80)) / 100, Interval: r.Int64N(900)})
		}
		got, err := Bounded(in, 1)
		if err != nil {
			t.Fatal(err)
		}
		best, out, err := BestBaseline(in)
		if err != nil || out.Before(got.Outcome) {
			t.Fatalf("seed %d: %+v, and %q has %+v: %v", seed, got.Outcome, best.Name, out, err)
		}
	}
}
