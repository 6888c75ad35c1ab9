package copier

import (
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"testing"

	"velocpy/gocore/model"
)

// Check accepts exactly the possible arrays, whatever overflows. An accepted array has the same elements, in the same places, once its axes are
// collapsed. An axis is 16 bytes, length and stride, or, if small, 2.
func FuzzStrided(f *testing.F) {
	f.Fuzz(func(t *testing.T, axes []byte, missing uint8, item, bytes int64, small, count bool) {
		s := model.Strided{Item: item}
		for size := 16; len(axes) >= size && len(s.Shape) < 16; axes = axes[size:] {
			if small {
				size = 2
				s.Shape, s.Strides = append(s.Shape, int64(int8(axes[0]))), append(s.Strides, int64(int8(axes[1])))
			} else {
				s.Shape = append(s.Shape, int64(binary.LittleEndian.Uint64(axes)))
				s.Strides = append(s.Strides, int64(binary.LittleEndian.Uint64(axes[8:])))
			}
		}
		s.Strides = s.Strides[:max(0, len(s.Strides)-int(missing/64))]
		exact, exists := bytesOf(&s)
		if count && exact.IsInt64() {
			bytes = exact.Int64()
		}
		want := bytes >= 0 && (len(s.Shape) == 0 || exists && exact.Cmp(big.NewInt(bytes)) == 0)
		err := s.Check(bytes)
		if (err == nil) != want || err != nil && !errors.Is(err, model.ErrShape) {
			t.Fatalf("shape %v, strides %v, elements of %d bytes, for %d: %v, should be taken: %v", s.Shape, s.Strides, item, bytes, err, want)
		}
		if err != nil || len(s.Shape) == 0 || bytes == 0 || bytes/item > 1<<10 || item > 1<<10 {
			return
		}
		places := offsetsOf(s.Shape, s.Strides, item)
		collapsed, run := s.Collapse(nil)
		var shape, strides []int64
		for _, x := range collapsed {
			shape, strides = append(shape, x.N), append(strides, x.Stride)
		}
		if got := offsetsOf(shape, strides, run); !slices.Equal(got, places) {
			t.Fatalf("shape %v, strides %v, elements of %d bytes become %v of %d", s.Shape, s.Strides, item, collapsed, run)
		}
		together := true
		for i, at := range places {
			together = together && at == places[0]+int64(i)
		}
		if s.Contiguous() != together {
			t.Fatalf("shape %v, strides %v, elements of %d bytes: contiguous is %v", s.Shape, s.Strides, item, !together)
		}
	})
}

// bytesOf counts without overflow; false if there is no such array.
func bytesOf(s *model.Strided) (*big.Int, bool) {
	total := big.NewInt(s.Item)
	for _, n := range s.Shape {
		if n < 0 {
			return total, false
		}
		total.Mul(total, big.NewInt(n))
	}
	return total, len(s.Shape) == len(s.Strides) && s.Item > 0
}

// offsetsOf are the offsets of all bytes, in the order of the indices.
func offsetsOf(shape, strides []int64, item int64) []int64 {
	places := []int64{0}
	for i, n := range shape {
		var next []int64
		for _, at := range places {
			for k := range n {
				next = append(next, at+k*strides[i])
			}
		}
		places = next
	}
	var all []int64
	for _, at := range places {
		for k := range item {
			all = append(all, at+k)
		}
	}
	return all
}
