package sim

import (
	"math/rand/v2"
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// tally compares shots run twice: with captures that wait for room in their tier, and with captures that go down where that is sooner.
type tally struct {
	measured                      bool // links have been measured before the shot
	shots, changed, better, worse int  // better, worse: by more than half a percent
	stay, down                    int64
	smallStay, smallDown          int64 // of these, captures of up to 8 MiB
}

func (x *tally) add(stay, down int64) {
	x.shots++
	x.stay += stay
	x.down += down
	switch ratio := float64(down) / float64(stay); {
	case ratio < 0.995:
		x.better++
	case ratio > 1.005:
		x.worse++
	}
	if stay != down {
		x.changed++
	}
}

func (x *tally) ratio() float64 { return float64(x.down) / float64(x.stay) }

// twice runs a shot both ways.
func (x *tally) twice(t *testing.T, on *machine, f engine.FlushMode, s *Shot) {
	t.Helper()
	var blocked, small [2]int64
	for i, stay := range []bool{true, false} {
		cfg := engine.Config{Tiers: append([]engine.TierConfig(nil), on.tiers...), Policy: evict.Score, Flush: f, Prefetch: true, Guess: true, Stay: stay}
		m := NewMachine(cfg, on.media, on.copy)
		if x.measured {
			m.measure(t)
		}
		s.captured = func(size, ns int64) {
			if size <= 8*mib {
				small[i] += ns
			}
		}
		r, err := s.Run(m)
		if err != nil {
			t.Fatal(err)
		}
		blocked[i] = r.CaptureBlocked + r.RestoreBlocked
		if bound := m.LowerBound(s); blocked[i] < bound-int64(20*(len(s.Sizes)+len(s.Order))) {
			t.Errorf("blocked for %d ns, the bound is %d", blocked[i], bound)
		}
	}
	x.add(blocked[0], blocked[1])
	x.smallStay += small[0]
	x.smallDown += small[1]
}

// measure moves enough bytes over every link to make its rate known, and leaves no checkpoint behind.
func (m *Machine) measure(t *testing.T) {
	h := m.Engine.History("before")
	for k := range int64(8) {
		m.mustCapture(t, h, k, 16*mib)
	}
	var recs []*engine.Record
	h.Each(func(r *engine.Record) { recs = append(recs, r) })
	w := m.Engine.Await(m.Now(), recs, m.Engine.Tiers()-1)
	m.Until(func() bool { return w.Phase == engine.Ended })
	m.Engine.Clear(m.Now(), h)
}

// mixedShot has few large checkpoints among many small ones: a small one that finds no room would wait for the flush of a large one.
func mixedShot(r *rand.Rand) *Shot {
	s := &Shot{
		Sizes: make([]int64, 40+r.IntN(120)), Hints: Hints(r.IntN(3)), Last: true, Compute: []int64{0, 1e6, 10e6, 30e6}[r.IntN(4)],
	}
	for i := range s.Sizes {
		s.Sizes[i] = (1 + r.Int64N(8)) * mib
		if r.IntN(6) == 0 {
			s.Sizes[i] = (100 + r.Int64N(900)) * mib
		}
	}
	n := len(s.Sizes)
	s.Order = [][]int64{Sequential(n), Reverse(n), Irregular(n, 7)}[r.IntN(3)]
	return s
}

// Captures that go down where that is sooner gain on the whole where sizes differ. The tier of a checkpoint changes all that follows, so single shots
// gain or lose.
func TestGoingDownGainsWhereSizesDiffer(t *testing.T) {
	host := machine{"host 4 GiB over SSD",
		[]engine.TierConfig{{Name: "host", Capacity: 4096 * mib, Grain: 4096}, {Name: "disk", Capacity: 1000 * gb, Grain: 4096, Remote: true}},
		[]Medium{{WriteRate: 2e9, ReadRate: 2e9, Workers: 4, Latency: 100e3}}, 10e9}
	var all tally
	r := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		all.twice(t, &host, engine.FlushMode(r.IntN(2)), mixedShot(r))
	}
	t.Logf("%+v: %.4f", all, all.ratio())
	if all.ratio() > 0.995 || all.better < 2*all.worse || all.smallDown > all.smallStay {
		t.Errorf("%+v: %.4f", all, all.ratio())
	}
}

// A checkpoint of 64 MiB comes some time after those that have filled the host. The flush of a large one makes room for it, and takes much longer
// than the direct way to the disk.
func TestASmallCaptureDoesNotWaitForALargeFlush(t *testing.T) {
	host := machine{"host 2 GiB over a slow disk",
		[]engine.TierConfig{{Name: "host", Capacity: 2048 * mib, Grain: 4096}, {Name: "disk", Capacity: 1000 * gb, Grain: 4096, Remote: true}},
		[]Medium{{WriteRate: 256e6, ReadRate: 256e6, Workers: 2, Latency: 100e3}}, 10e9}
	one := tally{measured: true}
	one.twice(t, &host, engine.Lazy, &Shot{Sizes: []int64{1000 * mib, 1000 * mib, 64 * mib}, Compute: 5e9, Order: Reverse(3), Hints: AllHints})
	t.Logf("%+v: %.2f", one, one.ratio())
	if one.ratio() > 0.6 {
		t.Errorf("%+v: %.2f", one, one.ratio())
	}
}

// With the sizes of the trace, such captures change hardly anything.
func TestGoingDownLosesNothingOnTheTrace(t *testing.T) {
	sizes := traceSizes(t)
	var all tally
	for _, x := range []*machine{&hostMachine, &deviceMachine} {
		for _, o := range orders {
			for _, hints := range []Hints{NoHints, OneHint, AllHints} {
				for shift := range 4 {
					at := shift * shotLength / 4
					s := &Shot{Sizes: append(append([]int64(nil), sizes[at:]...), sizes[:at]...), Compute: 10e6, Order: o.make(), Hints: hints, Last: true}
					all.twice(t, x, engine.FlushMode(shift%2), s)
				}
			}
		}
	}
	t.Logf("%+v: %.4f", all, all.ratio())
	if all.ratio() > 1.001 || all.worse > 1 {
		t.Errorf("%+v: %.4f", all, all.ratio())
	}
}
