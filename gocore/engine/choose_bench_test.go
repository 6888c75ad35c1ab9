package engine

import (
	"testing"

	"velocpy/gocore/evict"
	"velocpy/gocore/fragment"
	"velocpy/gocore/plan"
)

// BenchmarkDecision is what the eviction decision costs a capture of four times the size of its neighbours in a full tier; promised:
// when the first attempt finds nothing and the second may break promises.
func BenchmarkDecision(b *testing.B) {
	const n, size = 4095, 1 << 10
	for _, promised := range []bool{false, true} {
		name := "engine free"
		if promised {
			name = "engine promised"
		}
		b.Run(name, func(b *testing.B) {
			e := New(Config{Tiers: []TierConfig{
				{Name: "host", Capacity: n * size, Grain: 64, WriteRate: 1e9, ReadRate: 1e9},
				{Name: "disk", Capacity: 2 * n * 4096, Grain: 4096, Remote: true},
			}, Workers: 2})
			h := e.History("h")
			for k := range int64(n) {
				capture(b, e, h, k, size)
			}
			settle(e, 0)
			table := e.tiers[0].table
			for id := table.First(); id != fragment.None; id = table.Next(id) {
				if f := table.At(id); promised {
					f.Class = fragment.Promised
				} else {
					f.Class = fragment.Free
				}
			}
			r := e.newRecord(h, plan.Number(n), 4*size, 1, nil)
			for b.Loop() {
				_, ok := e.choose(0, 0, r, evict.Request{Floor: -1})
				if !ok {
					_, ok = e.choose(0, 0, r, evict.Request{Floor: -1, Break: true})
				}
				if !ok {
					b.Fatal("no window")
				}
			}
		})
	}
}
