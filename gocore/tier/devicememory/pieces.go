package devicememory

import (
	"sync"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// Pieces are regions on their way into or out of a slot at an address. want lists the numbers of the regions in the slot.
func Pieces(base device.Address, spans []model.Span, want []int32, regions []model.Region) []device.Piece {
	return appendPieces(make([]device.Piece, 0, len(regions)), base, spans, want, regions)
}

// lists keeps the lists of captures: one of hundreds of regions is a large object for the garbage collector.
var lists = sync.Pool{New: func() any { return new([]device.Piece) }}

// Gather queues a capture of regions into the slot at an address.
func Gather(lane device.Lane, base device.Address, spans []model.Span, regions []model.Region, sums bool) (device.Sums, error) {
	list := lists.Get().(*[]device.Piece)
	defer lists.Put(list)
	*list = appendPieces((*list)[:0], base, spans, nil, regions)
	defer clear(*list) // it points to the caller's memory
	return lane.Gather(*list, sums)
}

func appendPieces(all []device.Piece, base device.Address, spans []model.Span, want []int32, regions []model.Region) []device.Piece {
	for j := range regions {
		i := j
		if want != nil {
			i = int(want[j])
		}
		r := &regions[j]
		all = append(all, device.Piece{Slot: base + device.Address(spans[i].Offset), Bytes: r.Bytes, Mem: r.Mem, Host: r.Place == 0})
	}
	return all
}

// inSlot are the regions of a slot as they lie there: for checksums.
func inSlot(base device.Address, spans []model.Span) []device.Piece {
	all := make([]device.Piece, len(spans))
	for i, s := range spans {
		all[i] = device.Piece{Slot: base + device.Address(s.Offset), Bytes: s.Bytes}
	}
	return all
}

// Pointer shows an address of a device as a pointer. The core never follows it.
func Pointer(at device.Address) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
