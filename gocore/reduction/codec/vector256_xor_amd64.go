//go:build !race

package codec

import (
	"math/bits"
	"unsafe"
)

//go:noescape
func uniteWords2(x, planes, y unsafe.Pointer, bytes int)

//go:noescape
func uniteWords4(x, planes, y unsafe.Pointer, bytes int)

//go:noescape
func uniteWords8(x, planes, y unsafe.Pointer, bytes int)

//go:noescape
func expandUnits(p, src, bitmap unsafe.Pointer, units, left, least int) (done, taken int)

// uniteBy256 does what uniteByVectors does, with AVX2.
func uniteBy256(x, planes, y []byte, size int) bool {
	if !vectors256 || size == 1 || len(x) == 0 || len(x)%(groupWords*size) != 0 || len(planes) < len(x) || len(y) < len(x) {
		return false
	}
	unite := uniteWords8
	switch size {
	case 2:
		unite = uniteWords2
	case 4:
		unite = uniteWords4
	}
	unite(begin(x), begin(planes), begin(y), len(x))
	return true
}

// shuffles has, for the marks of 8 bytes, the order in which VPSHUFB moves the first bytes to the marked places. It writes 0 for 0x80. The last entry is
// there since the assembly loads 16 bytes.
//
//lint:ignore U1000 the assembly reads it
var shuffles = newShuffles()

//lint:ignore U1000 the table is made by it
func newShuffles() (table [256 + 1][8]byte) {
	for m := range 256 {
		table[m] = [8]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}
		for source, left := 0, uint(m); left != 0; source, left = source+1, left&(left-1) {
			table[m][bits.TrailingZeros(left)] = byte(source)
		}
	}
	return table
}

// expandLeast is how many bytes of the source the assembly needs for a unit of 64 bytes: it loads 8 behind those that it takes.
const expandLeast = 64 + 8

// expandBy256 does what expandByVectors does, with AVX2. The last bytes of src are copied to memory with zeros behind them, so that the assembly reads
// nothing behind src.
func expandBy256(p, src, bitmap []byte) (units, count int) {
	if units = min(len(p)/vectorBytes, len(bitmap)/8); !vectors256 || units == 0 {
		return 0, 0
	}
	done, taken := expandUnits(begin(p), begin(src), begin(bitmap), units, len(src), expandLeast)
	if done == units {
		return units, taken
	}
	var last [expandLeast + 8]byte // fewer than expandLeast bytes are left
	left := copy(last[:expandLeast], src[taken:])
	more, count := expandUnits(begin(p[done*vectorBytes:]), begin(last[:]), begin(bitmap[8*done:]), units-done, left, 0)
	if done+more < units {
		return units, -1
	}
	return units, taken + count
}
