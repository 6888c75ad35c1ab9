package engine

import (
	"fmt"
	"runtime"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// populated is an engine with n checkpoints of 1 KiB, of which the fastest tier holds an eighth.
func populated(b *testing.B, n int) (*Engine, *History) {
	const size = 1 << 10
	e := New(Config{
		Tiers: []TierConfig{
			{Name: "host", Capacity: max(int64(n)*size/8, 64*size), Grain: 64, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "disk", Capacity: int64(n) * 8192, Grain: 4096, Remote: true},
		},
		Prefetch: true, Guess: true, Workers: 2,
	})
	h := e.History("h")
	for k := range n {
		capture(b, e, h, int64(k), size)
	}
	settle(e, 0)
	return e, h
}

// settle carries out all pending transfers.
func settle(e *Engine, now int64) {
	for {
		x := e.Next(now, anyDown)
		if x == nil {
			x = e.Next(now, anyUp)
		}
		if x == nil {
			return
		}
		e.Done(now, x, nil)
	}
}

func capture(b *testing.B, e *Engine, h *History, k, size int64) {
	c, err := e.BeginCapture(0, h, model.NumberKey(k), size, 1, nil, CaptureOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for c.Phase == Waiting {
		settle(e, 0)
	}
	e.EndCapture(0, c, true)
	e.TakeWoken()
}

func restore(b *testing.B, e *Engine, h *History, k int64) {
	r, err := e.BeginRestore(0, h, model.NumberKey(k), RestoreOptions{Into: true})
	if err != nil {
		b.Fatal(err)
	}
	for r.Phase == Waiting {
		settle(e, 0)
	}
	e.HandOver(0, r)
	e.EndRestore(0, r)
	e.TakeWoken()
}

// BenchmarkTurn is one capture, one restore and one drop among so many live checkpoints. Recent: of the latest captures, which the cache holds. Old:
// of checkpoints that only the disk holds; each turn includes an eviction, a load and a flush.
func BenchmarkTurn(b *testing.B) {
	for _, old := range []bool{false, true} {
		for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("old=%v/%d", old, n), func(b *testing.B) {
				e, h := populated(b, n)
				next, at := int64(n), int64(0)
				b.ResetTimer()
				for b.Loop() {
					capture(b, e, h, next, 1<<10)
					k := next
					if old {
						at = (at + 7919) % int64(n/2)
						k = next - int64(n) + 1 + at
					}
					restore(b, e, h, k)
					e.Drop(0, h, model.NumberKey(next-int64(n)))
					settle(e, 0)
					next++
				}
			})
		}
	}
}

// BenchmarkRecord measures the Go heap per checkpoint, with its record and its place in the plan, among a million.
func BenchmarkRecord(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const n = 1_000_000
		e, h := populated(b, n)
		hints := make([]plan.Hint, 0, 1000)
		for k := range int64(n) {
			if hints = append(hints, plan.Hint{Key: model.NumberKey(n - 1 - k)}); len(hints) == cap(hints) {
				e.Hint(0, h, hints)
				hints = hints[:0]
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/record")
		runtime.KeepAlive(e)
	}
}
