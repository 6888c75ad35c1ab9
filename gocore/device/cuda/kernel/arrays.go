package kernel

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// array is a strided piece, or a part of one, in the form of the kernels.
type array struct {
	slot, mem uint64
	elements  uint32
	log       uint8 // log2 of an element's bytes
	turned    uint8 // 1 + the axis that is contiguous in memory for a transposed array; 0 if the last axis serves as well
	axes      []model.Axis
}

// arrayLayout is the struct Arrays of cuda/parameters.h for that many arrays and axes.
type arrayLayout struct{ arrays, axes int }

var (
	manyArrays = arrayLayout{448, 1680}
	fewArrays  = arrayLayout{16, 64}
)

// Offsets of the single numbers.
const (
	arrayCount  = 0
	arrayUnits  = 4
	arrayHeader = 8
)

func (n arrayLayout) slot(i int) int     { return arrayHeader + 8*i }
func (n arrayLayout) mem(i int) int      { return n.slot(n.arrays) + 8*i }
func (n arrayLayout) elements(i int) int { return n.mem(n.arrays) + 4*i }
func (n arrayLayout) first(i int) int    { return n.elements(n.arrays) + 4*i }
func (n arrayLayout) layout(i int) int   { return n.first(n.arrays) + 4*i }
func (n arrayLayout) stride(i int) int   { return n.layout(n.arrays) + 8*i }
func (n arrayLayout) length(i int) int   { return n.stride(n.axes) + 4*i }
func (n arrayLayout) size() int          { return n.length(n.axes) }

// The sizes of the largest parameters of each kind.
const (
	largestFew  = 1224
	largestMany = 32712
)

const (
	maxAxes        = 8
	maxElements    = 1<<31 - 1
	maxElementLog  = 4
	straightUnit   = 8192 // elements
	smallSide      = 64   // side of the square of elements that is transposed, for elements of up to 4 bytes
	largeSide      = 32
	worthTurning   = 16 // a shorter axis is not transposed: the square would be mostly empty
	largestOfSmall = 2  // log2 of 4 bytes
)

// addArray adds a piece as an array, unless it is contiguous.
func (p *Plan) addArray(piece *device.Piece) bool {
	if len(piece.Mem.Shape) == 0 {
		return false
	}
	axes, item := piece.Mem.Collapse(make([]model.Axis, 0, maxAxes))
	if len(axes) == 0 {
		return false
	}
	slot, mem := uint64(piece.Slot), address(piece.Mem.Base)
	together := slot | mem | uint64(item)
	for _, a := range axes {
		together |= uint64(a.Stride)
	}
	log := min(bits.TrailingZeros64(together), maxElementLog)
	if item>>log > 1 {
		axes = append(axes, model.Axis{N: item >> log, Stride: 1 << log})
	}
	p.addPart(array{slot: slot, mem: mem, log: uint8(log), axes: axes})
	return true
}

// addPart adds an array, in parts if it has more axes or elements than a kernel supports.
func (p *Plan) addPart(a array) {
	inner := int64(1)
	for _, x := range a.axes[1:] {
		inner *= x.N
	}
	outer := a.axes[0]
	step := min(outer.N, maxElements/inner)
	if len(a.axes) > maxAxes {
		step = 1
	}
	for i := int64(0); i < outer.N; {
		part, n := a, min(max(step, 1), outer.N-i)
		part.slot += uint64(i*inner) << a.log
		part.mem += uint64(i * outer.Stride)
		if i += n; n == 1 && len(a.axes) > 1 {
			part.axes = a.axes[1:]
			p.addPart(part)
			continue
		}
		part.axes = p.keep(model.Axis{N: n, Stride: outer.Stride}, a.axes[1:])
		part.elements = uint32(n * inner)
		part.turned = turned(part.axes, a.log)
		p.arrays = append(p.arrays, part)
	}
}

// keep copies axes to the plan's memory, where they stay until the launch.
func (p *Plan) keep(first model.Axis, rest []model.Axis) []model.Axis {
	begin := len(p.axes)
	p.axes = append(append(p.axes, first), rest...)
	return p.axes[begin:len(p.axes):len(p.axes)]
}

// turned is 1 + the number of the axis that is contiguous in memory if the last one is not; 0 for none.
func turned(axes []model.Axis, log uint8) uint8 {
	last := len(axes) - 1
	if axes[last].Stride == 1<<log || axes[last].N < worthTurning {
		return 0
	}
	for i, a := range axes[:last] {
		if a.Stride == 1<<log && a.N >= worthTurning {
			return uint8(i + 1)
		}
	}
	return 0
}

// units is how many blocks of threads the array needs.
func (a *array) units() int64 {
	if a.turned == 0 {
		return (int64(a.elements)-1)/straightUnit + 1
	}
	side := int64(largeSide)
	if a.log <= largestOfSmall {
		side = smallSide
	}
	units := int64(1)
	for i, x := range a.axes {
		if i == len(a.axes)-1 || i == int(a.turned)-1 {
			units *= (x.N-1)/side + 1
		} else {
			units *= x.N
		}
	}
	return units
}

// launchArrays adds the launches for all arrays that were added, and clears their list.
func (p *Plan) launchArrays(name string) {
	arrays := p.arrays
	for len(arrays) > 0 {
		count, axes, units := 0, 0, int64(0)
		for count < min(len(arrays), manyArrays.arrays) {
			a := &arrays[count]
			need := a.units()
			if count > 0 && (axes+len(a.axes) > manyArrays.axes || units+need > maxUnits) {
				break
			}
			count, axes, units = count+1, axes+len(a.axes), units+need
		}
		layout, launched := manyArrays, name
		if count <= fewArrays.arrays && axes <= fewArrays.axes {
			layout, launched = fewArrays, name+few
		}
		b := p.buffer(layout == fewArrays, layout.size())
		layout.encode(b, arrays[:count])
		p.launches = append(p.launches, Launch{Kernel: launched, Blocks: int(units), Threads: stridedThreads, Parameter: b})
		arrays = arrays[count:]
	}
	clear(p.arrays)
	p.arrays, p.axes = p.arrays[:0], p.axes[:0]
}

func (n arrayLayout) encode(b []byte, arrays []array) {
	axes, units := 0, int64(0)
	for i := range arrays {
		a := &arrays[i]
		binary.LittleEndian.PutUint64(b[n.slot(i):], a.slot)
		binary.LittleEndian.PutUint64(b[n.mem(i):], a.mem)
		binary.LittleEndian.PutUint32(b[n.elements(i):], a.elements)
		binary.LittleEndian.PutUint32(b[n.first(i):], uint32(units))
		code := uint32(axes) | uint32(len(a.axes))<<16 | uint32(a.log)<<20 | uint32(a.turned)<<24
		binary.LittleEndian.PutUint32(b[n.layout(i):], code)
		for _, x := range a.axes {
			binary.LittleEndian.PutUint64(b[n.stride(axes):], uint64(x.Stride))
			binary.LittleEndian.PutUint32(b[n.length(axes):], uint32(x.N))
			axes++
		}
		units += a.units()
	}
	binary.LittleEndian.PutUint32(b[arrayCount:], uint32(len(arrays)))
	binary.LittleEndian.PutUint32(b[arrayUnits:], uint32(units))
}

func address(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
