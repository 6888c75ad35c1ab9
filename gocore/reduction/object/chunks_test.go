package object

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/codec"
)

// A set of chunks is what a list of flags is.
func TestChunkSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 15, 16, 63, 64, 65, 127, 128, 129, 256, 1000, MostPart / codec.ChunkBytes}).Draw(t, "chunks")
		var set chunkSet
		flags := make([]bool, n)
		for range rapid.IntRange(0, 6).Draw(t, "ranges") {
			first := rapid.IntRange(0, n).Draw(t, "first")
			behind := rapid.IntRange(first, n).Draw(t, "behind")
			set.add(first, behind)
			for i := first; i < behind; i++ {
				flags[i] = true
			}
		}
		first, behind := set.hull(n)
		if at := slices.Index(flags, true); at < 0 && (first != 0 || behind != 0) || at >= 0 && (first != at || !flags[behind-1] || slices.Contains(flags[behind:], true)) {
			t.Fatalf("the hull of %v is %d to %d", flags, first, behind)
		}
		for from := range n {
			end := min(n, from+rapid.IntRange(0, n).Draw(t, "most"))
			for _, in := range []bool{false, true} {
				want := end
				if at := slices.Index(flags[from:end], in); at >= 0 {
					want = from + at
				}
				if got := set.next(from, end, in); got != want {
					t.Fatalf("from %d to %d of %v, %v is first at %d, not %d", from, end, flags, in, want, got)
				}
			}
			if got := set.has(from, end); got != !slices.Contains(flags[from:end], false) {
				t.Fatalf("from %d to %d of %v: has is %v", from, end, flags, got)
			}
			if n > 130 && from > 2 {
				break // a thousand draws for each set take long
			}
		}
	})
}
