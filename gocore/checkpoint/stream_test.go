package checkpoint

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

// Chunks have every byte that is wanted once, and whole leaves; none is longer than allowed. Damage is found as it is of a reading that keeps all bytes.
func TestStreamOfAReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, captured := drawVersion(t)
		if all, err := b.Leaves(captured); err == nil && rapid.Bool().Draw(t, "knows the leaves") {
			b.KeepLeaves(all)
		}
		var want Selection
		parts := rapid.Bool().Draw(t, "parts")
		if parts {
			want.Parts = []model.Part{}
		}
		for i, span := range b.Layout.Spans {
			if rapid.Bool().Draw(t, "wanted") {
				want.Regions = append(want.Regions, int32(i))
				if parts {
					from := rapid.Int64Range(0, span.Bytes).Draw(t, "from")
					want.Parts = append(want.Parts, model.Part{Offset: from, Item: rapid.Int64Range(0, span.Bytes-from).Draw(t, "bytes")})
				}
			}
		}
		verifies := rapid.Bool().Draw(t, "verifies")
		most := rapid.SampledFrom([]int64{checksum.LeafBytes, 2 * checksum.LeafBytes, 3*checksum.LeafBytes + 5}).Draw(t, "most")
		s := b.Reading(want, verifies).Stream(most, verifies)

		damaged := int64(-1)
		if len(captured) > 0 && rapid.Bool().Draw(t, "damaged") {
			damaged = rapid.Int64Range(0, int64(len(captured))-1).Draw(t, "at")
			captured[damaged] ^= 1
		}
		read, found := false, make([]int64, len(want.Regions))
		end := int64(0)
		for i := range s.Chunks {
			c := &s.Chunks[i]
			if c.Offset < end || c.Bytes > most || c.Bytes <= 0 || c.End() > int64(len(captured)) {
				t.Fatalf("a chunk %+v behind %d", c.Span, end)
			}
			end = c.End()
			for j := range c.Runs {
				r := &c.Runs[j]
				region := b.Layout.Spans[want.Regions[r.Wanted]]
				if r.Offset < c.Offset || r.End() > c.End() || r.Offset < region.Offset || r.End() > region.End() {
					t.Fatalf("%+v in %+v of %+v", r, c.Span, region)
				}
				if r.To.Bytes > 0 {
					from := region.Offset + found[r.Wanted]
					if parts {
						from += want.Parts[r.Wanted].Offset
					}
					if r.To.Offset != found[r.Wanted] || r.From != from || r.From < r.Offset || r.From+r.To.Bytes > r.End() {
						t.Fatalf("%+v does not follow %d", r, found[r.Wanted])
					}
					found[r.Wanted] += r.To.Bytes
				}
				read = read || damaged >= r.Offset && damaged < r.End()
				for k := range checksum.Leaves(r.Bytes) {
					at := r.Offset + int64(k)*checksum.LeafBytes
					s.Note(r, k, checksum.Leaf(captured[at:min(at+checksum.LeafBytes, r.End())]))
				}
			}
		}
		for j, i := range want.Regions {
			n := b.Layout.Spans[i].Bytes
			if parts {
				n = want.Parts[j].Item
			}
			if found[j] != n {
				t.Fatalf("%d of %d bytes of region %d", found[j], n, i)
			}
		}
		got, expected := s.Mismatch(), -1
		if read && verifies {
			expected = b.Layout.At(damaged)
		}
		if got != expected || s.Verifies() != verifies {
			t.Fatalf("region %d differs, not %d; verifies: %v", got, expected, s.Verifies())
		}
	})
}
