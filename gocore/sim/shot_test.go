package sim

import (
	"testing"

	"velocpy/gocore/engine"
)

func uniform(n int, size int64) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = size
	}
	return s
}

func hostAndDisk(host int64) engine.Config {
	return engine.Config{
		Tiers:    []engine.TierConfig{{Name: "host", Capacity: host, Grain: 64}, {Name: "disk", Capacity: 1 << 40, Grain: 4096}},
		Prefetch: true, Guess: true,
	}
}

func TestReverseSweepEightTimesTheCacheIsNeverLate(t *testing.T) {
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
			t.Logf("flush %d hints %s: hits %d/%d distance %.1f blocked %d+%d us copying %d us written %d read %d of %d", flush, hints, r.Hits, r.Restores, r.Distance,
				r.CaptureBlocked/1000, r.RestoreBlocked/1000, r.Copying/1000, r.Written, r.Read, int64(n*size))
		}
	}
}
