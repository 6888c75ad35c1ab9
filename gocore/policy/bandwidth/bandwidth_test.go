package bandwidth

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// link is a real link with a known transfer time.
type link struct {
	rate    float64 // bytes per second
	latency float64 // ns
}

func (l link) ns(bytes int64) int64 {
	return max(1, int64(l.latency+float64(bytes)/l.rate*1e9))
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %.4g, want %.4g ± %.0f %%", what, got, want, 100*tolerance)
	}
}

func TestPrior(t *testing.T) {
	e := New(2e9)
	near(t, "rate", e.Rate(), 2e9, 1e-9)
	near(t, "prediction", float64(e.Predict(2e9)), 1e9, 1e-6)
	for _, prior := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if r := New(prior).Rate(); r != fallback {
			t.Errorf("prior %v: rate %v", prior, r)
		}
	}
}

// A prior that is wrong by a factor of a hundred, either way, is corrected by a handful of transfers.
func TestWrongPrior(t *testing.T) {
	for _, prior := range []float64{1e7, 1e11} {
		l := link{rate: 1e9}
		e := New(prior)
		for range 5 {
			e.Observe(128<<20, l.ns(128<<20))
		}
		near(t, "rate", e.Rate(), l.rate, 0.25)
		for range 20 {
			e.Observe(128<<20, l.ns(128<<20))
		}
		near(t, "rate", e.Rate(), l.rate, 0.01)
	}
}

// Small transfers update the latency, leave the rate alone, and are predicted well themselves.
func TestSmallTransfersTeachTheLatency(t *testing.T) {
	l := link{rate: 5e9, latency: 80e3}
	e := New(5e9)
	for range 10 {
		e.Observe(64<<20, l.ns(64<<20))
	}
	rate := e.Rate()
	for i := range int64(10_000) {
		e.Observe(i%1024, l.ns(i%1024))
	}
	near(t, "rate", e.Rate(), rate, 1e-9)
	near(t, "latency", float64(e.Latency()), l.latency, 0.05)
	for _, bytes := range []int64{0, 1 << 10, 1 << 20, 1 << 30} {
		near(t, "prediction", float64(e.Predict(bytes)), float64(l.ns(bytes)), 0.1)
	}
}

// Each transfer weighs as much as its bytes.
func TestWeightedByBytes(t *testing.T) {
	e := New(1e9)
	fast, slow := link{rate: 1e9}, link{rate: 0.5e9}
	for range 100 {
		e.Observe(64<<20, fast.ns(64<<20))
		e.Observe(1<<20, slow.ns(1<<20))
	}
	near(t, "rate", e.Rate(), 65/(64/1e9+1/0.5e9), 0.01)
}

func TestOneStallIsForgiven(t *testing.T) {
	l := link{rate: 1e9}
	e := New(1e9)
	for range 50 {
		e.Observe(16<<20, l.ns(16<<20))
	}
	e.Observe(16<<20, 30e9)
	if r := e.Rate(); r < 0.8e9 {
		t.Errorf("rate %.3g after one stall", r)
	}
	e.Observe(1<<10, 2e3)
	e.Observe(1<<10, 5e9)
	if e.Latency() > 20e3 {
		t.Errorf("latency %d after one stall", e.Latency())
	}
}

// A latency learned in bad times does not keep bulk transfers from counting when times are better.
func TestLatencyRecovers(t *testing.T) {
	bad, good := link{rate: 1e9, latency: 200e6}, link{rate: 2e9, latency: 50e3}
	e := New(1e9)
	for range 1000 {
		e.Observe(1<<10, bad.ns(1<<10))
	}
	near(t, "latency", float64(e.Latency()), bad.latency, 0.05)
	for range 60 {
		e.Observe(64<<20, good.ns(64<<20))
	}
	near(t, "prediction", float64(e.Predict(64<<20)), float64(good.ns(64<<20)), 0.2)
}

// A lasting change of a link's rate, as of a disk whose write cache is full, is followed within about two seconds of transfers.
func TestLastingChangeIsFollowed(t *testing.T) {
	for _, to := range []float64{0.1e9, 10e9} {
		e := New(1e9)
		for range 100 {
			e.Observe(32<<20, link{rate: 1e9}.ns(32<<20))
		}
		l, spent := link{rate: to}, 0.0
		for spent < 2 || math.Abs(e.Rate()-to) > 0.3*to {
			ns := l.ns(32 << 20)
			e.Observe(32<<20, ns)
			if spent += float64(ns) / 1e9; spent > 8 {
				t.Fatalf("rate %.3g after %.1f s at %.3g", e.Rate(), spent, to)
			}
		}
		near(t, "rate", e.Rate(), to, 0.3)
	}
}

func TestNonsenseIsIgnored(t *testing.T) {
	e := New(1e9)
	for _, o := range [][2]int64{{-1, 100}, {100, 0}, {1 << 20, 0}, {1 << 20, -5}, {math.MinInt64, math.MinInt64}} {
		e.Observe(o[0], o[1])
	}
	if *e != *New(1e9) {
		t.Errorf("%+v", e)
	}
	if ns := e.Predict(-5); ns != 0 {
		t.Errorf("predicts %d for -5 bytes", ns)
	}
	if ns := New(1e-300).Predict(math.MaxInt64); ns != math.MaxInt64 {
		t.Errorf("predicts %d", ns)
	}
}

// Whatever is observed, predictions stay finite, never negative, and never less for more bytes.
func TestPredictionsStaySane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New(rapid.Float64().Draw(t, "prior"))
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			e.Observe(rapid.Int64().Draw(t, "bytes"), rapid.Int64().Draw(t, "ns"))
		}
		if r := e.Rate(); !(r > 0) || math.IsInf(r, 0) {
			t.Fatalf("rate %v", r)
		}
		a, b := rapid.Int64Min(0).Draw(t, "a"), rapid.Int64Min(0).Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		if pa, pb := e.Predict(a), e.Predict(b); pa < 0 || pb < pa {
			t.Fatalf("%d bytes: %d ns, %d bytes: %d ns", a, pa, b, pb)
		}
	})
}

// Over links of every kind, with noise, transfers of the sizes that a tier moves are predicted within 40 % or 10 µs.
func TestNoisyLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := link{
			rate:    math.Pow(10, rapid.Float64Range(7.5, 11).Draw(t, "rate")),
			latency: math.Pow(10, rapid.Float64Range(3, 5).Draw(t, "latency")),
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		e := New(1e9)
		for range 400 {
			bytes := int64(math.Pow(2, 8+20*rng.Float64()))
			e.Observe(bytes, max(1, int64(float64(l.ns(bytes))*(0.8+0.4*rng.Float64()))))
		}
		for _, bytes := range []int64{4 << 10, 16 << 20, 256 << 20} {
			got, want := float64(e.Predict(bytes)), float64(l.ns(bytes))
			if math.Abs(got-want) > 0.4*want+10e3 {
				t.Fatalf("%+v: %d bytes: predicts %.3g ns, takes %.3g", l, bytes, got, want)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	e := New(1e9)
	for i := range int64(b.N) {
		e.Observe(1<<20+i%1024, 1_000_000)
	}
}

func BenchmarkPredict(b *testing.B) {
	e := New(1e9)
	var sum int64
	for i := range int64(b.N) {
		sum += e.Predict(i)
	}
	_ = sum
}

// A better prior counts until transfers have been observed.
func TestAssume(t *testing.T) {
	e := New(1e9)
	for prior, want := range map[float64]float64{2e9: 2e9, 0: 2e9, -1: 2e9, math.Inf(1): 2e9, math.NaN(): 2e9} {
		e.Assume(2e9)
		if e.Assume(prior); math.Abs(e.Rate()-want) > 1 {
			t.Errorf("prior %g: %g", prior, e.Rate())
		}
	}
	e.Observe(1<<30, 1e9)
	seen := e.Rate()
	if e.Assume(9e9); e.Rate() != seen {
		t.Errorf("%g after a transfer at %g", e.Rate(), seen)
	}
}
