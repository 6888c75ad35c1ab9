package sim

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// Each step computes once. Histories that pause, or have ended, are skipped.
func TestCallsOfSeveralHistories(t *testing.T) {
	s := Shot{Compute: 10, Tracks: []Track{
		{Name: "a", Sizes: []int64{1, 1, 1}, Order: []Turn{{Key: 2}, {Key: 1}, {Steps: 2}, {Key: 0}}},
		{Name: "b", Sizes: []int64{1}, Order: []Turn{{Steps: 1}, {Key: 0}, {Steps: 7}}},
		{Name: "c", Order: nil},
	}}
	if got, want := s.captures(), []call{{0, 0, 0, 10}, {1, 0, 0, 0}, {0, 1, 0, 10}, {0, 2, 0, 10}}; !slices.Equal(got, want) {
		t.Errorf("captures %v, wanted %v", got, want)
	}
	got, rest := s.restores()
	want := []call{{0, 2, 1, 10}, {0, 1, 2, 10}, {1, 0, 2, 0}, {0, 0, 4, 30}}
	if !slices.Equal(got, want) || rest != 40 { // b pauses in steps 3 to 9
		t.Errorf("restores %v, then %d ns; wanted %v, then 40", got, rest, want)
	}
}

// A shot with one listed history equals the shot that has no list.
func TestOneTrackIsTheShot(t *testing.T) {
	for _, hints := range []Hints{NoHints, OneHint, AllHints} {
		s := Shot{Sizes: uniform(64, 128<<20), Compute: 10e6, Order: Irregular(64, 7), Hints: hints, Last: true}
		alone, bound := play(t, &deviceMachine, s, evict.Score, engine.Lazy)
		s.Tracks, s.Sizes, s.Order = []Track{{Name: "one", Sizes: s.Sizes, Order: Turns(s.Order)}}, nil, nil
		listed, same := play(t, &deviceMachine, s, evict.Score, engine.Lazy)
		if !reflect.DeepEqual(alone, listed) || bound != same {
			t.Errorf("%s: %+v with a bound of %d, as a history of several %+v with %d", hints, alone, bound, listed, same)
		}
	}
}

// threeHistories is an adjoint with a state in each step, read backwards, a field that is read forwards, and one in every fourth step.
func threeHistories(hints Hints) *Shot {
	sparse := Track{Name: "sparse", Sizes: uniform(16, 4*mib)}
	for k := range int64(16) {
		sparse.Order = append(sparse.Order, Turn{Steps: 3}, Turn{Key: 15 - k})
	}
	return &Shot{Compute: 20e6, Hints: hints, Last: true, Tracks: []Track{
		{Name: "state", Sizes: uniform(64, 8*mib), Order: Turns(Reverse(64))}, {Name: "field", Sizes: uniform(64, 2*mib), Order: Turns(Sequential(64))}, sparse,
	}}
}

// Histories with separate orders share a host of an eighth of their bytes. At this pace the disk keeps up, so with all hints hardly any restore
// waits.
func TestInterleavedHistoriesShareTheTiers(t *testing.T) {
	disk := []Medium{{WriteRate: 1e9, ReadRate: 1e9, Workers: 2, Latency: 100e3}}
	for _, c := range []struct {
		hints Hints
		hits  [3]int64 // at least
	}{{AllHints, [3]int64{64, 63, 16}}, {OneHint, [3]int64{64, 63, 15}}, {NoHints, [3]int64{64, 61, 14}}} {
		m := NewMachine(hostAndDisk(88*mib), disk, 10e9)
		s := threeHistories(c.hints)
		r, err := s.Run(m)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", c.hints, r)
		var sum Part
		for i, p := range r.Tracks {
			sum.Hits, sum.Restores = sum.Hits+p.Hits, sum.Restores+p.Restores
			sum.CaptureBlocked, sum.RestoreBlocked = sum.CaptureBlocked+p.CaptureBlocked, sum.RestoreBlocked+p.RestoreBlocked
			if p.Restores != int64(len(s.Tracks[i].Sizes)) || p.Hits < c.hits[i] {
				t.Errorf("%s, %s: %d of %d restores found their checkpoint, %d are the least", c.hints, s.Tracks[i].Name, p.Hits, p.Restores, c.hits[i])
			}
		}
		if sum.Hits != r.Hits || sum.Restores != r.Restores || sum.CaptureBlocked != r.CaptureBlocked || sum.RestoreBlocked != r.RestoreBlocked {
			t.Errorf("%s: %+v, its parts add up to %+v", c.hints, r, sum)
		}
		if bound := m.LowerBound(s); r.CaptureBlocked+r.RestoreBlocked < bound-300 || r.Elapsed-r.CaptureBlocked-r.RestoreBlocked != 128*s.Compute {
			t.Errorf("%s: %+v; the bound is %d", c.hints, r, bound)
		}
	}
}

// A restore of one history ten steps ahead is prefetched after another history's next ten. The engine learns that from Advance.
func TestAdvanceTellsWhatIsNeededSooner(t *testing.T) {
	for _, rests := range []bool{false, true} {
		var loaded []string
		cfg := hostAndDisk(8 * mib)
		cfg.Trace = func(ev engine.Event) {
			if ev.Kind == engine.Loaded {
				loaded = append(loaded, ev.Rec.Hist.Name)
			}
		}
		m := NewMachine(cfg, []Medium{{WriteRate: 1e9, ReadRate: 1e9, Workers: 1}}, 10e9)
		s := &Shot{Compute: 5e6, Hints: AllHints, Last: true, WaitDown: true, Tracks: []Track{
			{Name: "dense", Sizes: uniform(32, mib), Order: Turns(Sequential(32))}, {Name: "sparse", Sizes: uniform(32, mib)},
		}}
		for k := range int64(32) {
			if rests {
				s.Tracks[1].Order = append(s.Tracks[1].Order, Turn{Steps: 9})
			}
			s.Tracks[1].Order = append(s.Tracks[1].Order, Turn{Key: k})
		}
		if _, err := s.Run(m); err != nil {
			t.Fatal(err)
		}
		sparse := 0
		for _, name := range loaded[:12] {
			if name == "sparse" {
				sparse++
			}
		}
		if few := sparse <= 2; few != rests {
			t.Errorf("rests %v: of the first 12 checkpoints that came up %d are of the sparse history: %v", rests, sparse, loaded[:12])
		}
	}
}

// Orders are numbers, and steps to pass; all other elements are refused.
func TestTurnsAsJSON(t *testing.T) {
	var order []Turn
	if err := json.Unmarshal([]byte(`[3, {"advance": 2}, 0]`), &order); err != nil || !slices.Equal(order, []Turn{{Key: 3}, {Steps: 2}, {}}) {
		t.Fatalf("%v, %v", order, err)
	}
	if text, err := json.Marshal(order); err != nil || string(text) != `[3,{"advance":2},0]` {
		t.Errorf("%s, %v", text, err)
	}
	for _, text := range []string{`[{"advance": 0}]`, `[{"advance": -1}]`, `[{"advance": 16777217}]`, `[{}]`, `["3"]`, `[1.5]`, `[[1]]`, `[{"advance": "2"}]`} {
		if err := json.Unmarshal([]byte(text), &order); err == nil {
			t.Errorf("%s is read as %v", text, order)
		}
	}
}

func TestRequestsOfSeveralHistories(t *testing.T) {
	const machine = `, "interval": 1e-3, "tiers": [{"capacity": 40, "write_rate": 1e4, "read_rate": 2e4}, {"capacity": 1000}], "copy_rate": 1e6}`
	a, err := Play([]byte(`{"histories": [{"name": "a", "sizes": [5, 7], "order": [1, {"advance": 3}, 0]}, {"name": "b", "sizes": [20], "order": [0]}]` + machine))
	if err != nil || len(a.Histories) != 2 || a.Histories["a"].Restores != 2 || a.Histories["b"].Restores != 1 || a.Restores != 3 {
		t.Errorf("%+v, %v", a, err)
	}
	for _, text := range []string{
		`{"sizes": [5], "histories": [{"name": "a", "sizes": [5], "order": [0]}]`, `{"histories": [{"name": "a"}, {"name": "a"}]`,
		`{"histories": [{"name": "a", "sizes": [5], "order": [1]}]`, `{"histories": [{"name": "a", "sizes": [-5]}]`,
		`{"histories": [{"name": "a", "sizes": [5], "order": [{"advance": 0}]}]`,
	} {
		if a, err := Play([]byte(text + machine)); err == nil {
			t.Errorf("%s: %+v", text, a)
		}
	}
}
