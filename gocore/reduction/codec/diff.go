package codec

import (
	"encoding/binary"
)

// Differences. From each word its neighbour before it is subtracted, modulo the word size; of order 2 are the differences of those differences. Mode
// Step subtracts the reference's words first. A difference d is stored zig-zag, as 2d or -2d-1. The words are divided into blocks, and a block has as many
// planes as its largest value has bits.
//
// The body is: the first word, as the base, in at least 4 bytes; the order and three zeros; the widths of the blocks; the planes
// of each block.

// blockWords is the number of words in a block. Words of 4 and 8 bytes have small blocks: near a change of sign a float's differences are large, and a small
// block keeps that to few words. On wavefields blocks of 8 words save 12 % against blocks of 32. For narrow words the widths would cost too much.
func blockWords(size int) int {
	if size <= 2 {
		return groupWords
	}
	return 8
}

// blocks is the number of blocks that hold some words.
func blocks(words, size int) int { return (words + blockWords(size) - 1) / blockWords(size) }

// bytes is the length of widths and planes.
func (w *widths) bytes(size int) int { return w.measure() + w.planes*blockWords(size)/8 }

// differences are the zig-zag values of both orders, the widths of their blocks, and the order with the shorter body.
type differences struct {
	values [2][ChunkBytes]byte
	orders [2]widths
	order  int
}

// diffHead is the length of base and order.
func diffHead(size int) int { return max(4, size) + 4 }

// measure chooses the order for words that whole groups hold, and returns the length of the body.
func (d *differences) measure(x []byte, words, size int) int {
	d.orders[0].reset()
	d.orders[1].reset()
	x = x[:blocks(words, size)*blockBytes(size)]
	if !differencesByVectors(d, x, size) {
		d.compute(x, size)
	}
	if words*size < len(x) {
		d.cut(words*size, len(x), size)
	}
	first, second := d.orders[0].bytes(size), d.orders[1].bytes(size)
	d.order = 1
	if second < first {
		d.order = 2
	}
	return diffHead(size) + min(first, second)
}

// compute computes the zig-zag values of both orders for whole blocks of words, and their widths.
func (d *differences) compute(x []byte, size int) {
	switch size {
	case 1:
		difference[uint8](d, x)
	case 2:
		difference[uint16](d, x)
	case 4:
		difference[uint32](d, x)
	default:
		difference[uint64](d, x)
	}
}

// cut clears the values behind the last word, which the last block has.
func (d *differences) cut(end, all, size int) {
	for i := range d.values {
		clear(d.values[i][end:all])
		last := d.values[i][all-blockBytes(size) : all]
		d.orders[i].replaceLast(widthOfBlock(last, size))
	}
}

// widthOfBlock is the number of bits of the largest value of a block.
func widthOfBlock(z []byte, size int) int {
	var all uint64
	for ; len(z) >= 8; z = z[8:] {
		all |= binary.LittleEndian.Uint64(z)
	}
	switch size {
	case 1:
		return widthOf[uint8](all)
	case 2:
		return widthOf[uint16](all)
	case 4:
		return widthOf[uint32](all)
	}
	return widthOf[uint64](all)
}

// write writes the body, given the first word of those that were measured; dst has the length that measure returned.
func (d *differences) write(dst []byte, first uint64, size int) {
	putBase(dst, first, size)
	binary.LittleEndian.PutUint32(dst[max(4, size):], uint32(d.order))
	dst = dst[diffHead(size):]
	w := &d.orders[d.order-1]
	n := len(dst) - w.planes*blockWords(size)/8
	w.write(dst[:n])
	dst = dst[n:]
	z, widths := d.values[d.order-1][:w.blocks*blockBytes(size)], w.all()
	done, behind := planesByVectors(dst, z, widths, size)
	writeBlocks(dst[len(dst)-behind:], z[done*blockBytes(size):], widths[done:], size)
}

func unzigzag[T word](z T) T { return z>>1 ^ -(z & 1) }

func putBase(dst []byte, x uint64, size int) {
	if size == 8 {
		binary.LittleEndian.PutUint64(dst, x)
		return
	}
	binary.LittleEndian.PutUint32(dst, uint32(x))
}

// readDiff writes the words of a body to v.plain; false if the body is malformed.
func readDiff(v *view, w *widths, body []byte) bool {
	head := diffHead(v.size)
	if len(body) < head {
		return false
	}
	first := wordAt(body, max(4, v.size))
	order := binary.LittleEndian.Uint32(body[head-4:])
	planes, ok := w.read(body[head:], blocks(v.words, v.size), 8*v.size)
	if !ok || order < 1 || order > 2 || len(planes) != w.planes*blockWords(v.size)/8 {
		return false
	}
	n := w.blocks * blockBytes(v.size)
	if wordsByVectors(v.plain[:n], planes, w.all(), v.referenceOf(n), first, int(order), v.size) {
		return true
	}
	again := uint64(0) // all bits, if the sums are summed again
	if order == 2 {
		again = 1<<64 - 1
	}
	switch v.size {
	case 1:
		readDiff8(v, w, planes, byte(first), again)
	case 2:
		readDiff16(v, w, planes, uint16(first), again)
	case 4:
		readDiff32(v, w, planes, uint32(first), again)
	default:
		readDiff64(v, w, planes, first, again)
	}
	return true
}

// referenceOf is the reference of the first n bytes of words; nil if there is none.
func (v *view) referenceOf(n int) []byte {
	if v.reference == nil {
		return nil
	}
	return v.reference[:n]
}

// addReference adds the words of the reference, if there is one.
func (v *view) addReference() {
	if v.reference == nil {
		return
	}
	x, y := v.plain, v.reference[:len(v.plain)]
	switch v.size {
	case 1:
		addWords[uint8](x, y)
	case 2:
		addWords[uint16](x, y)
	case 4:
		addWords[uint32](x, y)
	default:
		addWords[uint64](x, y)
	}
}

// readDiff8 is for words of one byte, 8 at a time.
func readDiff8(v *view, w *widths, planes []byte, last byte, again uint64) {
	change := byte(0)
	for g, width := range w.all() {
		var x [4]uint64
		x[0], x[1], x[2], x[3] = readNarrow(planes, int(width))
		planes = planes[int(width)*planeBytes:]
		dst := (*[groupWords]byte)(v.group(v.plain, g))
		for i := range x {
			d := unzigzagBytes(x[i])
			if again != 0 {
				d = sumBytes(d, change)
				change = byte(d >> 56)
			}
			d = sumBytes(d, last)
			last = byte(d >> 56)
			binary.LittleEndian.PutUint64(dst[8*i:], d)
		}
	}
	v.addReference()
}

// readDiff16 is for words of two bytes. It reads the registers of transpose16 in the order of the words.
func readDiff16(v *view, w *widths, planes []byte, last uint16, again uint64) {
	word, change, mask := uint32(last), uint32(0), uint32(again)
	var two uint32
	for g, width := range w.all() {
		var x [8]uint64
		if width != 0 {
			readMiddle(&x, planes, int(width))
			transpose16(&x)
			planes = planes[int(width)*planeBytes:]
		}
		dst := (*[2 * groupWords]byte)(v.group(v.plain, g))
		for r := range x {
			two, word, change = sumTwo16(x[r], word, change, mask)
			binary.LittleEndian.PutUint32(dst[4*r:], two)
		}
		for r := range x {
			two, word, change = sumTwo16(x[r]>>16, word, change, mask)
			binary.LittleEndian.PutUint32(dst[32+4*r:], two)
		}
	}
	v.addReference()
}

// sumTwo16 returns two words of 16 bits, whose zig-zag values are bits 0 to 15 and bits 32 to 47. Of the sums the low 16 bits count.
func sumTwo16(x uint64, last, change, mask uint32) (two, word, next uint32) {
	a, b := uint32(x&0xffff), uint32(x>>32&0xffff)
	change = change&mask + (a>>1 ^ -(a & 1))
	low := last + change
	change = change&mask + (b>>1 ^ -(b & 1))
	last = low + change
	return low&0xffff | last<<16, last, change
}

func readDiff32(v *view, w *widths, planes []byte, last uint32, again uint64) {
	change, mask := uint32(0), uint32(again)
	at := 0
	for _, width := range w.all() {
		a, b, c, d := wordsOfBlock(planes, int(width))
		planes = planes[width:]
		dst := (*[32]byte)(v.plain[at:])
		var two uint64
		two, last, change = sumTwo(a, b, last, change, mask)
		binary.LittleEndian.PutUint64(dst[0:], two)
		two, last, change = sumTwo(c, d, last, change, mask)
		binary.LittleEndian.PutUint64(dst[8:], two)
		two, last, change = sumTwo(a>>32, b>>32, last, change, mask)
		binary.LittleEndian.PutUint64(dst[16:], two)
		two, last, change = sumTwo(c>>32, d>>32, last, change, mask)
		binary.LittleEndian.PutUint64(dst[24:], two)
		at += len(dst)
	}
	v.addReference()
}

// sumTwo returns two words of 32 bits from their zig-zag values.
func sumTwo(a, b uint64, last, change, mask uint32) (two uint64, word, next uint32) {
	change = change&mask + unzigzag(uint32(a))
	last += change
	two = uint64(last)
	change = change&mask + unzigzag(uint32(b))
	last += change
	return two | uint64(last)<<32, last, change
}

func readDiff64(v *view, w *widths, planes []byte, last, mask uint64) {
	change := uint64(0)
	at := 0
	for _, width := range w.all() {
		var z [8]uint64
		readBlock64(&z, planes, int(width))
		planes = planes[width:]
		dst := (*[64]byte)(v.plain[at:])
		for i := range z {
			change = change&mask + unzigzag(z[i])
			last += change
			binary.LittleEndian.PutUint64(dst[8*i:], last)
		}
		at += len(dst)
	}
	v.addReference()
}

const (
	even8  = clear3             // bytes 0, 2, 4, 6
	even16 = 0x0001000100010001 // bit 0 of each 16
)

// unzigzagBytes returns the differences of 8 zig-zag values.
func unzigzagBytes(x uint64) uint64 { return x>>1&0x7f7f7f7f7f7f7f7f ^ x&ones8*0xff }

// sumBytes returns the running sums of 8 bytes, each modulo 256.
func sumBytes(x uint64, last byte) uint64 {
	even, odd := x&even8*even16, x>>8&even8*even16 // sums of up to four bytes fit 16 bits
	start := uint64(last) * even16
	low, high := even+odd<<16+start, even+odd+start
	return low&even8 | high&even8<<8
}
