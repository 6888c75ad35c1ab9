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

// writeBlocks writes the planes of blocks of words.
func writeBlocks(dst, z, widths []byte, size int) {
	switch size {
	case 1:
		writeBlocks8(dst, z, widths)
	case 2:
		writeBlocks16(dst, z, widths)
	case 4:
		writeBlocks32(dst, z, widths)
	default:
		writeBlocks64(dst, z, widths)
	}
}

// writeBlocks8 writes the planes of blocks of 32 words of one byte.
func writeBlocks8(dst, z, widths []byte) {
	for _, n := range widths {
		if u := (*[32]byte)(z); n > 0 {
			le := binary.LittleEndian
			putNarrow(dst, le.Uint64(u[0:]), le.Uint64(u[8:]), le.Uint64(u[16:]), le.Uint64(u[24:]))
		}
		dst, z = dst[int(n)*planeBytes:], z[32:]
	}
}

// writeBlocks16 writes the planes of blocks of 32 words of two bytes.
func writeBlocks16(dst, z, widths []byte) {
	for _, n := range widths {
		switch u := (*[64]byte)(z); {
		case n > 8:
			putMiddle(dst, u)
		case n > 0:
			putNarrow(dst, lowBytes(u, 0), lowBytes(u, 16), lowBytes(u, 32), lowBytes(u, 48))
		}
		dst, z = dst[int(n)*planeBytes:], z[64:]
	}
}

// lowBytes gathers the low bytes of 8 words of two bytes.
func lowBytes(u *[64]byte, at int) uint64 {
	a, b := binary.LittleEndian.Uint64(u[at&63:]), binary.LittleEndian.Uint64(u[(at+8)&63:])
	return gatherBytes(a&even8) | gatherBytes(b&even8)<<32
}

// writeBlocks32 writes the planes of blocks of 8 words of four bytes.
func writeBlocks32(dst, z, widths []byte) {
	for _, n := range widths {
		if n > 0 {
			u := (*[32]byte)(z)
			a, b, c, d := exchange4(word4(u, 0), word4(u, 4), word4(u, 8), word4(u, 12))
			putPlanes(dst, int(n), a, b, c, d)
		}
		dst, z = dst[n:], z[32:]
	}
}

// writeBlocks64 writes the planes of blocks of 8 words of eight bytes.
func writeBlocks64(dst, z, widths []byte) {
	var x [8]uint64
	for _, n := range widths {
		if n > 0 {
			u := (*[64]byte)(z)
			for i := range x {
				x[i] = binary.LittleEndian.Uint64(u[8*i:])
			}
			exchange8(&x)
			putPlanes(dst, int(n), x[0], x[1], x[2], x[3])
		}
		if n > 32 {
			putPlanes(dst[32:], int(n)-32, x[4], x[5], x[6], x[7])
		}
		dst, z = dst[n:], z[64:]
	}
}

// putPlanes writes n planes, of up to 32, of 8 words; a has the words' lowest bytes, d their highest. It may write zeros or planes behind those, within dst.
func putPlanes(dst []byte, n int, a, b, c, d uint64) {
	var few [32]byte
	room := few[:]
	if len(dst) >= 32 {
		room = dst[:32]
	}
	binary.LittleEndian.PutUint64(room[0:], transpose8(a))
	if n > 8 {
		binary.LittleEndian.PutUint64(room[8:], transpose8(b))
	}
	if n > 16 {
		binary.LittleEndian.PutUint64(room[16:], transpose8(c))
		binary.LittleEndian.PutUint64(room[24:], transpose8(d))
	}
	if len(dst) < 32 {
		copy(dst, few[:])
	}
}
