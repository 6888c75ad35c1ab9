package copier

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/model"
)

// warm returns n resident bytes outside the Go heap, on huge pages if there are any.
func warm(b *testing.B, n int64) []byte {
	b.Helper()
	m, err := memory.Map("bench", n)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Unmap() })
	p := m.Bytes(0, n)
	for i := range p {
		p[i] = byte(i)
	}
	return p
}

// halves is the baseline: a parallel memcpy with two running threads, each of which copies its half in one call.
type halves struct {
	work chan [2][]byte
	done chan struct{}
}

func newHalves(b *testing.B) *halves {
	h := &halves{work: make(chan [2][]byte), done: make(chan struct{})}
	safego.Go("second half", func() {
		runtime.LockOSThread()
		for w := range h.work {
			copy(w[0], w[1])
			h.done <- struct{}{}
		}
	})
	b.Cleanup(func() { close(h.work) })
	return h
}

func (h *halves) copy(dst, src []byte) {
	half := len(src) / 2
	h.work <- [2][]byte{dst[half:], src[half:]}
	copy(dst[:half], src)
	<-h.done
}

// BenchmarkGather copies a source into the slots of a large cache in turn, like captures. The ways also take turns, so that a noisy machine affects
// all of them. It reports medians, and their ratios to the parallel memcpy.
func BenchmarkGather(b *testing.B) {
	const cacheBytes = 512 << 20
	cache := warm(b, cacheBytes)
	pool := NewPool(1)
	b.Cleanup(pool.Close)
	for _, n := range []int64{1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20} {
		b.Run(fmt.Sprintf("%dMiB", n>>20), func(b *testing.B) {
			src := warm(b, n)
			h := newHalves(b)
			job := func(dir Direction, opt Options) func(slot []byte) {
				return func(slot []byte) {
					pieces := [...]Piece{{Slot: address(slot), Bytes: n, Mem: model.Strided{Base: address(src)}}}
					j := NewJob(dir, pieces[:], opt)
					j.Run(0)
					j.Free()
				}
			}
			ways := []struct {
				name string
				run  func(slot []byte)
			}{
				{"memcpy", func(slot []byte) { h.copy(slot, src) }},
				{"memcpy1", func(slot []byte) { copy(slot, src) }},
				{"gather", job(Gather, Options{Pool: pool})},
				{"gather-sum", job(Gather, Options{Pool: pool, Checksum: true})},
				{"gather-sum1", job(Gather, Options{Checksum: true})},
				{"scatter", job(Scatter, Options{Pool: pool})},
				{"scatter-sum", job(Scatter, Options{Pool: pool, Checksum: true})},
				{"verify", job(Verify, Options{Pool: pool})},
			}
			times := make([][]time.Duration, len(ways))
			at := int64(0)
			for b.Loop() {
				for i, way := range ways {
					start := time.Now()
					way.run(cache[at : at+n])
					times[i] = append(times[i], time.Since(start))
					at = (at + n) % cacheBytes
				}
			}
			median := func(i int) float64 {
				slices.Sort(times[i])
				return float64(times[i][len(times[i])/2])
			}
			base := median(0)
			for i, way := range ways {
				b.ReportMetric(float64(n)/median(i), way.name+"-GB/s")
				if i > 1 {
					b.ReportMetric(base/median(i), way.name+"-ratio")
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkTenSmallPieces is the fixed cost of a job.
func BenchmarkTenSmallPieces(b *testing.B) {
	for _, check := range []bool{false, true} {
		b.Run(fmt.Sprintf("checksum=%v", check), func(b *testing.B) {
			src, dst := make([]byte, 10<<10), make([]byte, 10<<10)
			pieces := make([]Piece, 10)
			for i := range pieces {
				pieces[i] = Piece{Slot: address(dst[i<<10:]), Bytes: 1 << 10, Mem: model.Strided{Base: address(src[i<<10:])}}
			}
			b.ReportAllocs()
			for b.Loop() {
				j := NewJob(Gather, pieces, Options{Checksum: check})
				j.Run(0)
				j.Free()
			}
		})
	}
}

// BenchmarkStrided gathers arrays that are not contiguous.
func BenchmarkStrided(b *testing.B) {
	const n = 2048
	src, slot := warm(b, 2*n*n*8), warm(b, n*n*8)
	pool := NewPool(1)
	b.Cleanup(pool.Close)
	for _, c := range []struct {
		name   string
		item   int64
		stride [2]int64
	}{
		{"halo-float64", 8, [2]int64{(n + 16) * 8, 8}},
		{"halo-float32", 4, [2]int64{(n + 16) * 4, 4}},
		{"every-second-float32", 4, [2]int64{n * 8, 8}},
		{"backwards-float64", 8, [2]int64{n * 8, -8}},
		{"transposed-float32", 4, [2]int64{4, n * 4}},
		{"every-second-byte", 1, [2]int64{n * 2, 2}},
	} {
		b.Run(c.name, func(b *testing.B) {
			base := address(src)
			if c.stride[1] < 0 {
				base = unsafe.Add(base, (n-1)*-c.stride[1])
			}
			bytes := n * n * c.item
			pieces := []Piece{{Slot: address(slot), Bytes: bytes, Mem: model.Strided{
				Base: base, Shape: []int64{n, n}, Strides: c.stride[:], Item: c.item}}}
			b.SetBytes(bytes)
			for b.Loop() {
				j := NewJob(Gather, pieces, Options{Checksum: true, Pool: pool})
				j.Run(0)
				j.Free()
			}
		})
	}
}
