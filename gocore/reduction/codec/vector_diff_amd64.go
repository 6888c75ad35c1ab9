//go:build !race

package codec

import (
	"math/bits"
	"unsafe"
)

//go:noescape
func differences8(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)

//go:noescape
func differences16(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)

//go:noescape
func differences32(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)

//go:noescape
func differences64(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)

//go:noescape
func planesOfLong(dst, z, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)

//go:noescape
func planesOfShort(dst, z, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)

//go:noescape
func blocksOfLong(z, src, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)

//go:noescape
func blocksOfShort(z, src, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)

//go:noescape
func sums8(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)

//go:noescape
func sums16(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)

//go:noescape
func sums32(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)

//go:noescape
func sums64(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)

// differencesByVectors does what difference does. It returns false, and does nothing, if it cannot.
func differencesByVectors(d *differences, x []byte, size int) bool {
	if !vectors || len(x) == 0 || len(x)%vectorBytes != 0 {
		return false
	}
	do := differences64
	switch size {
	case 1:
		do = differences8
	case 2:
		do = differences16
	case 4:
		do = differences32
	}
	one, two := &d.orders[0], &d.orders[1]
	do(begin(d.values[0][:]), begin(d.values[1][:]), begin(one.list[:]), begin(two.list[:]), begin(x), len(x))
	one.count(len(x) / blockBytes(size))
	two.count(len(x) / blockBytes(size))
	return true
}

// stepsByVectors does what differ does. It returns false, and does nothing, if it cannot.
func stepsByVectors(w *widths) bool {
	if !vectors || w.blocks == 0 || w.blocks%vectorBytes != 0 {
		return false
	}
	var second [mostBlocks]byte // of order 2, which is not needed
	var heads [mostBlocks / groupWords]byte
	differences8(begin(w.steps[:]), begin(second[:]), begin(w.heads[:]), begin(heads[:]), begin(w.list[:]), w.blocks)
	first := byte(zigzags[uint8](uint64(w.list[0]))) // the first word has no change, and the first width has the change from 0
	w.steps[0], w.heads[0] = first, max(w.heads[0], byte(bits.Len8(first)))
	return true
}

// planesByVectors writes the planes of the first blocks of words into dst, which all planes fill. It returns the number of those blocks, and the bytes of
// the planes behind them, which it leaves out since it writes whole blocks.
func planesByVectors(dst, z, widths []byte, size int) (blocks, behind int) {
	n, shift := len(widths), planeShift(size)
	if !vectors || n*blockBytes(size) > len(z) {
		return 0, len(dst)
	}
	for n > 0 && (behind < blockBytes(size) || n%2 != 0) {
		n--
		behind += int(widths[n]) << shift
	}
	if n == 0 {
		return 0, len(dst)
	}
	do := planesOfShort
	if blockBytes(size) == vectorBytes {
		do = planesOfLong
	}
	do(begin(dst), begin(z), begin(widths), n, unsafe.Pointer(&toPlanes[size]), shift)
	return n, behind
}

// wordsByVectors writes the words whose differences are in planes, as readDiff does; z has whole blocks. It adds the words of the reference, which is nil or
// as long as z. It returns false, and does nothing, if it cannot.
func wordsByVectors(z, planes, widths, reference []byte, first uint64, order, size int) bool {
	if !vectors {
		return wordsBy256(z, planes, widths, reference, first, order, size)
	}
	if len(z) == 0 || len(z)%vectorBytes != 0 {
		return false
	}
	read, sum := blocksOfShort, sums64
	if blockBytes(size) == vectorBytes {
		read = blocksOfLong
	}
	switch size {
	case 1:
		sum = sums8
	case 2:
		sum = sums16
	case 4:
		sum = sums32
	}
	read(begin(z), begin(planes), begin(widths), len(widths), unsafe.Pointer(&toBlocks[size]), planeShift(size))
	sum(begin(z), len(z), first, order, unsafe.Pointer(&sumTables[size]))
	combineByVectors(z, z, reference, size, false)
	return true
}

// planeShift is log2 of the bytes of a plane.
func planeShift(size int) int {
	if blockWords(size) == groupWords {
		return 2
	}
	return 0
}

// permutations are the orders of bytes before and behind the transposition of 8x8 bits.
type permutations [2][vectorBytes]byte

// toPlanes and toBlocks are those between words and planes, by the size of words.
var toPlanes, toBlocks = newPermutations()

func newPermutations() (planes, blocks [9]permutations) {
	for _, size := range []int{1, 2, 4, 8} {
		bytes, eights := blockBytes(size), blockWords(size)/8
		for matrix := range vectorBytes / 8 {
			block, j, q := matrix/(size*eights), matrix/eights%size, matrix%eights
			for i := range 8 {
				word, plane := block*bytes+(8*q+i)*size+j, block*bytes+(8*j+i)*eights+q
				planes[size][0][8*matrix+7-i], planes[size][1][plane] = byte(word), byte(8*matrix+i)
				blocks[size][0][8*matrix+7-i], blocks[size][1][word] = byte(plane), byte(8*matrix+i)
			}
		}
	}
	return planes, blocks
}

// sumTable has the bytes of the last word of 16, repeated; bit 0 of each word; and the bits that are left when each word is shifted down by 1.
type sumTable struct {
	last      [16]byte
	low, rest uint64
}

var sumTables = newSumTables()

func newSumTables() (tables [9]sumTable) {
	for size, low := range map[int]uint64{1: ones[uint8](), 2: ones[uint16](), 4: ones[uint32](), 8: ones[uint64]()} {
		t := &tables[size]
		for i := range t.last {
			t.last[i] = byte(16 - size + i%size)
		}
		t.low, t.rest = low, ^(low << (8*size - 1))
	}
	return tables
}
