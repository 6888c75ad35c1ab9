package kernel

import (
	"encoding/binary"
	"strings"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
)

// Range is memory that a launch touches.
type Range struct {
	At    device.Address
	Bytes int64
}

// Touches tells which ranges a launch reads and writes, for checks of the order of launches. For strided arrays it tells only the slots. The launch
// must be one that Twin accepts.
func Touches(name string, parameter []byte) (reads, writes []Range) {
	if reads, writes, known := codecTouches(name, parameter); known {
		return reads, writes
	}
	if reads, writes, known := dedupTouches(name, parameter); known {
		return reads, writes
	}
	base, isFew := strings.CutSuffix(name, few)
	runs, arrays := manyRuns, manyArrays
	if isFew {
		runs, arrays = fewRuns, fewArrays
	}
	switch base {
	case gather:
		return nil, arrays.slots(parameter)
	case scatter:
		return arrays.slots(parameter), nil
	}
	return runs.touches(base, parameter)
}

func (n runLayout) touches(name string, b []byte) (reads, writes []Range) {
	if len(b) != n.size() {
		return nil, nil
	}
	sums := binary.LittleEndian.Uint64(b[runSums:])
	for i := range min(int(binary.LittleEndian.Uint32(b[runCount:])), int(n)) {
		size := int64(binary.LittleEndian.Uint64(b[n.bytes(i):]))
		reads = append(reads, Range{device.Address(binary.LittleEndian.Uint64(b[n.from(i):])), size})
		if name != hash {
			writes = append(writes, Range{device.Address(binary.LittleEndian.Uint64(b[n.to(i):])), size})
		}
		if name != pack {
			word := sums + 8*uint64(binary.LittleEndian.Uint32(b[n.sum(i):]))
			writes = append(writes, Range{device.Address(word), 8 * int64(checksum.Leaves(size))})
		}
	}
	return reads, writes
}

func (n arrayLayout) slots(b []byte) (slots []Range) {
	if len(b) != n.size() {
		return nil
	}
	for i := range min(int(binary.LittleEndian.Uint32(b[arrayCount:])), n.arrays) {
		if a, err := n.decode(b, i); err == nil {
			slots = append(slots, Range{device.Address(a.slot), int64(a.elements) << a.log})
		}
	}
	return slots
}
