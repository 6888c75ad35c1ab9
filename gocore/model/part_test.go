package model

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawPart draws a part of a region of at most some thousand bytes, and the region's size.
func drawPart(t *rapid.T) (p Part, region int64) {
	p.Item = rapid.Int64Range(1, 40).Draw(t, "item")
	extent := p.Item
	for range rapid.IntRange(0, 4).Draw(t, "axes") {
		n := rapid.Int64Range(1, 5).Draw(t, "n")
		stride := extent + rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 60)).Draw(t, "gap")
		p.Shape, p.Strides = append([]int64{n}, p.Shape...), append([]int64{stride}, p.Strides...)
		extent += (n - 1) * stride
	}
	p.Offset = rapid.Int64Range(0, 200).Draw(t, "offset")
	return p, p.Offset + extent + rapid.Int64Range(0, 100).Draw(t, "rest")
}

// marked marks the bytes of a part: the naive reference.
func marked(p *Part, region int64) ([]bool, int64) {
	in, bytes := make([]bool, region), int64(0)
	var visit func(axis int, at int64)
	visit = func(axis int, at int64) {
		if axis == len(p.Shape) {
			for i := range p.Item {
				in[at+i] = true
				bytes++
			}
			return
		}
		for i := range p.Shape[axis] {
			visit(axis+1, at+i*p.Strides[axis])
		}
	}
	visit(0, p.Offset)
	return in, bytes
}

// The spans hold every byte of the part, every block of them holds one, unless it lies in a gap that is covered, and they are disjoint and ascend.
func TestCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, region := drawPart(t)
		in, want := marked(&p, region)
		if got, err := p.Check(region); err != nil || got != want {
			t.Fatalf("%+v of %d: %d bytes, %v; want %d", p, region, got, err, want)
		}
		align := rapid.SampledFrom([]int64{1, 2, 16, 64}).Draw(t, "align")
		gap := align - 1
		if rapid.Bool().Draw(t, "gaps") {
			gap += rapid.Int64Range(0, 80).Draw(t, "more")
		}
		end := int64(-gap - 1)
		for _, s := range p.Cover(region, align, gap) {
			if s.Offset%align != 0 || s.Bytes <= 0 || s.End() > region || s.End()%align != 0 && s.End() != region || s.Offset-end <= gap {
				t.Fatalf("%+v of %d, align %d, gap %d: span %+v behind %d", p, region, align, gap, s, end)
			}
			idle := int64(0)
			for at := s.Offset; at < s.End(); at++ {
				if idle++; in[at] {
					idle = 0
				}
				in[at] = false
				if idle > gap+2*align {
					t.Fatalf("%+v of %d, align %d, gap %d: span %+v holds %d bytes in a row that are not wanted", p, region, align, gap, s, idle)
				}
			}
			end = s.End()
		}
		for at, missed := range in {
			if missed {
				t.Fatalf("%+v of %d, align %d, gap %d: byte %d is not covered", p, region, align, gap, at)
			}
		}
	})
}

// Blocks without a byte of the part are left out where only blocks count: what a restore reads is what it verifies.
func TestCoverHoldsNoBlockInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, region := drawPart(t)
		in, _ := marked(&p, region)
		const align = 16
		for _, s := range p.Cover(region, align, align-1) {
			for from := s.Offset; from < s.End(); from += align {
				used := false
				for at := from; at < min(from+align, region); at++ {
					used = used || in[at]
				}
				if !used {
					t.Fatalf("%+v of %d: the block at %d is covered in vain", p, region, from)
				}
			}
		}
	})
}

func TestPartsThatCannotBe(t *testing.T) {
	for name, p := range map[string]Part{
		"negative offset":     {Offset: -1, Item: 4},
		"behind the end":      {Offset: 101},
		"too long":            {Offset: 97, Item: 4},
		"negative element":    {Item: -4},
		"negative axis":       {Item: 4, Shape: []int64{-1}, Strides: []int64{4}},
		"strides are missing": {Item: 4, Shape: []int64{2}},
		"negative stride":     {Offset: 50, Item: 4, Shape: []int64{2}, Strides: []int64{-4}},
		"repeated":            {Item: 4, Shape: []int64{2}, Strides: []int64{0}},
		"overlapping":         {Item: 4, Shape: []int64{2}, Strides: []int64{3}},
		"axes in no order":    {Item: 4, Shape: []int64{3, 3}, Strides: []int64{4, 12}},
		"overflow":            {Item: 4, Shape: []int64{math.MaxInt64}, Strides: []int64{math.MaxInt64}},
		"overflow of sums":    {Item: 8, Shape: []int64{2, 2}, Strides: []int64{math.MaxInt64 - 4, 1 << 62}},
		"many":                {Item: 4, Shape: []int64{1 << 40}, Strides: []int64{4}},
	} {
		if bytes, err := p.Check(100); !errors.Is(err, ErrShape) {
			t.Errorf("%s: %d bytes, %v", name, bytes, err)
		}
	}
	for name, p := range map[string]Part{
		"nothing":           {},
		"nothing at an end": {Offset: 100},
		"an empty axis":     {Item: 4, Shape: []int64{1 << 62, 0}, Strides: []int64{1, 1}},
	} {
		if bytes, err := p.Check(100); err != nil || bytes != 0 || p.Cover(100, 1, 0) != nil {
			t.Errorf("%s: %d bytes, %v, %v", name, bytes, err, p.Cover(100, 1, 0))
		}
	}
	whole := Part{Item: 100}
	if bytes, err := whole.Check(100); err != nil || bytes != 100 || !whole.IsWhole(100) || whole.IsWhole(99) {
		t.Errorf("a whole region: %d bytes, %v", bytes, err)
	}
}

// A part of very many small rows costs no more than the blocks that it touches.
func TestCoverOfManyRows(t *testing.T) {
	p := Part{Item: 4, Shape: []int64{1 << 30, 16}, Strides: []int64{1 << 10, 32}}
	if spans := p.Cover(1<<40, 256<<10, 256<<10-1); len(spans) != 1 || spans[0] != (Span{Bytes: 1 << 40}) {
		t.Errorf("%d spans", len(spans))
	}
}
