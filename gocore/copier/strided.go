package copier

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// ErrShape marks a layout that cannot be: negative lengths, too many bytes, or not the bytes promised.
var ErrShape = errors.New("impossible shape")

// Strided is an array in raw memory that the caller owns. Strides are in bytes and may be negative
// or zero; the last axis runs fastest. Without axes it is one contiguous run of bytes.
type Strided struct {
	Base           unsafe.Pointer // of the element with all indices zero
	Shape, Strides []int64
	Item           int64 // bytes of one element
}

// Check tells whether the array has exactly the given number of bytes. Everything that comes from
// outside has to pass it before it becomes a Piece.
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

// axis is one dimension of a walk.
type axis struct{ n, stride int64 }

// collapse appends the fewest axes that describe the array to into, and returns the bytes of what
// counts as one element then: neighbours that are contiguous in memory have become one. No axis
// left means contiguous. The array must not be empty.
func (s *Strided) collapse(into []axis) (axes []axis, item int64) {
	axes, item = into, s.Item
	first := len(axes)
	for i := len(s.Shape) - 1; i >= 0; i-- { // from the fastest axis outwards; turned round below
		n, stride := s.Shape[i], s.Strides[i]
		switch last := len(axes) - 1; {
		case n == 1:
		case last < first && stride == item:
			item *= n
		case last >= first && stride == axes[last].stride*axes[last].n:
			axes[last].n *= n
		default:
			axes = append(axes, axis{n, stride})
		}
	}
	for i, j := first, len(axes)-1; i < j; i, j = i+1, j-1 {
		axes[i], axes[j] = axes[j], axes[i]
	}
	return axes, item
}

// walk copies bytes [from, to) of the array's dense form between the array and slot, the address of
// dense byte from. scatter says that the array is the destination.
func walk(base unsafe.Pointer, axes []axis, item, from, to int64, slot unsafe.Pointer, scatter bool) {
	element := from / item
	if skip := from - element*item; skip > 0 {
		n := min(item-skip, to-from)
		move(unsafe.Add(at(base, axes, element), skip), slot, n, scatter)
		if from, element = from+n, element+1; from == to {
			return // the address behind the slot may belong to somebody else
		}
		slot = unsafe.Add(slot, n)
	}
	if whole := (to - from) / item; whole > 0 {
		rows(base, axes, item, element, whole, slot, scatter)
		element += whole
		from += whole * item
		if from == to {
			return
		}
		slot = unsafe.Add(slot, whole*item)
	}
	if from < to {
		move(at(base, axes, element), slot, to-from, scatter)
	}
}

// at returns the address of an element, numbered in dense order.
func at(base unsafe.Pointer, axes []axis, element int64) unsafe.Pointer {
	var off int64
	for i := len(axes) - 1; i >= 0; i-- {
		off += element % axes[i].n * axes[i].stride
		element /= axes[i].n
	}
	return unsafe.Add(base, off)
}

// rows copies count whole elements from the given one on, in planes of the two fastest axes.
func rows(base unsafe.Pointer, axes []axis, item, element, count int64, slot unsafe.Pointer, scatter bool) {
	inner := axes[len(axes)-1]
	outer := axis{n: 1}
	if len(axes) > 1 {
		outer = axes[len(axes)-2]
	}
	for count > 0 {
		p := at(base, axes, element)
		col := element % inner.n
		if col > 0 || count < inner.n { // a part of a row
			n := min(inner.n-col, count)
			plane(p, axis{n: 1}, axis{n, inner.stride}, item, slot, scatter)
			element, count, slot = advance(element, count, n, slot, item)
			continue
		}
		n := min(outer.n-element/inner.n%outer.n, count/inner.n)
		plane(p, axis{n, outer.stride}, inner, item, slot, scatter)
		element, count, slot = advance(element, count, n*inner.n, slot, item)
	}
}

// advance does not step past the slot's end: the address behind it may belong to somebody else.
func advance(element, count, n int64, slot unsafe.Pointer, item int64) (int64, int64, unsafe.Pointer) {
	if count -= n; count > 0 {
		slot = unsafe.Add(slot, n*item)
	}
	return element + n, count, slot
}

// move copies n bytes one way or the other.
func move(mem, slot unsafe.Pointer, n int64, scatter bool) {
	m, s := unsafe.Slice((*byte)(mem), n), unsafe.Slice((*byte)(slot), n)
	if scatter {
		copy(m, s)
	} else {
		copy(s, m)
	}
}

type word16 [2]uint64

// plane copies a matrix of elements; slot is dense.
func plane(mem unsafe.Pointer, outer, inner axis, item int64, slot unsafe.Pointer, scatter bool) {
	switch item {
	case 1:
		elements[uint8](mem, outer, inner, slot, scatter)
	case 2:
		elements[uint16](mem, outer, inner, slot, scatter)
	case 4:
		elements[uint32](mem, outer, inner, slot, scatter)
	case 8:
		elements[uint64](mem, outer, inner, slot, scatter)
	case 16:
		elements[word16](mem, outer, inner, slot, scatter)
	default:
		for i := range outer.n {
			line, dense := unsafe.Add(mem, i*outer.stride), unsafe.Add(slot, i*inner.n*item)
			if scatter {
				copyRows(line, dense, item, inner.n, inner.stride, item)
			} else {
				copyRows(dense, line, item, inner.n, item, inner.stride)
			}
		}
	}
}

// tile is the side of the square that is copied at a time when the array runs across the slot: a
// line of the cache, once fetched, then serves all its elements.
const tile = 32

func elements[T uint8 | uint16 | uint32 | uint64 | word16](mem unsafe.Pointer, outer, inner axis, slot unsafe.Pointer, scatter bool) {
	dense := unsafe.Slice((*T)(slot), outer.n*inner.n)
	width := inner.n
	if magnitude(outer.stride) < magnitude(inner.stride) {
		width = tile
	}
	for left := int64(0); left < inner.n; left += width {
		right := min(left+width, inner.n)
		for i := range outer.n {
			line(unsafe.Add(mem, i*outer.stride+left*inner.stride), inner.stride, dense[i*inner.n+left:i*inner.n+right], scatter)
		}
	}
}

func magnitude(n int64) int64 { return max(n, -n) }

func line[T uint8 | uint16 | uint32 | uint64 | word16](mem unsafe.Pointer, stride int64, dense []T, scatter bool) {
	if scatter {
		for j := range dense {
			*(*T)(unsafe.Add(mem, int64(j)*stride)) = dense[j]
		}
		return
	}
	for j := range dense {
		dense[j] = *(*T)(unsafe.Add(mem, int64(j)*stride))
	}
}
