package copier

import (
	"sync"
	"unsafe"

	"velocpy/gocore/base/checksum"
)

// trayBytes is how much of a strided source is collected before it goes to the slot: so little that the source of the next tray can come
// while the stores of this one drain.
const trayBytes = 4 << 10

var trays = sync.Pool{New: func() any { return new([trayBytes]byte) }}

// collect gathers a strided unit by way of a tray, so that the slot is written in whole lines that bypass the cache.
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
		j.leaves[unit] = leaf.Sum(slot) // behind a fence of its own
		return
	}
	fence()
}

// near is where the byte of this number lies, or about there: an address to ask for, not to read.
func (p *part) near(dense int64) uintptr {
	return uintptr(at(p.base, p.axes, min(dense, p.bytes-1)/p.item))
}
