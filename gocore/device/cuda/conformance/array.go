package conformance

import (
	"math/rand/v2"
	"unsafe"

	"velocpy/gocore/model"
)

// array is a region of memory and a strided view of it.
type array struct {
	region         int64 // bytes of memory
	first          int64 // offset in it of the element with all indices zero
	shape, strides []int64
	item           int64
}

// anyArray draws a dense array, or one with gaps, reversed or transposed axes, of odd sizes. Elements never overlap.
func anyArray(r *rand.Rand, atMost int64) array {
	item := []int64{1, 2, 4, 8, 16, 3, 12, 24, 100}[r.IntN(9)]
	if r.IntN(3) == 0 {
		n := 1 + r.Int64N(atMost)
		return array{region: n, item: 1}
	}
	a := array{item: item, region: item}
	axes := 1 + r.IntN(5)
	for range axes {
		a.shape = append(a.shape, 1)
	}
	a.strides = make([]int64, axes)
	left := max(atMost/item, 1)
	for _, x := range r.Perm(axes) { // from the axis that is fastest in memory to the slowest
		n := 1 + r.Int64N(max(min(left, 80), 1))
		step := 1 + r.Int64N(max(min(left/n, 3), 1))
		if r.IntN(2) == 0 {
			step = 1
		}
		a.shape[x], a.strides[x] = n, a.region*step
		a.region *= n * step
		left = max(left/(n*step), 1)
		if r.IntN(4) == 0 {
			a.first += (n - 1) * a.strides[x]
			a.strides[x] = -a.strides[x]
		}
	}
	return a
}

func (a array) bytes() int64 {
	if len(a.shape) == 0 {
		return a.region
	}
	n := a.item
	for _, x := range a.shape {
		n *= x
	}
	return n
}

// strided is the array at an address.
func (a array) strided(region uintptr) model.Strided {
	base := region + uintptr(a.first)
	return model.Strided{Base: *(*unsafe.Pointer)(unsafe.Pointer(&base)), Shape: a.shape, Strides: a.strides, Item: a.item}
}

// each visits the elements in dense order, with their offsets in the region.
func (a array) each(visit func(dense, at int64)) {
	if len(a.shape) == 0 {
		visit(0, 0)
		return
	}
	index := make([]int64, len(a.shape))
	for dense := int64(0); ; dense += a.item {
		at := a.first
		for i, x := range index {
			at += x * a.strides[i]
		}
		visit(dense, at)
		i := len(index) - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < a.shape[i] {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// dense is the slot's content after a gather, computed in the slow, simple way.
func (a array) dense(region []byte) []byte {
	out := make([]byte, a.bytes())
	step := a.step()
	a.each(func(dense, at int64) { copy(out[dense:dense+step], region[at:at+step]) })
	return out
}

// spread writes a slot's bytes to the elements, as a scatter does.
func (a array) spread(region, slot []byte) {
	step := a.step()
	a.each(func(dense, at int64) { copy(region[at:at+step], slot[dense:dense+step]) })
}

func (a array) step() int64 {
	if len(a.shape) == 0 {
		return a.region
	}
	return a.item
}
