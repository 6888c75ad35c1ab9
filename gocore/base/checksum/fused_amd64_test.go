//go:build !race

package checksum

import (
	"bytes"
	"testing"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/cpu"
	"pgregory.net/rapid"
)

// Every vector variant compared with the library and copy, at all lengths and alignments; bytes around the destination stay unchanged.
func TestFusedAgainstPlain(t *testing.T) {
	variants := map[string]*vector{}
	if cpu.X86.HasAVX512F {
		variants["512"] = &vector{blocks512, stripes512}
	}
	if cpu.X86.HasAVX2 {
		variants["256"] = &vector{blocks256, stripes256}
	}
	data := pattern(LeafBytes + 4096)
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(241, 5000), rapid.IntRange(241, LeafBytes),
					rapid.SampledFrom([]int{241, 1024, 1025, 2048, LeafBytes - 1, LeafBytes})).Draw(t, "n")
				from := rapid.IntRange(0, 200).Draw(t, "from")
				to := rapid.OneOf(rapid.SampledFrom([]int{0, 1, 16, 32, 63, 64}), rapid.IntRange(0, 130)).Draw(t, "to")
				src := data[from : from+n]
				area := alignedPattern(n + 300)
				before := bytes.Clone(area)
				got := v.fuse(area[to:to+n], src, rapid.Bool().Draw(t, "stream"))
				copy(before[to:], src)
				if want := xxh3.Hash(src); got != want || v.hash(src) != want {
					t.Fatalf("%d bytes: hash %#x, alone %#x, want %#x", n, got, v.hash(src), want)
				}
				if !bytes.Equal(area, before) {
					t.Fatalf("%d bytes to offset %d: destination differs", n, to)
				}
			})
		})
	}
	if len(variants) == 0 {
		t.Skip("no vector code for this machine")
	}
}
