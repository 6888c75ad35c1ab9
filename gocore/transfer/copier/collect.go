package copier

import (
	"sync"
	"unsafe"

	"velocpy/gocore/base/checksum"
)

// trayBytes is how many bytes of a strided source are collected before they go to the slot. It is so small that the source of the next tray can be
// loaded while the stores of this one drain.
const trayBytes = 4 << 10

var trays = sync.Pool{New: func() any { return new([trayBytes]byte) }}

// collect gathers a strided unit through a tray, so that the slot is written in whole lines that bypass the cache.
func (j *Job) collect(p *part, from int64, slot []byte, unit int64) {
	tray := trays.Get().(*[trayBytes]byte)
	defer trays.Put(tray)
	var leaf checksum.Parts
	for done := 0; done < len(slot); {
		n := min(trayBytes, len(slot)-done)
		start := from + int64(done)
		walk(p.base, p.axes, p.item, start, start+int64(n), unsafe.Pointer(tray), false)
		next := p.near(start + int64(n))
		if j.check {
			leaf.Add(slot, tray[:n], next)
		} else {
			copyStreamBefore(slot[done:done+n], tray[:n], next)
		}
		done += n
	}
	if j.check {
		j.leaves[unit] = leaf.Sum(slot) // behind its own fence
		return
	}
	fence()
}

// extract copies bytes [from, to) of a part of a region to its destination. If both are strided, they go through a tray.
func (p *part) extract(from, to int64) {
	if len(p.axes) == 0 {
		walk(p.slot, p.from, p.grain, from, to, unsafe.Add(p.base, from), false)
		return
	}
	tray := trays.Get().(*[trayBytes]byte)
	defer trays.Put(tray)
	for from < to {
		end := min(from+trayBytes, to)
		walk(p.slot, p.from, p.grain, from, end, unsafe.Pointer(tray), false)
		walk(p.base, p.axes, p.item, from, end, unsafe.Pointer(tray), true)
		from = end
	}
}

// near is the approximate address of a byte by its number in dense order: for a prefetch, not for a read.
func (p *part) near(dense int64) uintptr {
	return uintptr(at(p.base, p.axes, min(dense, p.bytes-1)/p.item))
}
