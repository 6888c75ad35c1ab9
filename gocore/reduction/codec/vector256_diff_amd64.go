//go:build !race

package codec

import "unsafe"

// The number in a name is the length of a word.

//go:noescape
func unpackWords1(z, src, widths unsafe.Pointer, blocks int)

//go:noescape
func unpackWords2(z, src, widths unsafe.Pointer, blocks int)

//go:noescape
func unpackWords4(z, src, widths unsafe.Pointer, blocks int)

//go:noescape
func unpackWords8(z, src, widths unsafe.Pointer, blocks int)

//go:noescape
func sumWords1(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)

//go:noescape
func sumWords2(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)

//go:noescape
func sumWords4(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)

//go:noescape
func sumWords8(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)

// wordsBy256 does what wordsByVectors does, with AVX2.
func wordsBy256(z, planes, widths, reference []byte, first uint64, order, size int) bool {
	if !vectors256 || len(z) == 0 || len(z)%vectorBytes != 0 {
		return false
	}
	unpackBy256(z, planes, widths, size)
	sum := sumWords8
	switch size {
	case 1:
		sum = sumWords1
	case 2:
		sum = sumWords2
	case 4:
		sum = sumWords4
	}
	sum(begin(z), begin(reference), len(z), first, order, unsafe.Pointer(&sumTables[size]))
	return true
}

// unpackBy256 writes the zig-zag values of whole blocks. The assembly loads as many bytes as a block has at most, whatever its width. The planes of the
// last blocks are copied to memory with zeros behind them, so that it reads nothing behind the planes.
func unpackBy256(z, planes, widths []byte, size int) {
	most, n, behind := blockBytes(size), len(widths), 0
	for n > 0 && behind < most {
		n--
		behind += int(widths[n]) << planeShift(size)
	}
	if n > 0 {
		unpackBlocks(z, planes, widths[:n], size)
	}
	var last [3 * vectorBytes]byte // fewer than two blocks, and one that is loaded behind them
	copy(last[:], planes[len(planes)-behind:])
	unpackBlocks(z[n*most:], last[:], widths[n:], size)
}

// unpackBlocks calls functions by their names: a call of a variable would move the memory of the last blocks to the heap.
func unpackBlocks(z, planes, widths []byte, size int) {
	switch size {
	case 1:
		unpackWords1(begin(z), begin(planes), begin(widths), len(widths))
	case 2:
		unpackWords2(begin(z), begin(planes), begin(widths), len(widths))
	case 4:
		unpackWords4(begin(z), begin(planes), begin(widths), len(widths))
	default:
		unpackWords8(begin(z), begin(planes), begin(widths), len(widths))
	}
}
