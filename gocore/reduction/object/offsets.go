package object

import (
	"encoding/binary"
	"math/bits"
)

// offsetBytes is the most that an offset takes: difference.MaxBytes has 48 bits.
const offsetBytes = 6

// appendOffsets appends a list of offsets: how many there are, how many bytes each has, and then the lowest byte of all, the next one of all and so on.
// A compressor finds more in columns of bytes than in the offsets one behind the other.
func appendOffsets(to []byte, list []uint64) []byte {
	all := uint64(0)
	for _, offset := range list {
		all |= offset
	}
	width := (bits.Len64(all) + 7) / 8
	to = append(binary.AppendUvarint(to, uint64(len(list))), byte(width))
	for b := range width {
		for _, offset := range list {
			to = append(to, byte(offset>>(8*b)))
		}
	}
	return to
}

// offsets reads a list of offsets.
type offsets struct {
	columns []byte
	width   int
	n, used int
}

// parseOffsets takes a list of offsets; false if it is malformed. There are no more than bytes behind it: each belongs to a run.
func parseOffsets(in *numbers) (offsets, bool) {
	n, ok := in.next(uint64(len(in.rest)))
	if !ok {
		return offsets{}, false
	}
	width, ok := in.next(offsetBytes)
	if !ok {
		return offsets{}, false
	}
	columns, ok := in.take(n * width)
	return offsets{columns: columns, width: int(width), n: int(n)}, ok && n <= uint64(len(in.rest))
}

// next returns the next offset; false if there is none.
func (o *offsets) next() (offset uint64, ok bool) {
	if o.used == o.n {
		return 0, false
	}
	for b := range o.width {
		offset |= uint64(o.columns[b*o.n+o.used]) << (8 * b)
	}
	o.used++
	return offset, true
}
