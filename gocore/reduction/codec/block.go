package codec

import "encoding/binary"

// Blocks of 8 words. Plane b of a block is a byte whose bit i is bit b of word i.

// keep are the bytes of up to 32 planes, by their number, in 4 registers.
var keep = newKeep()

func newKeep() (table [33][4]uint64) {
	for n := range table {
		for b := range n {
			table[n][b/8] |= 0xff << (b % 8 * 8)
		}
	}
	return table
}

// wordsOfBlock reads up to 32 planes, from the front of src, and returns 8 words of 32 bits: 0 and 4, 1 and 5, 2 and 6, 3 and 7.
func wordsOfBlock(src []byte, width int) (a, b, c, d uint64) {
	if width == 0 {
		return 0, 0, 0, 0
	}
	var few [32]byte
	p, mask := whole(src, &few), &keep[width]
	a = transpose8(binary.LittleEndian.Uint64(p[0:]) & mask[0])
	b = transpose8(binary.LittleEndian.Uint64(p[8:]) & mask[1])
	if width > 16 {
		c = transpose8(binary.LittleEndian.Uint64(p[16:]) & mask[2])
		d = transpose8(binary.LittleEndian.Uint64(p[24:]) & mask[3])
	}
	return exchange4(a, b, c, d)
}

// readBlock64 reads up to 64 planes of 8 words, from the front of src.
func readBlock64(z *[8]uint64, src []byte, width int) {
	a, b, c, d := wordsOfBlock(src, min(width, 32))
	z[0], z[1], z[2], z[3] = a&0xffffffff, b&0xffffffff, c&0xffffffff, d&0xffffffff
	z[4], z[5], z[6], z[7] = a>>32, b>>32, c>>32, d>>32
	if width <= 32 {
		return
	}
	const high = 0xffffffff << 32
	a, b, c, d = wordsOfBlock(src[32:], width-32)
	z[0], z[1], z[2], z[3] = z[0]|a<<32, z[1]|b<<32, z[2]|c<<32, z[3]|d<<32
	z[4], z[5], z[6], z[7] = z[4]|a&high, z[5]|b&high, z[6]|c&high, z[7]|d&high
}

// putBlock writes as many planes of 8 words as dst has bytes.
func putBlock[T word](dst []byte, z *[8]T) {
	var planes [64]byte
	putHalf(planes[:32], z, 0)
	if len(dst) > 32 {
		putHalf(planes[32:], z, 32)
	}
	copy(dst, planes[:])
}

// putHalf writes 32 planes, from the words' bit low on.
func putHalf[T word](planes []byte, z *[8]T, low uint) {
	var x [4]uint64
	for i := range x {
		x[i] = uint64(z[i])>>low&0xffffffff | uint64(z[i+4])>>low<<32
	}
	a, b, c, d := exchange4(x[0], x[1], x[2], x[3])
	binary.LittleEndian.PutUint64(planes[0:], transpose8(a))
	binary.LittleEndian.PutUint64(planes[8:], transpose8(b))
	binary.LittleEndian.PutUint64(planes[16:], transpose8(c))
	binary.LittleEndian.PutUint64(planes[24:], transpose8(d))
}
