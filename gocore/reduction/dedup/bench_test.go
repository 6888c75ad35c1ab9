package dedup

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

func noise(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(p)
	return p
}

// Dedup of unchanged data beside XXH3-128 alone at the same chunk length, over the same bytes.
func BenchmarkUnchanged(b *testing.B) {
	data := noise(64 << 20)
	for _, chunk := range []int{32, 64, 128, 256, 512, 1024, 4096} {
		b.Run(fmt.Sprintf("%d/xxh3", chunk), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				for at := 0; at < len(data); at += chunk {
					kept = xxh3.Hash128Seed(data[at:at+chunk], 77).Lo
				}
			}
		})
		for _, method := range []difference.Method{difference.Basic, difference.Tree} {
			for _, blocks := range []bool{false, true} {
				b.Run(fmt.Sprintf("%d/%s-blocks-%v", chunk, method, blocks), func(b *testing.B) {
					l, _ := New(Options{Method: method, Chunk: chunk, Record: 1 << 20, Blocks: blocks})
					number := uint32(1)
					regions := []Region{{"a", data}}
					_, _, _ = l.Dedup(number, regions)
					b.SetBytes(int64(len(data)))
					for b.Loop() {
						number++
						_, _, _ = l.Dedup(number, regions)
					}
				})
			}
		}
	}
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
