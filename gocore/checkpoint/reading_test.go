package checkpoint

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

// drawVersion draws a version with large and small regions, and its bytes.
func drawVersion(t *rapid.T) (*Version, []byte) {
	b := &Version{Layout: &Layout{}}
	end := int64(0)
	for range rapid.IntRange(1, 4).Draw(t, "regions") {
		end += rapid.SampledFrom([]int64{0, 1, 100, closeBy + 1}).Draw(t, "gap")
		n := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 4*checksum.LeafBytes),
			rapid.SampledFrom([]int64{0, checksum.LeafBytes, checksum.LeafBytes + 1, 3 * checksum.LeafBytes})).Draw(t, "bytes")
		b.Layout.Spans = append(b.Layout.Spans, model.Span{Offset: end, Bytes: n})
		end += n
	}
	captured := random(int(end), rapid.Uint64Range(0, 1<<16).Draw(t, "seed"))
	for _, span := range b.Layout.Spans {
		b.Sums = append(b.Sums, checksum.Sum(captured[span.Offset:span.End()]))
	}
	return b, captured
}

// drawPartOf draws a part of a region: rows at a distance, or a run.
func drawPartOf(t *rapid.T, region int64) model.Part {
	if rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
		return model.Part{Item: region}
	}
	if region == 0 || rapid.IntRange(0, 5).Draw(t, "empty") == 0 {
		return model.Part{Offset: rapid.Int64Range(0, region).Draw(t, "at")}
	}
	p := model.Part{Offset: rapid.Int64Range(0, region-1).Draw(t, "offset")}
	room := region - p.Offset
	p.Item = rapid.Int64Range(1, min(room, 5000)).Draw(t, "item")
	if rapid.Bool().Draw(t, "run") {
		p.Item = rapid.Int64Range(1, room).Draw(t, "long item")
	}
	if stride := rapid.Int64Range(p.Item, p.Item+2*checksum.LeafBytes).Draw(t, "stride"); rapid.Bool().Draw(t, "rows") {
		most := min((room-p.Item)/stride+1, 1000)
		p.Shape, p.Strides = []int64{rapid.Int64Range(1, most).Draw(t, "rows")}, []int64{stride}
	}
	return p
}

// eachRun calls f with the range in the slot of each run of a part.
func eachRun(region model.Span, p *model.Part, f func(from, end int64)) {
	rows, stride := int64(1), int64(0)
	if len(p.Shape) > 0 {
		rows, stride = p.Shape[0], p.Strides[0]
	}
	for i := range rows {
		at := region.Offset + p.Offset + i*stride
		f(at, at+p.Item)
	}
}

// A reading has all bytes that are wanted. Damage to one of them is found, however much is known of the leaves. Damage elsewhere is not found unless a
// leaf with it was read. With known leaves, no more is read of a region than the leaves that the part touches.
func TestReadingOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, captured := drawVersion(t)
		knows := rapid.SampledFrom([]string{"all", "some", "none"}).Draw(t, "knows")
		all, err := b.Leaves(captured)
		if err != nil {
			t.Fatal(err)
		}
		switch knows {
		case "all":
			b.AdoptLeaves(all)
		case "some":
			for i, span := range b.Layout.Spans {
				if span.Bytes > checksum.LeafBytes && rapid.Bool().Draw(t, "known") {
					var leaves []uint64
					for at := span.Offset; at < span.End(); at += checksum.LeafBytes {
						leaves = append(leaves, checksum.Leaf(captured[at:min(at+checksum.LeafBytes, span.End())]))
					}
					b.NoteLeaves(map[int32][]uint64{int32(i): leaves})
				}
			}
		}
		var want Selection
		for i, span := range b.Layout.Spans {
			if rapid.IntRange(0, 4).Draw(t, "wanted") > 0 {
				want.Regions = append(want.Regions, int32(i))
				want.Parts = append(want.Parts, drawPartOf(t, span.Bytes))
			}
		}
		if want.Parts == nil {
			want.Parts = []model.Part{}
		}
		verifies := rapid.IntRange(0, 3).Draw(t, "verifies") > 0
		r := b.Reading(want, verifies)

		read := make([]bool, len(captured))
		end := int64(-1)
		for _, s := range r.Spans {
			if s.Offset <= end || s.Bytes <= 0 || s.End() > int64(len(captured)) {
				t.Fatalf("span %+v behind %d in %d", s, end, len(captured))
			}
			end = s.End()
			for at := s.Offset; at < s.End(); at++ {
				read[at] = true
			}
		}
		var wanted []int64 // some byte of every run
		bound := int64(0)
		for j, i := range want.Regions {
			p, region := &want.Parts[j], b.Layout.Spans[i]
			eachRun(region, p, func(from, end int64) {
				for at := from; at < end; at++ {
					if !read[at] {
						t.Fatalf("byte %d of region %d is not read", at, i)
					}
				}
				if from < end {
					wanted = append(wanted, rapid.Int64Range(from, end-1).Draw(t, "byte"))
				}
				bound += min((end - from + 2*checksum.LeafBytes), region.Bytes)
			})
		}
		if knows == "all" && r.Bytes() > bound+closeBy*int64(len(want.Regions)) {
			t.Fatalf("%d bytes are read, at most %d are needed", r.Bytes(), bound)
		}

		damaged := int64(-1)
		if len(wanted) > 0 && rapid.Bool().Draw(t, "damaged") {
			damaged = rapid.SampledFrom(wanted).Draw(t, "at")
			captured[damaged] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		got := receive(t, r, captured, verifies)
		switch {
		case !verifies: // nothing is found, and nothing is hashed
		case damaged >= 0 && got != b.Layout.At(damaged):
			t.Fatalf("byte %d of region %d is damaged: %d", damaged, b.Layout.At(damaged), got)
		case damaged < 0 && got != -1:
			t.Fatalf("region %d is not damaged", got)
		case damaged < 0: // what was read of a whole region is known from now on
			for j, i := range want.Regions {
				if p, region := &want.Parts[j], b.Layout.Spans[i]; !p.IsWhole(region.Bytes) && p.Item > 0 {
					again := Selection{Regions: []int32{i}, Parts: []model.Part{*p}}
					if n := b.Reading(again, true).Bytes(); n > int64(len(p.Cover(region.Bytes, 1, -1)))*(p.Item+2*checksum.LeafBytes) {
						t.Fatalf("region %d is read again as a whole: %d bytes", i, n)
					}
				}
			}
		}
	})
}

// receive brings the bytes of a reading in pieces, and returns the region that differs.
func receive(t *rapid.T, r *Reading, captured []byte, verifies bool) int {
	slot := make([]byte, len(captured))
	a := r.Verification(slot)
	said := 0
	a.Expect(r.Spans, verifies, func() { said++ })
	for _, s := range r.Spans {
		for at := s.Offset; at < s.End(); {
			n := min(rapid.Int64Range(1, 2*checksum.LeafBytes).Draw(t, "piece"), s.End()-at)
			copy(slot[at:at+n], captured[at:at+n])
			a.Received(at, n)
			at += n
		}
	}
	if len(r.Spans) > 0 && said != 1 {
		t.Fatalf("it was said %d times that all is read", said)
	}
	if !verifies {
		return -1
	}
	return a.Mismatch()
}

// Hashes of leaves from a catalog count only if the checksums follow from them.
func TestAdoptLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, captured := drawVersion(t)
		all, err := b.Leaves(captured)
		if err != nil {
			t.Fatal(err)
		}
		wrong := append([]uint64(nil), all...)
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0 && len(wrong) > 0:
			wrong[rapid.IntRange(0, len(wrong)-1).Draw(t, "which")]++
		case kind == 1 && len(wrong) > 0:
			wrong = wrong[1:]
		case kind == 2:
			wrong = append(wrong, 7)
		default:
			b.AdoptLeaves(all)
			if len(b.AllLeaves()) != len(all) {
				t.Fatalf("%d of %d leaves", len(b.AllLeaves()), len(all))
			}
			return
		}
		if b.AdoptLeaves(wrong); b.AllLeaves() != nil {
			t.Fatal("wrong leaves were taken over")
		}
	})
}
