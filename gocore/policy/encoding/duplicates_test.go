package encoding

import (
	"math/rand/v2"
	"testing"

	"velocpy/gocore/reduction/codec"
)

// flushes plays flushes of a history by Auto. It returns how many were de-duplicated, and how many times the plain bytes were written in all.
func flushes(count int, share func(i int) float64, hashed int64) (removed int, written float64) {
	const plain, cost = 1 << 20, 1 << 20
	p := New(Auto, codec.NoCompression)
	r := rand.New(rand.NewPCG(1, 2))
	since := 0 // checkpoints since one that was de-duplicated: what has changed adds up
	for i := range count {
		since++
		if !p.Removes() {
			if x := p.Next(1); x.Way == Encoded && x.Choices == nil {
				p.Sampled(1, choices, 1000, 1000)
				p.Next(1)
			}
			p.Flushed(Plain, plain, int64(cost*(0.8+0.4*r.Float64())))
			written++
			continue
		}
		p.Next(1)
		part := min(1, share(i)*float64(since))
		if removed == 0 {
			part = 1
		}
		since = 0
		p.Removed(plain, int64(part*plain), int64(float64(hashed)+part*cost))
		removed++
		written += part
	}
	return removed, written
}

func TestDuplicatesAreRemovedWhereTheyPay(t *testing.T) {
	const count, quick, slow = 1000, 1 << 18, 1 << 21
	for name, x := range map[string]struct {
		share        func(int) float64
		hashed       int64
		least, most  int     // de-duplicated checkpoints
		leastWritten float64 // times the plain bytes
		mostWritten  float64
	}{
		"little is new":        {func(int) float64 { return 0.03 }, quick, 999, 999, 20, 35},
		"all is new":           {func(int) float64 { return 1 }, quick, 4, 30, 1000, 1000},
		"hashing takes longer": {func(int) float64 { return 0.03 }, slow, 4, 30, 960, 1000},
		"little is new later":  {func(i int) float64 { return []float64{1, 0.03}[min(1, i/300)] }, quick, 300, 720, 300, 750},
		"all is new later":     {func(i int) float64 { return []float64{0.03, 1}[min(1, i/300)] }, quick, 299, 340, 700, 760},
	} {
		removed, written := flushes(count, x.share, x.hashed)
		if removed < x.least || removed > x.most || written < x.leastWritten || written > x.mostWritten {
			t.Errorf("%s: %d of %d were de-duplicated, %.1f times the plain bytes written", name, removed, count, written)
		}
	}
}

// Other methods decide nothing by cost.
func TestOnlyAutoWeighsDuplicates(t *testing.T) {
	for method, want := range map[Method]bool{Raw: false, Codec: false, Lineage: true} {
		p := New(method, codec.NoCompression)
		for range 100 {
			if p.Removes() != want || p.RemovesSoon() != want {
				t.Fatalf("method %d removes duplicates: %v", method, !want)
			}
			p.Removed(100, 100, 1<<40)
		}
	}
}
