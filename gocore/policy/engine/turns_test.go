package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// rivals is an engine with n checkpoints of each of several histories on disk alone, and room for some of them above. Each history has a plan that
// restores all its checkpoints in order.
func rivals(room, n int64, hints func(h, k int64) []plan.Hint, intervals ...float64) (*Engine, []*History) {
	const size = 100
	e := New(Config{Prefetch: true, Tiers: []TierConfig{
		{Name: "host", Capacity: size * room, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: size * n * int64(len(intervals)), Remote: true, Durable: true},
	}})
	e.Reserve(1, func(yield func(from, end int64) bool) { yield(0, e.Capacity(1)) })
	written := int64(0)
	for i, interval := range intervals {
		h := e.History(fmt.Sprint("h", i))
		for k := range n {
			e.Continue(written + 1)
			e.Adopt(h, model.NumberKey(k), Stored{Tier: 1, Size: size, Align: 1, Offset: written * size, Written: written + 1})
			written++
			h.Wrote(model.NumberKey(k))
			e.Hint(0, h, hints(int64(i), k))
		}
		h.pace = pace{begun: true, interval: interval}
	}
	e.paced = true
	for _, h := range e.Histories() { // all of them, before any prefetch begins
		h.started = true
		e.queuePrefetch(h)
	}
	e.makeProgress(0)
	return e, e.Histories()
}

// loadAll carries out all loads and returns the checkpoints in the order in which the loads began.
func loadAll(e *Engine) (order []string) {
	for x := e.Next(0, anyUp); x != nil; x = e.Next(0, anyUp) {
		order = append(order, x.Rec.Hist.Name+"/"+x.Rec.Key.String())
		e.Done(0, x, nil)
	}
	return order
}

func inOrder(_, k int64) []plan.Hint { return justRestores("", k) }

// A history that is restored every millisecond is prefetched before one that is restored every second, although the slow one asked first. The next
// restore of each is due now.
func TestPrefetchesCompareHistoriesInTime(t *testing.T) {
	e, _ := rivals(20, 40, inOrder, 1e9, 1e6)
	order := loadAll(e)
	want := []string{"h0/0"}
	for k := range 19 {
		want = append(want, fmt.Sprint("h1/", k))
	}
	if !slices.Equal(order, want) {
		t.Errorf("loaded %v, not %v", order, want)
	}
}

// The slow history is prefetched as soon as no restore of the fast one is due before it.
func TestPrefetchesOfASlowHistoryFollow(t *testing.T) {
	e, _ := rivals(10, 6, inOrder, 10e6, 4e6)
	want := []string{"h0/0", "h1/0", "h1/1", "h1/2", "h0/1", "h1/3", "h1/4", "h0/2", "h1/5", "h0/3"} // two restores of h0 and five of h1 are due at once
	if order := loadAll(e); !slices.Equal(order, want) {
		t.Errorf("loaded %v, not %v", order, want)
	}
}

// Histories of the same pace take turns, and intervals announced by Advance count.
func TestPrefetchesCountAdvance(t *testing.T) {
	e, _ := rivals(6, 4, func(h, k int64) []plan.Hint {
		hints := justRestores("", k)
		if h == 0 && k == 1 {
			return append([]plan.Hint{{Op: plan.Advance, Steps: 2}}, hints...)
		}
		return hints
	}, 0, 0)
	want := []string{"h0/0", "h1/0", "h1/1", "h1/2", "h0/1", "h1/3"}
	if order := loadAll(e); !slices.Equal(order, want) {
		t.Errorf("loaded %v, not %v", order, want)
	}
}

// Whatever the paces and plans are: while there is room for all, loads begin in the order in which restores are due.
func TestPrefetchesAreInTheOrderOfTheirRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 12).Draw(t, "checkpoints")
		intervals := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1e3, 3e3, 1e6, 1e9}), 1, 6).Draw(t, "intervals")
		e, hs := rivals(n*int64(len(intervals)), n, func(_, k int64) []plan.Hint {
			hints := justRestores("", k)
			if steps := rapid.Int64Range(-3, 5).Draw(t, "steps"); steps > 0 {
				return append([]plan.Hint{{Op: plan.Advance, Steps: steps}}, hints...)
			}
			return hints
		}, intervals...)
		due := map[string]int64{}
		for _, h := range hs {
			h.order.Upcoming(0, func(seq int64, k model.Key, _ bool) bool {
				due[h.Name+"/"+k.String()] = e.due(h, seq)
				return true
			})
		}
		order := loadAll(e)
		if len(order) != len(due) {
			t.Fatalf("%d of %d have been loaded", len(order), len(due))
		}
		if !slices.IsSortedFunc(order, func(a, b string) int { return int(due[a] - due[b]) }) {
			t.Fatalf("loaded %v; due %v", order, due)
		}
	})
}
