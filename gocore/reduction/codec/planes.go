package codec

import "encoding/binary"

// Bit planes. A group is 32 words; plane b of a group is a 32-bit word whose bit i is bit b of word i, as a ballot of a warp gives it. The functions
// change between words and planes by exchanging index bits: a position in an array of 64-bit registers has an index of register bits and, within a
// register, of bits 5 to 0. Each exchange of two index bits is one step of masks and shifts for half of the bits.

// groupWords is the number of words in a group.
const groupWords = 32

// planeBytes is the length of a plane of a group.
const planeBytes = groupWords / 8

// cross exchanges an index bit of registers (0 in a, 1 in b) with index bit log2(shift) inside them; mask has the positions where the latter is 0.
func cross(a, b uint64, shift uint, mask uint64) (uint64, uint64) {
	t := (a>>shift ^ b) & mask
	return a ^ t<<shift, b ^ t
}

// within exchanges two index bits inside a register: the bits of mask with those delta above.
func within(x uint64, delta uint, mask uint64) uint64 {
	t := (x ^ x>>delta) & mask
	return x ^ t ^ t<<delta
}

// Masks of the positions whose index bit 1, 2, 3 or 4 is 0, and of those with index bit 0 set and bit 5 clear.
const (
	clear1 = 0x3333333333333333
	clear2 = 0x0f0f0f0f0f0f0f0f
	clear3 = 0x00ff00ff00ff00ff
	clear4 = 0x0000ffff0000ffff
	low0   = 0x00000000aaaaaaaa
)

// transpose16 turns 16 planes, two a register, into 32 words of 16 bits, and back. Register r has words 2r, 16+2r, 2r+1, 16+2r+1, from its low bits on.
func transpose16(x *[8]uint64) {
	a, b, c, d, e, f, g, h := x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
	a, e = cross(a, e, 8, clear3)
	b, f = cross(b, f, 8, clear3)
	c, g = cross(c, g, 8, clear3)
	d, h = cross(d, h, 8, clear3)
	a, c = cross(a, c, 4, clear2)
	b, d = cross(b, d, 4, clear2)
	e, g = cross(e, g, 4, clear2)
	f, h = cross(f, h, 4, clear2)
	a, b = cross(a, b, 2, clear1)
	c, d = cross(c, d, 2, clear1)
	e, f = cross(e, f, 2, clear1)
	g, h = cross(g, h, 2, clear1)
	x[0], x[1], x[2], x[3] = within(a, 31, low0), within(b, 31, low0), within(c, 31, low0), within(d, 31, low0)
	x[4], x[5], x[6], x[7] = within(e, 31, low0), within(f, 31, low0), within(g, 31, low0), within(h, 31, low0)
}

func pair(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }

// transpose8 transposes 8x8 bits.
func transpose8(x uint64) uint64 {
	x = within(x, 28, 0x00000000f0f0f0f0)
	x = within(x, 14, 0x0000cccc0000cccc)
	return within(x, 7, 0x00aa00aa00aa00aa)
}

const (
	ones8  = 0x0101010101010101 // bit 0 of each byte
	gather = 0x0102040810204080 // moves bit 0 of byte i to bit 56+i, when it multiplies
)

// planeOfBytes is one plane of the 32 bytes of a group.
func planeOfBytes(x *[4]uint64, bit uint) uint32 {
	plane := x[0] >> bit & ones8 * gather >> 56
	plane |= x[1] >> bit & ones8 * gather >> 56 << 8
	plane |= x[2] >> bit & ones8 * gather >> 56 << 16
	return uint32(plane | x[3]>>bit&ones8*gather>>56<<24)
}

// whole returns the first 32 bytes of src, or, if src is shorter, room with src and zeros behind it. room is zero.
func whole(src []byte, room *[32]byte) *[32]byte {
	if len(src) >= len(room) {
		return (*[32]byte)(src)
	}
	copy(room[:], src)
	return room
}

// readNarrow reads up to 8 planes, from the front of src, and returns the bytes of the group, 8 a register, in order.
func readNarrow(src []byte, width int) (a, b, c, d uint64) {
	if width == 0 {
		return 0, 0, 0, 0
	}
	var few [32]byte
	p, mask := whole(src, &few), &keep[width*planeBytes]
	w, x := binary.LittleEndian.Uint64(p[0:])&mask[0], binary.LittleEndian.Uint64(p[8:])&mask[1]
	y, z := binary.LittleEndian.Uint64(p[16:])&mask[2], binary.LittleEndian.Uint64(p[24:])&mask[3]
	a, b, c, d = exchange4(w&0xffffffff|y<<32, w>>32|y>>32<<32, x&0xffffffff|z<<32, x>>32|z>>32<<32)
	return transpose8(a), transpose8(b), transpose8(c), transpose8(d)
}

// readMiddle reads up to 16 planes, from the front of src, two a register, for transpose16.
func readMiddle(x *[8]uint64, src []byte, width int) {
	if len(src) < 64 {
		var few [64]byte
		copy(few[:], src)
		src = few[:]
	}
	n := width * planeBytes
	p, low, high := (*[64]byte)(src), &keep[min(n, 32)], &keep[max(n, 32)-32]
	for i := range low {
		x[i] = binary.LittleEndian.Uint64(p[8*i:]) & low[i]
		x[i+4] = binary.LittleEndian.Uint64(p[8*i+32:]) & high[i]
	}
}

// putPlanes writes the width low planes, at most 16, of 32 words; dst has exactly their length.
func putPlanes[T word](dst []byte, z *[groupWords]T, width int) {
	if width <= 8 {
		putNarrow(dst, z)
		return
	}
	putMiddle(dst, z)
}

func putNarrow[T word](dst []byte, z *[groupWords]T) {
	var x [4]uint64
	for r := range x {
		part := z[8*r : 8*r+8]
		for i, v := range part {
			x[r] |= uint64(v) << (i * 8 & 63)
		}
	}
	for b := range len(dst) / planeBytes {
		binary.LittleEndian.PutUint32(dst[b*planeBytes:], planeOfBytes(&x, uint(b)&7))
	}
}

func putMiddle[T word](dst []byte, z *[groupWords]T) {
	var x [8]uint64
	for r := range x {
		x[r] = uint64(z[2*r]) | uint64(z[2*r+16])<<16 | uint64(z[2*r+1])<<32 | uint64(z[2*r+17])<<48
	}
	transpose16(&x)
	writePlanes(dst, x[:])
}

// writePlanes writes as many planes of the registers as dst has room for.
func writePlanes(dst []byte, x []uint64) {
	i := 0
	for ; len(dst) >= 8; i++ {
		binary.LittleEndian.PutUint64(dst, x[i])
		dst = dst[8:]
	}
	if len(dst) > 0 {
		binary.LittleEndian.PutUint32(dst, uint32(x[i]))
	}
}
