package store

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
)

// Pieces of any length, in any order, received by several goroutines at once, give the same result for every region as one verification of all bytes.
func TestIncrementalVerificationAgreesWithOnePass(t *testing.T) {
	const most = 3 * checksum.LeafBytes
	rapid.Check(t, func(t *rapid.T) {
		b := &body{layout: &layout{}}
		end := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "regions") {
			end += rapid.Int64Range(1, 100).Draw(t, "gap")
			n := rapid.OneOf(rapid.Int64Range(0, most), rapid.SampledFrom([]int64{0, 1, checksum.LeafBytes, checksum.LeafBytes + 1, 2 * checksum.LeafBytes})).Draw(t, "bytes")
			b.layout.Spans = append(b.layout.Spans, model.Span{Offset: end, Bytes: n})
			end += n
		}
		if rapid.Bool().Draw(t, "large") {
			b.layout.Spans = append(b.layout.Spans, model.Span{Offset: end, Bytes: incrementalFrom})
			end += incrementalFrom
		}
		captured := random(int(end), rapid.Uint64Range(0, 1<<32-1).Draw(t, "seed"))
		for _, span := range b.layout.Spans {
			b.sums = append(b.sums, checksum.Sum(captured[span.Offset:span.Offset+span.Bytes]))
		}
		for range rapid.IntRange(0, 2).Draw(t, "flips") {
			captured[rapid.Int64Range(0, end-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		wanted := b.layout.all()
		if i := rapid.IntRange(0, len(wanted)-1).Draw(t, "left out"); i < len(wanted)-1 {
			wanted = slices.Delete(wanted, i, i+1)
		}

		slot := make([]byte, end)
		a := newVerification(slot, b, wanted)
		var read atomic.Int64
		a.expect([]model.Span{{Offset: 0, Bytes: end}}, true, func() { read.Inc() })
		var all sync.WaitGroup
		turns := make(chan struct{}, 3)
		for _, span := range shuffled(t, end) {
			all.Go(func() {
				turns <- struct{}{}
				copy(slot[span.Offset:], captured[span.Offset:span.Offset+span.Bytes])
				a.received(span.Offset, span.Bytes)
				<-turns
			})
		}
		all.Wait()
		if read.Load() != 1 {
			t.Fatalf("it was said %d times that all is read", read.Load())
		}
		if got, want := a.mismatch(), b.mismatch(captured, wanted); got != want {
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

// A bit that flips on disk is found wherever it is in a checkpoint that is read in many pieces, in its region and in no other. The undamaged regions
// are restored.
func TestFlippedBitInALargeCheckpointOnDisk(t *testing.T) {
	sizes := []int{3<<20 + 77, 0, 1000, checksum.LeafBytes, 5 << 20, 9}
	for name, host := range map[string]int64{"by the cache": 24 << 20, "past it": 0} {
		t.Run(name, func(t *testing.T) {
			s := open(t, cached(host, 160<<20, jitter{vfs.NewMem(256 << 20), time.Millisecond}))
			h := newClient(t, s, "h")
			for bad, size := range sizes {
				if size == 0 {
					continue
				}
				k := int64(bad)
				regions, _, slot := wide(sizes, uint64(k))
				out, err := h.write(&CheckpointArgs{Key: model.NumberKey(k), Regions: regions, Layout: []byte("wide"), Slot: slot, FD: h.fd, Tier: status.TierNone})
				if err == nil {
					err = h.wait(out.Ticket, status.TierDisk)
				}
				if err != nil {
					t.Fatal(err)
				}
				if host > 0 {
					h.evict(k, 6<<20)
				}
				checkWide3(t, h, k, sizes)
				if host > 0 {
					h.evict(k, 6<<20)
				}
				if err := h.h.Corrupt(model.NumberKey(k), status.TierDisk, regions[bad].Offset+rand.Int64N(int64(size))); err != nil {
					t.Fatal(err)
				}
				_, _, err = h.lease(k, RestoreArgs{})
				if e := wants(t, err, status.Corrupt); e.Tier != status.TierDisk || e.Region != bad {
					t.Fatalf("region %d: %+v", bad, e)
				}
				others := slices.DeleteFunc([]int32{0, 1, 2, 3, 4, 5}, func(i int32) bool { return int(i) == bad })
				release(t, h.mustLease(k, RestoreArgs{Select: others}))
				h.drop(k)
			}
			drained(t, s)
		})
	}
}
