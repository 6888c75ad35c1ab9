package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/model"
)

// A benchmark keeps n hints queued and measures one operation among them.
func queued(b *testing.B, run func(b *testing.B, o *Order, n int64)) {
	for _, n := range []int64{1e3, 1e6} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := New(Options{Guess: true})
			for i := range n {
				o.Append(restore(i))
			}
			b.ReportAllocs()
			b.ResetTimer()
			run(b, o, n)
		})
	}
}

// One hint appended, one restored at the head.
func BenchmarkAppendRestored(b *testing.B) {
	queued(b, func(b *testing.B, o *Order, n int64) {
		for i := range int64(b.N) {
			o.Append(restore(n + i))
			o.Restored(model.NumberKey(i))
		}
	})
}

// The distance of a key anywhere in the queue, which eviction asks for every fragment.
func BenchmarkDistance(b *testing.B) {
	queued(b, func(b *testing.B, o *Order, n int64) {
		rng := rand.New(rand.NewPCG(1, 1))
		keys := make([]model.Key, 4096)
		for i := range keys {
			keys[i] = model.NumberKey(rng.Int64N(n))
		}
		b.ResetTimer()
		for i := range b.N {
			if _, ok := o.Distance(keys[i%len(keys)]); !ok {
				b.Fatal("not queued")
			}
		}
	})
}

// A walk over the next hundred restores, per restore.
func BenchmarkUpcoming(b *testing.B) {
	queued(b, func(b *testing.B, o *Order, n int64) {
		for i := 0; i < b.N; {
			end := i + 100
			o.Upcoming(int64(i)%(n/2), func(int64, model.Key, bool) bool { i++; return i < end })
		}
	})
}

// One restore without hints, for orders that can be guessed and one that cannot; every key is written before and stays.
func BenchmarkGuess(b *testing.B) {
	for _, n := range []int64{1e3, 1e6} {
		for _, order := range []struct {
			name string
			key  func(i int64) model.Key
		}{
			{"backward", func(i int64) model.Key { return model.NumberKey(n - 1 - i%n) }},
			{"random", func(i int64) model.Key { return model.NumberKey(int64(uint64(i)*0x9e3779b97f4a7c15>>11) % n) }},
		} {
			b.Run(fmt.Sprint(order.name, "/", n), func(b *testing.B) {
				o := New(Options{Guess: true})
				for i := range n {
					o.Written(model.NumberKey(i))
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := range int64(b.N) {
					o.Restored(order.key(i))
				}
			})
		}
	}
}

// One checkpoint written again, among n.
func BenchmarkWritten(b *testing.B) {
	for _, n := range []int64{1e3, 1e6} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := New(Options{Guess: true})
			for i := range n {
				o.Written(model.NumberKey(i))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range int64(b.N) {
				o.Written(model.NumberKey(i % n))
			}
		})
	}
}
