package checkpoint

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.uber.org/atomic"
	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

// Pieces of any length, in any order, received by several goroutines at once, give the same result for every region as one verification of all bytes.
func TestIncrementalVerificationAgreesWithOnePass(t *testing.T) {
	const most = 3 * checksum.LeafBytes
	rapid.Check(t, func(t *rapid.T) {
		b := &Version{Layout: &Layout{}}
		end := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "regions") {
			end += rapid.Int64Range(1, 100).Draw(t, "gap")
			n := rapid.OneOf(rapid.Int64Range(0, most), rapid.SampledFrom([]int64{0, 1, checksum.LeafBytes, checksum.LeafBytes + 1, 2 * checksum.LeafBytes})).Draw(t, "bytes")
			b.Layout.Spans = append(b.Layout.Spans, model.Span{Offset: end, Bytes: n})
			end += n
		}
		if rapid.Bool().Draw(t, "large") {
			b.Layout.Spans = append(b.Layout.Spans, model.Span{Offset: end, Bytes: incrementalFrom})
			end += incrementalFrom
		}
		captured := random(int(end), rapid.Uint64Range(0, 1<<32-1).Draw(t, "seed"))
		for _, span := range b.Layout.Spans {
			b.Sums = append(b.Sums, checksum.Sum(captured[span.Offset:span.Offset+span.Bytes]))
		}
		for range rapid.IntRange(0, 2).Draw(t, "flips") {
			captured[rapid.Int64Range(0, end-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		wanted := slices.Clone(b.Layout.All())
		if i := rapid.IntRange(0, len(wanted)-1).Draw(t, "left out"); i < len(wanted)-1 {
			wanted = slices.Delete(wanted, i, i+1)
		}

		slot := make([]byte, end)
		a := &Verification{Slot: slot, Version: b, Regions: wanted}
		var read atomic.Int64
		a.Expect([]model.Span{{Offset: 0, Bytes: end}}, true, func() { read.Inc() })
		var all sync.WaitGroup
		turns := make(chan struct{}, 3)
		for _, span := range shuffled(t, end) {
			all.Go(func() {
				turns <- struct{}{}
				copy(slot[span.Offset:], captured[span.Offset:span.Offset+span.Bytes])
				a.Received(span.Offset, span.Bytes)
				<-turns
			})
		}
		all.Wait()
		if read.Load() != 1 {
			t.Fatalf("it was said %d times that all is read", read.Load())
		}
		if got, want := a.Mismatch(), b.Mismatch(captured, wanted); got != want {
			t.Fatalf("region %d differs, not %d", got, want)
		}
	})
}

// shuffled cuts a range at random, and shuffles the parts.
func shuffled(t *rapid.T, end int64) []model.Span {
	seams := append(rapid.SliceOfN(rapid.Int64Range(0, end), 0, 30).Draw(t, "seams"), 0, end)
	slices.Sort(seams)
	var all []model.Span
	for i, from := range seams[:len(seams)-1] {
		if n := seams[i+1] - from; n > 0 {
			all = append(all, model.Span{Offset: from, Bytes: n})
		}
	}
	return rapid.Permutation(all).Draw(t, "order")
}

func random(n int, seed uint64) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	_, _ = r.Read(p)
	return p
}
