package model

import (
	"fmt"
	"math"
)

// Part is a part of a region, as it lies there: elements at regular distances. Strides are in bytes, the last axis runs fastest, and each stride is at
// least what the axes behind it span, so that the bytes of the part ascend. Without axes it is one contiguous run of Item bytes.
type Part struct {
	Offset         int64 // of the first element, in the region
	Shape, Strides []int64
	Item           int64 // bytes of one element
}

// IsWhole tells whether the part is all of a region of so many bytes.
func (p *Part) IsWhole(bytes int64) bool {
	return len(p.Shape) == 0 && p.Offset == 0 && p.Item == bytes
}

// Check returns the bytes of the part. It fails unless the part lies in a region of so many bytes. Everything that comes from outside has to pass it.
func (p *Part) Check(region int64) (bytes int64, err error) {
	if p.Item < 0 || p.Offset < 0 || p.Offset > region || len(p.Shape) != len(p.Strides) {
		return 0, fmt.Errorf("elements of %d bytes from byte %d on, %d axes, %d strides: %w", p.Item, p.Offset, len(p.Shape), len(p.Strides), ErrShape)
	}
	bytes = p.Item
	for _, n := range p.Shape {
		if n < 0 {
			return 0, fmt.Errorf("an axis of length %d: %w", n, ErrShape)
		}
		if n == 0 {
			bytes = 0
		}
	}
	if bytes == 0 {
		return 0, nil
	}
	extent := p.Item
	for i := len(p.Shape) - 1; i >= 0; i-- {
		n, stride := p.Shape[i], p.Strides[i]
		if n == 1 {
			continue
		}
		if stride < extent {
			return 0, fmt.Errorf("a stride of %d bytes over elements of %d: %w", stride, extent, ErrShape)
		}
		if n-1 > (math.MaxInt64-extent)/stride {
			return 0, fmt.Errorf("more than 2^63 bytes: %w", ErrShape)
		}
		extent += (n - 1) * stride
		bytes *= n // no more than extent
	}
	if extent > region-p.Offset {
		return 0, fmt.Errorf("%d bytes from byte %d on, of %d: %w", extent, p.Offset, region, ErrShape)
	}
	return bytes, nil
}

// Cover returns the spans of a region that hold the part, ascending and disjoint. Each begins and ends at a multiple of align, or at the region's end. A
// gap of at most that many bytes is covered, too. The part has passed Check. The work, and the number of spans, grow with the number of larger gaps.
func (p *Part) Cover(region, align, gap int64) []Span {
	if bytes, _ := p.Check(region); bytes == 0 {
		return nil
	}
	c := cover{region: region, align: align, gap: gap}
	c.axes = make([]coverAxis, 0, len(p.Shape))
	extent, dense := p.Item, true
	for i := len(p.Shape) - 1; i >= 0; i-- {
		if n, stride := p.Shape[i], p.Strides[i]; n > 1 {
			dense = dense && stride-extent <= gap
			extent += (n - 1) * stride
			c.axes = append(c.axes, coverAxis{Axis: Axis{N: n, Stride: stride}, extent: extent, dense: dense})
		}
	}
	c.add(p.Offset, len(c.axes), p.Item)
	return c.spans
}

// cover collects the spans of a part.
type cover struct {
	region, align, gap int64
	axes               []coverAxis // the fastest first
	spans              []Span
}

// coverAxis is an axis, with what it and the faster ones span.
type coverAxis struct {
	Axis
	extent int64
	dense  bool // no gap inside is larger than those that are covered
}

// add adds the elements of the fastest axes from a byte on.
func (c *cover) add(at int64, axes int, item int64) {
	if axes == 0 {
		c.emit(at, item)
		return
	}
	a := &c.axes[axes-1]
	if a.dense {
		c.emit(at, a.extent)
		return
	}
	for i := range a.N {
		c.add(at+i*a.Stride, axes-1, item)
	}
}

func (c *cover) emit(at, n int64) {
	from, end := at/c.align*c.align, at+n
	if over := end % c.align; over > 0 {
		end += min(c.align-over, c.region-end)
	}
	if last := len(c.spans) - 1; last >= 0 && from-c.spans[last].End() <= c.gap {
		c.spans[last].Bytes = end - c.spans[last].Offset
		return
	}
	c.spans = append(c.spans, Span{Offset: from, Bytes: end - from})
}

// CloneParts copies what the caller's arguments say of parts, for use after the call.
func CloneParts(parts []Part) []Part {
	if parts == nil {
		return nil
	}
	all := make([]Part, len(parts))
	for i, p := range parts {
		p.Shape, p.Strides = append([]int64(nil), p.Shape...), append([]int64(nil), p.Strides...)
		all[i] = p
	}
	return all
}
