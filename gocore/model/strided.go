package model

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// ErrShape marks a shape that cannot be: negative lengths, too many bytes, or not the bytes promised.
var ErrShape = errors.New("impossible shape")

// Strided is an array in raw memory that the caller owns. Strides are in bytes and may be negative
// or zero; the last axis runs fastest. Without axes it is one contiguous run of bytes.
type Strided struct {
	Base           unsafe.Pointer // of the element with all indices zero
	Shape, Strides []int64
	Item           int64 // bytes of one element
}

// Check tells whether the array has exactly the given number of bytes. Everything that comes from
// outside has to pass it before it is copied.
func (s *Strided) Check(bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("%d bytes: %w", bytes, ErrShape)
	}
	if len(s.Shape) == 0 {
		return nil
	}
	if len(s.Strides) != len(s.Shape) || s.Item <= 0 {
		return fmt.Errorf("%d axes, %d strides, elements of %d bytes: %w", len(s.Shape), len(s.Strides), s.Item, ErrShape)
	}
	empty := false
	for _, n := range s.Shape {
		if n < 0 {
			return fmt.Errorf("an axis of length %d: %w", n, ErrShape)
		}
		empty = empty || n == 0
	}
	if empty {
		if bytes != 0 {
			return fmt.Errorf("an empty array for %d bytes: %w", bytes, ErrShape)
		}
		return nil
	}
	total := s.Item
	for _, n := range s.Shape {
		if total > math.MaxInt64/n {
			return fmt.Errorf("more than 2^63 bytes: %w", ErrShape)
		}
		total *= n
	}
	if total != bytes {
		return fmt.Errorf("an array of %d bytes for %d: %w", total, bytes, ErrShape)
	}
	return nil
}

// Contiguous tells whether the array is one run of bytes in the order of its indices, so that a plain copy moves it. The array must not be
// empty.
func (s *Strided) Contiguous() bool {
	step := s.Item
	for i := len(s.Shape) - 1; i >= 0; i-- {
		if s.Shape[i] != 1 && s.Strides[i] != step {
			return false
		}
		step *= s.Shape[i]
	}
	return true
}

// Axis is one dimension of an array: the number of elements, and the bytes from one to the next.
type Axis struct{ N, Stride int64 }

// Collapse appends the fewest axes that describe the array to into, and returns the bytes of what
// counts as one element then: neighbours that are contiguous in memory have become one. No axis
// left means contiguous. The array must not be empty.
func (s *Strided) Collapse(into []Axis) (axes []Axis, item int64) {
	axes, item = into, s.Item
	first := len(axes)
	for i := len(s.Shape) - 1; i >= 0; i-- { // from the fastest axis outwards; turned round below
		n, stride := s.Shape[i], s.Strides[i]
		switch last := len(axes) - 1; {
		case n == 1:
		case last < first && stride == item:
			item *= n
		case last >= first && stride == axes[last].Stride*axes[last].N:
			axes[last].N *= n
		default:
			axes = append(axes, Axis{n, stride})
		}
	}
	for i, j := first, len(axes)-1; i < j; i, j = i+1, j-1 {
		axes[i], axes[j] = axes[j], axes[i]
	}
	return axes, item
}
