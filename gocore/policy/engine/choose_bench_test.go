package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
)

// BenchmarkDecision measures the eviction decision for a capture of four times the size of its neighbours in a full tier. All of these are evictable,
// or must be flushed first, or are promised. In the last case the first attempt finds no window and the second breaks promises.
func BenchmarkDecision(b *testing.B) {
	const n, size = 4095, 1 << 10
	for _, c := range []struct {
		name  string
		class fragment.Class
	}{{"engine free", fragment.Free}, {"engine dirty", fragment.Dirty}, {"engine promised", fragment.Promised}} {
		b.Run(c.name, func(b *testing.B) {
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
				table.At(id).Class = c.class
				table.Update(id)
			}
			r := e.newRecord(h, model.NumberKey(n), 4*size, 1, nil)
			for b.Loop() {
				_, ok := e.choose(0, 0, &r.own, evict.Request{Floor: -1})
				if !ok {
					_, ok = e.choose(0, 0, &r.own, evict.Request{Floor: -1, Break: true})
				}
				if !ok {
					b.Fatal("no window")
				}
			}
		})
	}
}
