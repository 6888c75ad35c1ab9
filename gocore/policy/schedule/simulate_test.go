package schedule

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func constant(t int64) func(int64) int64 { return func(int64) int64 { return t } }

func alikeCheckpoints(n int, c Checkpoint) []Checkpoint {
	all := make([]Checkpoint, n)
	for i := range all {
		all[i] = c
	}
	return all
}

// The numbers are worked out by hand.
func TestRunByHand(t *testing.T) {
	// Three checkpoints of 10 bytes, 4 ns apart, a cache of 20 bytes, and a link of 1 byte/ns. UUU: the captures come at 4 and 8, with transfers
	// 4-14 and 14-24. The third one comes at 12, finds 20 bytes in use, and waits for the first transfer until 14; its own is 24-34.
	waits := &Instance{Checkpoints: alikeCheckpoints(3, Checkpoint{10, 5, 4}), Encoder: Encoder{Time: constant(1000)}, Link: Link{Rate: 1e9}, Cache: 20}
	// Four checkpoints of 10 bytes or 1 encoded, no intervals, a cache of 20 bytes, no temporary buffer, 5 ns for each call of the encoder, and a link
	// of 0.1 bytes/ns. AXCU: A takes 10 bytes, X the other 10, and the encoder runs 0-5; 2 bytes go over the link 5-25. C takes 10 of 18 free bytes,
	// and the encoder runs 5-10; 1 byte goes 25-35. U takes 10 of 17 at 10; its transfer is 35-135. The application ends at 10. Nothing is better:
	// with one call of the encoder at most, 20 bytes or more would be flushed as they are, and one of these captures waits for a transfer that ends at
	// 25 or later; two calls take 10.
	mixed := &Instance{
		Checkpoints: alikeCheckpoints(4, Checkpoint{10, 1, 0}), Encoder: Encoder{Time: constant(5), Temporary: constant(0)}, Link: Link{Rate: 1e8}, Cache: 20,
	}
	// Two checkpoints of 10 bytes or 2 encoded, 4 ns apart, an encoder of 6 ns beside the application, which it slows down to half, and a cache of 30
	// bytes. CC: the first capture comes at 4 and holds 20 bytes while the encoder runs 4-10; its transfer is 10-12. The application does 3 ns of its
	// 4 ns until 10 and the rest until 11. The second capture finds 2 bytes in use or fewer, the encoder runs 11-17, and the transfer is 17-19.
	// UC: the first transfer is 4-14, the second capture comes at 8 and holds 20 bytes beside 10, the encoder runs 8-14, and the transfer is 14-16.
	beside := &Instance{
		Checkpoints: alikeCheckpoints(2, Checkpoint{10, 2, 4}), Encoder: Encoder{Time: constant(6)}, Link: Link{Rate: 1e9}, Cache: 30, Overlap: true, Slowdown: 2,
	}
	// A checkpoint of 50 bytes passes by a cache of 20: it comes at 1 while the link carries 10 bytes until 11 (1 ns fixed), and blocks until 62. Then
	// the cache is empty.
	past := &Instance{Checkpoints: []Checkpoint{{9, 9, 1}, {50, 1, 0}, {20, 1, 3}}, Encoder: Encoder{Time: constant(0)}, Link: Link{Rate: 1e9, Fixed: 1}, Cache: 20}
	for _, c := range []struct {
		in      *Instance
		plan    string
		want    Outcome
		optimal string // the best plan
	}{
		{waits, "UUU", Outcome{Application: 14, Flushed: 34, Waited: 2, Linked: 30, Peak: 20}, "UUU"},
		{mixed, "AXCU", Outcome{Application: 10, Flushed: 135, Encoded: 10, Linked: 130, Peak: 20}, "AXCU"},
		{beside, "CC", Outcome{Application: 11, Flushed: 19, Encoded: 12, Linked: 4, Peak: 20}, "UC"},
		{beside, "UC", Outcome{Application: 8, Flushed: 16, Encoded: 6, Linked: 12, Peak: 30}, "UC"},
		{past, "UUU", Outcome{Application: 65, Flushed: 86, Waited: 61, Linked: 82, Peak: 20}, "UUU"},
	} {
		plan, err := ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		if c.plan == "CC" {
			c.want.Peak = 22 // 2 encoded bytes of the first are on the link until 12
		}
		got, err := c.in.Run(plan)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.plan, got, err, c.want)
		}
		best, err := Exact(c.in, 0)
		if err != nil || best.Plan.String() != c.optimal || !best.Optimal {
			t.Errorf("optimal is %s, %v, want %s", best.Plan, err, c.optimal)
		}
	}
}

func TestRunRefusesPlans(t *testing.T) {
	in := &Instance{Checkpoints: alikeCheckpoints(3, Checkpoint{10, 5, 4}), Encoder: Encoder{Time: constant(1)}, Link: Link{Rate: 1e9}, Cache: 20}
	for plan, why := range map[string]string{
		"":     "0 decisions for 3",
		"UUUU": "4 decisions for 3",
		"UBU":  `decision 1 is 'B'`,
		"AUX":  "only A and X may follow an A",
		"ACU":  "only A and X may follow an A",
		"UXU":  "no A precedes it",
		"UUA":  "no X follows",
		"AXU":  "never fit a cache of 20 B", // 20 bytes and as many for the temporary buffer
		"AAX":  "never fit a cache of 20 B",
	} {
		if _, err := in.Run(Plan(plan)); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", plan, err, why)
		}
	}
	if _, err := ParsePlan("CAAXU"); err != nil {
		t.Error(err)
	}
	if _, err := ParsePlan("AA"); !errors.Is(err, ErrPlan) {
		t.Error(err)
	}
}

func TestInstanceIsChecked(t *testing.T) {
	for name, spoil := range map[string]func(*Instance){
		"no oracle":         func(in *Instance) { in.Encoder.Time = nil },
		"rate 0":            func(in *Instance) { in.Link.Rate = 0 },
		"rate NaN":          func(in *Instance) { in.Link.Rate = math.NaN() },
		"rate infinite":     func(in *Instance) { in.Link.Rate = math.Inf(1) },
		"rate denormal":     func(in *Instance) { in.Link.Rate = 5e-324 },
		"fixed below zero":  func(in *Instance) { in.Link.Fixed = -1 },
		"cache below zero":  func(in *Instance) { in.Cache = -1 },
		"size below zero":   func(in *Instance) { in.Checkpoints[1].Size = -1 },
		"encoded below":     func(in *Instance) { in.Checkpoints[1].Encoded = -1 },
		"interval below":    func(in *Instance) { in.Checkpoints[1].Interval = -1 },
		"sizes overflow":    func(in *Instance) { in.Checkpoints[0].Size, in.Checkpoints[1].Size = math.MaxInt64, math.MaxInt64 },
		"times overflow":    func(in *Instance) { in.Checkpoints[0].Interval = math.MaxInt64 },
		"encoder overflows": func(in *Instance) { in.Encoder.Time = constant(math.MaxInt64) },
		"slowdown missing":  func(in *Instance) { in.Overlap = true },
		"slowdown below 1":  func(in *Instance) { in.Overlap, in.Slowdown = true, 0.5 },
		"slowdown NaN":      func(in *Instance) { in.Overlap, in.Slowdown = true, math.NaN() },
		"buffer below zero": func(in *Instance) { in.Encoder.Temporary = constant(-1) },
	} {
		in := &Instance{Checkpoints: alikeCheckpoints(2, Checkpoint{10, 5, 4}), Encoder: Encoder{Time: constant(1)}, Link: Link{Rate: 1e9}, Cache: 100}
		spoil(in)
		_, run := in.Run(Plan("UU"))
		_, exact := Exact(in, 0)
		_, bounded := Bounded(in, 0)
		_, _, base := BestBaseline(in)
		for _, err := range []error{run, exact, bounded, base} {
			if !errors.Is(err, ErrInstance) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestNoCheckpoints(t *testing.T) {
	in := &Instance{Encoder: Encoder{Time: constant(1)}, Link: Link{Rate: 1}}
	for _, find := range []func() (Result, error){func() (Result, error) { return Exact(in, 0) }, func() (Result, error) { return Bounded(in, 0) }} {
		if r, err := find(); err != nil || len(r.Plan) != 0 || r.Outcome != (Outcome{}) || !r.Optimal {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// What every outcome satisfies, whatever the plan.
func TestRunInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t, rapid.IntRange(0, 30).Draw(t, "n"), rapid.Bool().Draw(t, "overlap"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "plan"), 0))
		plan, work := make(Plan, len(in.Checkpoints)), int64(0)
		for i := range plan {
			work += in.Checkpoints[i].Interval
			switch open := i > 0 && plan[i-1] == Accumulate; {
			case i == len(plan)-1 && open || open && rng.IntN(2) == 0:
				plan[i] = Bulk
			case open || i < len(plan)-1 && rng.IntN(3) == 0:
				plan[i] = Accumulate
			default:
				plan[i] = []Decision{Whole, Alone}[rng.IntN(2)]
			}
		}
		o, err := in.Run(plan)
		if err != nil {
			if !strings.Contains(err.Error(), "never fit") && (in.Longest == 0 || !strings.Contains(err.Error(), "are allowed")) {
				t.Fatalf("%s: %v", plan, err)
			}
			return
		}
		if o.Peak > in.Cache || o.Waited < 0 || o.Linked > o.Flushed || len(plan) > 0 && o.Flushed < o.Application && !in.Overlap && plan[len(plan)-1] != Whole {
			t.Fatalf("%s: %+v", plan, o)
		}
		if blocked := o.Application - work - o.Waited; !in.Overlap && blocked != o.Encoded || in.Overlap && blocked < 0 {
			t.Fatalf("%s: %+v: %d ns are not explained", plan, o, blocked)
		}
	})
}

// rules.work is what the proof of the dominance rule takes for granted: it falls neither with the clock nor with the encoder's end, and with an encoder
// at rest it is plain addition.
func TestWorkIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &Instance{Encoder: Encoder{Time: constant(1)}, Link: Link{Rate: 1}, Overlap: true, Slowdown: rapid.Float64Range(1, 1024).Draw(t, "slowdown")}
		r, err := in.rules()
		if err != nil {
			t.Fatal(err)
		}
		most := rapid.SampledFrom([]int64{30, 1e6, 1e15}).Draw(t, "most")
		now, busy, interval := rapid.Int64Range(0, most).Draw(t, "now"), rapid.Int64Range(0, most).Draw(t, "busy"), rapid.Int64Range(0, most).Draw(t, "interval")
		end := r.work(now, busy, interval)
		if end < now+interval || r.work(now+1, busy, interval) < end || r.work(now, busy+1, interval) < end || r.work(now, busy, interval+1) < end {
			t.Fatalf("%d", end)
		}
		if busy <= now && end != now+interval {
			t.Fatalf("%d with an encoder at rest", end)
		}
	})
}
