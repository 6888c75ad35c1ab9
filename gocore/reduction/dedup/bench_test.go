package dedup

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

func noise(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(p)
	return p
}

// Dedup of unchanged data in turns with XXH3-128 alone, with and without a seed, at the same chunk length over the same bytes. The metrics are GB/s, and
// Dedup's rate as a share of each, from the fastest turn of each, and its rate beside the bytes of the checkpoint before.
func BenchmarkUnchanged(b *testing.B) {
	data := noise(64 << 20)
	for _, chunk := range []int{32, 64, 128, 256, 512, 1024, 4096} {
		for _, method := range []difference.Method{difference.Basic, difference.Tree} {
			for _, blocks := range []bool{false, true} {
				b.Run(fmt.Sprintf("%d/%s/blocks=%v", chunk, method, blocks), func(b *testing.B) {
					benchmarkUnchanged(b, data, Options{Method: method, Chunk: chunk, Record: 1 << 20, Blocks: blocks})
				})
			}
		}
	}
}

func benchmarkUnchanged(b *testing.B, data []byte, o Options) {
	l, _ := New(o)
	number := uint32(1)
	regions, before := []Region{{"a", data}}, bytes.Clone(data)
	_, _, _ = l.Dedup(number, regions)
	best := map[string]float64{}
	turn := func(name string, work func()) {
		begin := time.Now()
		work()
		best[name] = max(best[name], float64(len(data))/float64(time.Since(begin).Nanoseconds()))
	}
	for b.Loop() {
		turn("seeded", func() {
			for at := 0; at < len(data); at += o.Chunk {
				kept = xxh3.Hash128Seed(data[at:at+o.Chunk], 77).Lo
			}
		})
		turn("plain", func() {
			for at := 0; at < len(data); at += o.Chunk {
				kept = xxh3.Hash128(data[at : at+o.Chunk]).Lo
			}
		})
		turn("dedup", func() {
			number++
			_, _, _ = l.Dedup(number, regions)
		})
		turn("beside", func() {
			number++
			_, _, _ = l.DedupAfter(func(_ string, at, n int, compare func([]byte)) { compare(before[at : at+n]) }, number, regions)
		})
	}
	b.ReportMetric(best["seeded"], "seeded-GB/s")
	b.ReportMetric(best["dedup"], "dedup-GB/s")
	b.ReportMetric(best["beside"], "beside-GB/s")
	b.ReportMetric(best["dedup"]/best["seeded"], "of-seeded")
	b.ReportMetric(best["dedup"]/best["plain"], "of-plain")
}

var kept uint64

// Dedup of data of which one chunk in a hundred changes, and of data that is all new.
func BenchmarkChanged(b *testing.B) {
	data := noise(32 << 20)
	for _, every := range []int{100, 1} {
		for _, chunk := range []int{128, 512, 4096} {
			for _, method := range methods[1:] {
				b.Run(fmt.Sprintf("1-of-%d/%d/%s", every, chunk, method), func(b *testing.B) {
					l, _ := New(Options{Method: method, Chunk: chunk, Record: record.Memory(1 << 21), MaxAge: 1})
					number := uint32(1)
					regions := []Region{{"a", data}}
					_, _, _ = l.Dedup(number, regions)
					b.SetBytes(int64(len(data)))
					for b.Loop() {
						number++
						for at := 0; at < len(data); at += every * chunk {
							data[at], data[at+1], data[at+2] = byte(number), byte(number>>8), byte(number>>16)
						}
						_, _, _ = l.Dedup(number, regions)
					}
				})
			}
		}
	}
}
