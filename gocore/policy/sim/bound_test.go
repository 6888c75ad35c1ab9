package sim

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// No policy beats the bound, whatever the shot and the machine are.
func TestNoPolicyBeatsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "checkpoints")
		s := Shot{
			Sizes: make([]int64, n), Compute: rapid.Int64Range(0, 3e6).Draw(t, "compute"), Hints: rapid.SampledFrom([]Hints{NoHints, OneHint, AllHints}).Draw(t, "hints"),
			Last: rapid.Bool().Draw(t, "last"), WaitDown: rapid.Bool().Draw(t, "wait"),
		}
		unit := rapid.Int64Range(1, 1e6).Draw(t, "unit")
		for i := range s.Sizes {
			s.Sizes[i] = unit * rapid.Int64Range(1, 4).Draw(t, "size")
		}
		s.Order = rapid.SampledFrom([][]int64{Sequential(n), Reverse(n), Irregular(n, 3), append(Reverse(n), Sequential(n)...)}).Draw(t, "order")
		if len(s.Order) > n {
			s.Last = false
		}
		if rapid.Bool().Draw(t, "several") { // the further histories have every second checkpoint and pause in between
			for i := range rapid.IntRange(1, 3).Draw(t, "histories") {
				track := Track{Name: string(rune('a' + i)), Sizes: s.Sizes, Order: Turns(s.Order)}
				if i > 0 {
					track = Track{Name: track.Name, Sizes: s.Sizes[:(n+1)/2]}
					for k := range track.Sizes {
						track.Order = append(track.Order, Turn{Steps: rapid.Int64Range(1, 5).Draw(t, "steps")}, Turn{Key: int64(k)})
					}
				}
				s.Tracks = append(s.Tracks, track)
			}
		}
		cfg := engine.Config{
			Policy: rapid.SampledFrom([]evict.Kind{evict.Score, evict.LRU, evict.FIFO}).Draw(t, "policy"), Prefetch: rapid.Bool().Draw(t, "prefetch"), Guess: true,
			Flush: rapid.SampledFrom([]engine.FlushMode{engine.Lazy, engine.Eager}).Draw(t, "flush"),
		}
		tiers := rapid.IntRange(2, 4).Draw(t, "tiers")
		var media []Medium
		for i := range tiers {
			c := engine.TierConfig{Name: "tier", Capacity: unit * rapid.Int64Range(4, 30<<i).Draw(t, "capacity")}
			if i == tiers-1 {
				c.Capacity = unit * 4 * int64(3*n+3)
			} else {
				rate := func(name string) float64 { return rapid.Float64Range(1e7, 1e10).Draw(t, name) }
				media = append(media, Medium{WriteRate: rate("write"), ReadRate: rate("read"), Workers: rapid.IntRange(1, 3).Draw(t, "workers")})
			}
			cfg.Tiers = append(cfg.Tiers, c)
		}
		m := NewMachine(cfg, media, rapid.Float64Range(1e8, 1e11).Draw(t, "copies"))
		r, err := s.Run(m)
		if err != nil {
			t.Fatal(err)
		}
		bound, slack := m.LowerBound(&s), int64(60*(n+len(s.Order))) // every duration is rounded down to whole ns
		if blocked := r.CaptureBlocked + r.RestoreBlocked; blocked < bound-slack {
			t.Fatalf("blocked for %d ns, the bound is %d", blocked, bound)
		}
		if bound < r.Copying-slack {
			t.Fatalf("the bound is %d ns, copies alone take %d", bound, r.Copying)
		}
	})
}

// With equal sizes and a known order, eager flushing comes close to the bound even if the disk cannot keep up. If it can, so does lazy flushing.
func TestFullKnowledgeComesCloseToTheBound(t *testing.T) {
	for _, c := range []struct {
		order   []int64
		compute int64
		flush   engine.FlushMode
		times   float64
	}{
		{Reverse(shotLength), 10e6, engine.Eager, 1.05},
		{Irregular(shotLength, 7), 10e6, engine.Eager, 1.08},
		{Reverse(shotLength), 70e6, engine.Lazy, 1.01},
		{Sequential(shotLength), 70e6, engine.Lazy, 1.01},
		{Irregular(shotLength, 7), 70e6, engine.Lazy, 1.01},
		{Reverse(shotLength), 70e6, engine.Eager, 1.01},
	} {
		r, bound := play(t, &hostMachine, Shot{Sizes: uniform(shotLength, 128<<20), Compute: c.compute, Order: c.order, Hints: AllHints, Last: true}, evict.Score, c.flush)
		if blocked := float64(r.CaptureBlocked + r.RestoreBlocked); blocked > c.times*float64(bound) {
			t.Errorf("order %v… every %d ns, flush %d: blocked for %.2f of the bound", c.order[:2], c.compute, c.flush, blocked/float64(bound))
		}
	}
}

// A history eight times the host, read backwards without a hint, at an interval that lets the disk keep up.
func TestReverseSweepEightTimesTheHostIsNeverLate(t *testing.T) {
	const n, size = 512, 1 << 20
	for _, flush := range []engine.FlushMode{engine.Lazy, engine.Eager} {
		for _, hints := range []Hints{NoHints, OneHint, AllHints} {
			cfg := hostAndDisk(n * size / 8)
			cfg.Flush = flush
			m := NewMachine(cfg, []Medium{{WriteRate: 1e9, ReadRate: 1e9, Workers: 2, Latency: 100e3}}, 10e9)
			s := Shot{Sizes: uniform(n, size), Order: Reverse(n), Compute: 3e6, Hints: hints, Last: true}
			r, err := s.Run(m)
			if err != nil {
				t.Fatal(err)
			}
			if r.Hits*100 < 95*r.Restores {
				t.Errorf("flush %d hints %s: %d of %d restores found their checkpoint", flush, hints, r.Hits, r.Restores)
			}
			if blocked, bound := r.CaptureBlocked+r.RestoreBlocked, m.LowerBound(&s); float64(blocked) > 1.2*float64(bound)+0.01*float64(2*n*s.Compute) {
				t.Errorf("flush %d hints %s: blocked for %d ns, the bound is %d", flush, hints, blocked, bound)
			}
		}
	}
}

// bisect plays a schedule of the Revolve family: states are captured, restored and dropped in turns, keys are written again and again. It visits
// every state from lo to hi backwards, with at most slots checkpoints at once beside lo, which is held.
func bisect(t testing.TB, m *Machine, h *engine.History, lo, hi, slots, size, compute int64) {
	get := func(last bool) {
		m.Pass(compute)
		if _, _, err := m.Restore(h, lo, engine.RestoreOptions{Last: last}); err != nil {
			t.Fatal(err)
		}
	}
	if hi-lo == 1 {
		get(true)
		return
	}
	if slots == 0 {
		for i := hi - lo; i > 0; i-- {
			get(i == 1)
			m.Pass(compute * i)
		}
		return
	}
	mid := lo + (hi-lo+1)/2
	get(false)
	m.Pass(compute * (mid - lo))
	if _, err := m.Capture(h, mid, size, engine.CaptureOptions{}); err != nil {
		t.Fatal(err)
	}
	bisect(t, m, h, mid, hi, slots-1, size, compute)
	bisect(t, m, h, lo, mid, slots, size, compute)
}

// interleaved plays a schedule of 4096 steps with 16 checkpoints of 1 MiB at once over a host cache of 12. It returns the bytes captured and written,
// and the time.
func interleaved(t testing.TB, flush engine.FlushMode) (captured, written, elapsed int64) {
	cfg := hostAndDisk(12 * mib)
	cfg.Flush = flush
	m := NewMachine(cfg, []Medium{{WriteRate: 1e9, ReadRate: 1e9, Workers: 2, Latency: 100e3}}, 10e9)
	h := m.Engine.History("h")
	if _, err := m.Capture(h, 0, mib, engine.CaptureOptions{}); err != nil {
		t.Fatal(err)
	}
	bisect(t, m, h, 0, 4096, 16, mib, 1e6)
	elapsed = m.Now()
	m.Until(func() bool { return false })
	if h.Len() != 0 {
		t.Errorf("%d checkpoints are left", h.Len())
	}
	return m.Engine.Stats.Captured, m.Engine.Stats.Tiers[1].Written, elapsed
}

// The writes that lazy flushing avoids when captures and restores alternate: most checkpoints are consumed in the cache.
func TestLazySavesMostWritesOfAnInterleavedSchedule(t *testing.T) {
	captured, lazily, took := interleaved(t, engine.Lazy)
	_, eagerly, tookEagerly := interleaved(t, engine.Eager)
	if lazily*10 > eagerly {
		t.Errorf("lazily %d bytes were written, eagerly %d, of %d", lazily, eagerly, captured)
	}
	if float64(took) > 1.01*float64(tookEagerly) {
		t.Errorf("lazily it took %d ns, eagerly %d", took, tookEagerly)
	}
}

var errDisk = errors.New("the disk is gone")

func TestTransfersThatFailFailTheirRestoreOnly(t *testing.T) {
	m := slowDisk(4, engine.Eager, nil)
	h := m.Engine.History("h")
	for k := range int64(8) {
		m.mustCapture(t, h, k, mib)
	}
	m.Until(func() bool { return false })
	m.Fail(func(x *engine.Transfer) error {
		if x.Kind == engine.Load && x.Rec.Key == Key(0) {
			return errDisk
		}
		return nil
	})
	if _, _, err := m.Restore(h, 0, engine.RestoreOptions{}); err == nil {
		t.Error("the load failed, the restore did not")
	}
	m.mustRestore(t, h, 1, false)
	m.Fail(nil)
	m.mustRestore(t, h, 0, false)
}

func BenchmarkShot(b *testing.B) {
	for b.Loop() {
		play(b, &hostMachine, Shot{Sizes: uniform(64, 128<<20), Compute: 70e6, Order: Reverse(64), Hints: AllHints, Last: true}, evict.Score, engine.Lazy)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "scenarios/s")
}
