package model

import (
	"errors"
	"slices"
	"testing"

	"velocpy/gocore/reduction/codec"

	"pgregory.net/rapid"
)

// The containers of an encoding have every byte of the regions once, and lie behind one another.
func TestContainersCoverTheRegions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := PartGrain * rapid.Int64Range(1, 5).Draw(t, "part")
		var regions []Span
		at, count := int64(0), int64(0)
		for range rapid.IntRange(0, 5).Draw(t, "regions") {
			at += rapid.Int64Range(0, 100).Draw(t, "gap")
			n := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3*part), rapid.Just(part), rapid.Just(2*part+1)).Draw(t, "bytes")
			regions = append(regions, Span{at, n})
			at, count = at+n, count+Containers(n, part)
		}
		e := &Encoding{Part: part}
		for _, s := range regions {
			for left := s.Bytes; left > 0; left -= part {
				most := uint32(codec.Bound(int(min(left, part)))) / ContainerAlign
				e.Lengths = append(e.Lengths, ContainerAlign*rapid.OneOf(rapid.Uint32Range(1, most), rapid.Just(most)).Draw(t, "length"))
			}
		}
		if count != int64(len(e.Lengths)) {
			t.Fatalf("%d containers, not %d", count, len(e.Lengths))
		}
		if err := e.Check(regions); err != nil {
			t.Fatal(err)
		}
		covered := make([]Span, len(regions))
		for i, s := range regions {
			covered[i].Offset = s.Offset
		}
		end := int64(0)
		e.Each(regions, func(c Container) bool {
			if c.At.Offset != end || c.Plain.Offset != covered[c.Region].End() || c.Plain.Bytes < 1 || c.Plain.Bytes > part {
				t.Fatalf("%+v behind %d and %+v", c, end, covered[c.Region])
			}
			end = c.At.End()
			covered[c.Region].Bytes += c.Plain.Bytes
			return true
		})
		if end != e.Bytes() || !slices.Equal(covered, regions) {
			t.Fatalf("%d of %d bytes, %v of %v", end, e.Bytes(), covered, regions)
		}
	})
}

func TestImpossibleEncodings(t *testing.T) {
	regions := []Span{{0, PartGrain + 1}, {PartGrain + 64, 0}, {PartGrain + 64, 5}}
	most := uint32(ContainerBound(PartGrain))
	for name, e := range map[string]Encoding{
		"no part":          {Part: 0, Lengths: []uint32{16, 16, 16}},
		"an odd part":      {Part: PartGrain + 1, Lengths: []uint32{16, 16, 16}},
		"a large part":     {Part: 2 * MostPart, Lengths: []uint32{16, 16}},
		"too few":          {Part: PartGrain, Lengths: []uint32{16, 16}},
		"too many":         {Part: PartGrain, Lengths: []uint32{16, 16, 16, 16}},
		"none":             {Part: PartGrain, Lengths: nil},
		"an empty one":     {Part: PartGrain, Lengths: []uint32{16, 0, 16}},
		"an odd container": {Part: PartGrain, Lengths: []uint32{16, 24, 16}},
		"a long one":       {Part: PartGrain, Lengths: []uint32{most + 16, 16, 16}},
		"a long last one":  {Part: PartGrain, Lengths: []uint32{16, 16, 112}},
		"huge ones":        {Part: 2 * PartGrain, Lengths: []uint32{1<<32 - 16, 1<<32 - 16}},
	} {
		if err := e.Check(regions); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, e := range []Encoding{{Part: PartGrain, Lengths: []uint32{16, 16, 16}}, {Part: PartGrain, Lengths: []uint32{most, 96, 96}}, {Part: MostPart, Lengths: []uint32{most + 16, 96}}} {
		if err := e.Check(regions); err != nil {
			t.Error(e, err)
		}
	}
}

func TestContainerBound(t *testing.T) {
	for _, n := range []int64{0, 1, 15, 16, 17, 16383, 16384, 16385, PartGrain - 1, PartGrain, 3*PartGrain + 5, MostPart - 1, MostPart} {
		if got, want := ContainerBound(n), int64(codec.Bound(int(n))); got != want {
			t.Errorf("%d plain bytes: %d, package codec has %d", n, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, MostPart).Draw(t, "plain")
		if got, want := ContainerBound(n), int64(codec.Bound(int(n))); got != want {
			t.Fatalf("%d, package codec has %d", got, want)
		}
	})
}
