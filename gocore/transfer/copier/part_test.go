package copier

import (
	"bytes"
	"testing"
	"unsafe"

	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// slice is the indices from a start on, at a step, of one axis.
type slice struct{ start, step, n int64 }

// drawSlices draws a basic slice of each axis of a dense array.
func drawSlices(t *rapid.T, shape []int64) (all []slice) {
	for _, n := range shape {
		s := slice{start: rapid.Int64Range(0, max(n-1, 0)).Draw(t, "start"), step: rapid.SampledFrom([]int64{1, 1, 2, 3}).Draw(t, "step")}
		s.n = rapid.Int64Range(0, (n-s.start+s.step-1)/s.step).Draw(t, "n")
		all = append(all, s)
	}
	return all
}

// partOf returns the part of a dense array of elements that slices select, and the offsets of its bytes: the naive reference.
func partOf(shape []int64, item int64, by []slice) (p model.Part, offsets []int64) {
	p.Item = item
	strides := make([]int64, len(shape))
	stride := item
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i], stride = stride, stride*max(shape[i], 1)
	}
	for i, s := range by {
		p.Offset += s.start * strides[i]
		p.Shape, p.Strides = append(p.Shape, s.n), append(p.Strides, s.step*strides[i])
	}
	var visit func(axis int, at int64)
	visit = func(axis int, at int64) {
		if axis == len(shape) {
			for i := range item {
				offsets = append(offsets, at+i)
			}
			return
		}
		for i := range p.Shape[axis] {
			visit(axis+1, at+i*p.Strides[axis])
		}
	}
	visit(0, p.Offset)
	return p, offsets
}

// drawDense draws the shape of a dense array of at most about limit bytes.
func drawDense(t *rapid.T, limit int64) (shape []int64, item, total int64) {
	item = rapid.SampledFrom([]int64{1, 2, 3, 4, 8, 12, 16, 40}).Draw(t, "item")
	total = item
	for range rapid.IntRange(0, 4).Draw(t, "axes") {
		n := rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64Range(1, limit/item)).Draw(t, "length")
		n = min(n, max(1, limit/total))
		shape, total = append(shape, n), total*max(n, 1)
	}
	return shape, item, total
}

// Parts of random regions into destinations of any strides, several per job and beside whole regions, compared with copying byte by byte.
func TestPartsAgainstReference(t *testing.T) {
	pool := eagerPool(3)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{200, 5000, 3 * unitBytes}).Draw(t, "limit")
		var opt Options
		if rapid.Bool().Draw(t, "helpers") {
			opt.Pool = pool
		}
		var pieces []Piece
		var into, wanted [][]byte
		for range rapid.IntRange(1, 3).Draw(t, "pieces") {
			shape, item, total := drawDense(t, limit)
			region := random(int(total))
			part, offsets := partOf(shape, item, drawSlices(t, shape))
			n, err := part.Check(total)
			if err != nil || n != int64(len(offsets)) {
				t.Fatalf("%+v of %d: %d bytes, %v; want %d", part, total, n, err, len(offsets))
			}
			p := Piece{Slot: address(region), Bytes: n, Part: &part}
			memory := bytes.Repeat([]byte{0xEE}, int(n)+16)
			p.Mem.Base = unsafe.Add(address(memory), 8)
			step := int64(1)
			if n > 0 && rapid.Bool().Draw(t, "strided") {
				step = 2 + rapid.Int64Range(0, 1).Draw(t, "more")
				memory = bytes.Repeat([]byte{0xEE}, int(n*step)+16)
				p.Mem = model.Strided{Base: unsafe.Add(address(memory), 8), Shape: []int64{n / item}, Strides: []int64{item * step}, Item: item}
			}
			want := bytes.Clone(memory)
			for i, from := range offsets {
				element := int64(i) / item
				want[8+element*item*step+int64(i)%item] = region[from]
			}
			pieces, into, wanted = append(pieces, p), append(into, memory), append(wanted, want)
		}
		job := NewJob(Scatter, pieces, opt)
		runAll(job, 1)
		job.Free()
		for i := range into {
			if !bytes.Equal(into[i], wanted[i]) {
				t.Fatalf("piece %d of %d bytes, %+v, differs", i, pieces[i].Bytes, pieces[i].Part)
			}
		}
	})
}
