package copier

import (
	"unsafe"

	"velocpy/gocore/model"
)

// walk copies bytes [from, to) of the array's dense form between the array and slot, the address of dense byte from. scatter says that the array is
// the destination.
func walk(base unsafe.Pointer, axes []model.Axis, item, from, to int64, slot unsafe.Pointer, scatter bool) {
	element := from / item
	if skip := from - element*item; skip > 0 {
		n := min(item-skip, to-from)
		move(unsafe.Add(at(base, axes, element), skip), slot, n, scatter)
		if from, element = from+n, element+1; from == to {
			return // the address behind the slot may be foreign memory
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
func at(base unsafe.Pointer, axes []model.Axis, element int64) unsafe.Pointer {
	var off int64
	for i := len(axes) - 1; i >= 0; i-- {
		off += element % axes[i].N * axes[i].Stride
		element /= axes[i].N
	}
	return unsafe.Add(base, off)
}

// rows copies count whole elements, beginning at the given one, in planes of the two fastest axes.
func rows(base unsafe.Pointer, axes []model.Axis, item, element, count int64, slot unsafe.Pointer, scatter bool) {
	inner := axes[len(axes)-1]
	outer := model.Axis{N: 1}
	if len(axes) > 1 {
		outer = axes[len(axes)-2]
	}
	for count > 0 {
		p := at(base, axes, element)
		col := element % inner.N
		if col > 0 || count < inner.N { // a part of a row
			n := min(inner.N-col, count)
			plane(p, model.Axis{N: 1}, model.Axis{N: n, Stride: inner.Stride}, item, slot, scatter)
			element, count, slot = advance(element, count, n, slot, item)
			continue
		}
		n := min(outer.N-element/inner.N%outer.N, count/inner.N)
		plane(p, model.Axis{N: n, Stride: outer.Stride}, inner, item, slot, scatter)
		element, count, slot = advance(element, count, n*inner.N, slot, item)
	}
}

// advance does not step past the slot's end: the address behind it may be foreign memory.
func advance(element, count, n int64, slot unsafe.Pointer, item int64) (int64, int64, unsafe.Pointer) {
	if count -= n; count > 0 {
		slot = unsafe.Add(slot, n*item)
	}
	return element + n, count, slot
}

// move copies n bytes in one direction.
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
func plane(mem unsafe.Pointer, outer, inner model.Axis, item int64, slot unsafe.Pointer, scatter bool) {
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
		for i := range outer.N {
			line, dense := unsafe.Add(mem, i*outer.Stride), unsafe.Add(slot, i*inner.N*item)
			if scatter {
				copyRows(line, dense, item, inner.N, inner.Stride, item)
			} else {
				copyRows(dense, line, item, inner.N, item, inner.Stride)
			}
		}
	}
}

// tile is the side of the square that is copied at a time when the fast axes of array and slot differ. A cache line, once loaded, then serves all its
// elements.
const tile = 32

func elements[T uint8 | uint16 | uint32 | uint64 | word16](mem unsafe.Pointer, outer, inner model.Axis, slot unsafe.Pointer, scatter bool) {
	dense := unsafe.Slice((*T)(slot), outer.N*inner.N)
	width := inner.N
	if magnitude(outer.Stride) < magnitude(inner.Stride) {
		width = tile
	}
	for left := int64(0); left < inner.N; left += width {
		right := min(left+width, inner.N)
		for i := range outer.N {
			line(unsafe.Add(mem, i*outer.Stride+left*inner.Stride), inner.Stride, dense[i*inner.N+left:i*inner.N+right], scatter)
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
