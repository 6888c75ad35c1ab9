package sim

import (
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// archiveMachine is a host over a disk that is too small for a shot of 384 checkpoints of 128 MiB, over an archive that is not.
var archiveMachine = machine{"host 3.7 GiB over SSD 14.9 GiB over an archive",
	[]engine.TierConfig{
		{Name: "host", Capacity: 4 * gb, Grain: 4096}, {Name: "disk", Capacity: 16 * gb, Grain: 4096, Remote: true, Durable: true},
		{Name: "archive", Capacity: 1000 * gb, Grain: 4096, Remote: true, Durable: true},
	},
	[]Medium{{WriteRate: 2e9, ReadRate: 2e9, Workers: 2, Latency: 100e3}, {WriteRate: 1e9, ReadRate: 1e9, Workers: 2, Latency: 2e6}}, 10e9}

// A shot goes down to the archive and comes up again, in every order, under every policy. The bytes that neither the host nor the disk can hold cross
// the link to the archive, and an announced order lets the restores come close to the rate of that link.
func TestAShotOverAnArchive(t *testing.T) {
	const size, compute = 128 << 20, int64(10e6)
	rest := shotLength*size - 4*gb - 16*gb
	for _, o := range orders {
		for _, hints := range []Hints{NoHints, OneHint, AllHints} {
			for _, p := range []evict.Kind{evict.Score, evict.LRU, evict.FIFO} {
				for _, f := range []engine.FlushMode{engine.Lazy, engine.Eager} {
					s := Shot{Sizes: uniform(shotLength, size), Compute: compute, Order: o.make(), Hints: hints, Last: true}
					r, bound := play(t, &archiveMachine, s, p, f)
					if r.Restores != shotLength || r.Written < rest {
						t.Errorf("%s %s %s %d: %+v", o.name, hints, p, f, r)
					}
					blocked := float64(r.CaptureBlocked+r.RestoreBlocked) / float64(bound)
					if p == evict.Score && hints == AllHints && blocked > 1.25 {
						t.Errorf("%s: blocked for %.2f of the bound, %+v", o.name, blocked, r)
					}
				}
			}
		}
	}
}

// The checkpoints of an earlier process lie in the archive alone. They come up over the disk to the host before their restores.
func TestPrefetchesComeUpFromTheArchive(t *testing.T) {
	const n = 64
	var loaded [3]int
	cfg := engine.Config{Prefetch: true, Trace: func(ev engine.Event) {
		if ev.Kind == engine.Loaded {
			loaded[ev.Tier]++
		}
	}}
	cfg.Tiers = []engine.TierConfig{
		{Name: "host", Capacity: 8 * mib}, {Name: "disk", Capacity: 24 * mib, Remote: true, Durable: true},
		{Name: "archive", Capacity: 1000 * mib, Remote: true, Durable: true},
	}
	m := NewMachine(cfg, []Medium{{WriteRate: 1e9, ReadRate: 1e9, Workers: 2}, {WriteRate: 1e8, ReadRate: 1e8, Workers: 2, Latency: 1e6}}, 10e9)
	m.Engine.Reserve(2, func(yield func(from, end int64) bool) { yield(0, n*mib) })
	h := m.Engine.History("h")
	for k := range int64(n) {
		m.Engine.Continue(k + 1)
		m.Engine.Adopt(h, Key(k), engine.Stored{Tier: 2, Size: mib, Align: 1, Offset: k * mib, Written: k + 1})
		h.Wrote(Key(k))
	}
	s := Shot{Order: Sequential(n)}
	m.Engine.Hint(m.Now(), h, s.hints(Turns(s.Order)))
	m.Engine.StartPrefetch(m.Now(), h)
	m.Pass(1e9)
	hits := 0
	for k := range int64(n) {
		m.Pass(15e6) // the archive takes 10.5 ms for each
		if _, hit := m.mustRestore(t, h, k, false); hit {
			hits++
		}
	}
	if hits < n-2 || loaded[0] < n || loaded[1] < n || m.Engine.Stats.Tiers[1].Evicted < (n-24)*mib || m.Engine.Use(2).Used != n*mib {
		t.Errorf("%d hits, %v loads, %+v", hits, loaded, m.Engine.Stats.Tiers)
	}
}

// Two devices share a host and a disk. A history on each of them takes as long as the other, and no longer than one device alone takes for the first.
func TestTwoDevicesShareAHost(t *testing.T) {
	const n = 96
	device := engine.TierConfig{Name: "device", Capacity: 16 * mib, Grain: 4096, Private: true, Device: true}
	link := Medium{WriteRate: 25e9, ReadRate: 25e9, Workers: 2, Latency: 20e3}
	run := func(devices int) (*Machine, Result) {
		cfg := engine.Config{Prefetch: true, Guess: true}
		var media []Medium
		s := Shot{Compute: 30e6, Hints: AllHints, Last: true}
		for top := range devices {
			cfg.Tiers, media = append(cfg.Tiers, device), append(media, link)
			s.Tracks = append(s.Tracks, Track{Name: string(rune('a' + top)), Sizes: uniform(n, mib), Order: Turns(Reverse(n)), Top: top})
		}
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{Name: "host", Capacity: 64 * mib, Grain: 4096},
			engine.TierConfig{Name: "disk", Capacity: 1000 * mib, Grain: 4096, Remote: true})
		m := NewMachine(cfg, append(media, Medium{WriteRate: 1e9, ReadRate: 1e9, Workers: 2, Latency: 100e3}), 500e9)
		r, err := s.Run(m)
		if err != nil {
			t.Fatal(err)
		}
		return m, r
	}
	_, alone := run(1)
	m, both := run(2)
	a, b := both.Tracks[0], both.Tracks[1]
	if a.Hits < n*9/10 || b.Hits < n*9/10 || a.Restores != n || b.Restores != n {
		t.Errorf("%+v", both)
	}
	for i, part := range []Part{a, b} {
		if own := alone.CaptureBlocked + alone.RestoreBlocked; part.CaptureBlocked+part.RestoreBlocked > own*11/10 {
			t.Errorf("device %d: blocked for %d ns, alone for %d", i, part.CaptureBlocked+part.RestoreBlocked, own)
		}
		if u := m.Engine.Stats.Tiers[i]; u.HighWater > 16*mib || u.HighWater < 8*mib || u.Written != 0 {
			t.Errorf("device %d: %+v", i, u)
		}
	}
	if m.Engine.Use(0).Used != 0 || m.Engine.Use(1).Used != 0 {
		t.Errorf("%+v, %+v are left", m.Engine.Use(0), m.Engine.Use(1))
	}
}
