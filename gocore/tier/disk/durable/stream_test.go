package durable

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// A stream says of any cut of a checkpoint's bytes what their checksums say, and finds each bit that differs and each byte that is missing in a region.
func TestAStreamComparesWhatPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &catalog.Layout{}
		sizes := rapid.SampledFrom([]int64{0, 1, 63, 4096, checksum.LeafBytes - 1, checksum.LeafBytes, checksum.LeafBytes + 1, 3*checksum.LeafBytes + 100})
		for range rapid.IntRange(0, 4).Draw(t, "regions") {
			n := sizes.Draw(t, "bytes")
			l.Spans = append(l.Spans, model.Span{Offset: l.Slot, Bytes: n})
			l.Slot += (n + 63) / 64 * 64
		}
		bytes := make([]byte, l.Slot)
		r := rand.NewPCG(uint64(l.Slot), 1)
		for i := range bytes {
			bytes[i] = byte(r.Uint64())
		}
		row := &catalog.Row{Layout: l, Sums: []uint64{}}
		withLeaves := rapid.Bool().Draw(t, "leaves")
		for _, s := range l.Spans {
			p := bytes[s.Offset:s.End()]
			row.Sums = append(row.Sums, checksum.Sum(p))
			for n := checksum.Leaves(s.Bytes); withLeaves && n > 1 && len(p) > 0; p = p[min(len(p), checksum.LeafBytes):] {
				row.Leaves = append(row.Leaves, checksum.Leaf(p[:min(len(p), checksum.LeafBytes)]))
			}
		}
		cut := rapid.IntRange(1, 1<<20).Draw(t, "cut")
		sound := func(p []byte) bool {
			s := NewStream(row)
			for ; len(p) > 0; p = p[min(cut, len(p)):] {
				s.Take(p[:min(cut, len(p))])
			}
			return s.Sound()
		}
		if padded := append(bytes[:len(bytes):len(bytes)], make([]byte, 5000)...); !sound(bytes) || !sound(padded) {
			t.Fatal("right bytes are wrong")
		}
		if l.Slot == 0 {
			return
		}
		last := int64(0) // end of the last region that has bytes
		at := rapid.Int64Range(0, l.Slot-1).Draw(t, "at")
		inside := false
		for _, s := range l.Spans {
			inside = inside || s.Offset <= at && at < s.End()
			if s.Bytes > 0 {
				last = s.End()
			}
		}
		if bytes[at] ^= 1; sound(bytes) == inside {
			t.Fatalf("a bit of byte %d is another, in a region: %v", at, inside)
		}
		if bytes[at] ^= 1; sound(bytes[:last-1]) {
			t.Fatal("the last byte is missing")
		}
		if withLeaves && len(row.Leaves) > 0 {
			if row.Leaves[len(row.Leaves)-1] ^= 1; sound(bytes) {
				t.Fatal("the hash of a leaf is another")
			}
		}
	})
	if NewStream(&catalog.Row{Layout: &catalog.Layout{}}) != nil || NewStream(&catalog.Row{Layout: &catalog.Layout{}, Sums: []uint64{}, Content: catalog.Encoded}) != nil {
		t.Error("a row without checksums, or with encoded bytes, has a stream")
	}
}
