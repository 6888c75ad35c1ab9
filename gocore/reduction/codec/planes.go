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

// putNarrow writes planes of the 32 bytes of a group, 8 a register, as many as dst has bytes.
func putNarrow(dst []byte, a, b, c, d uint64) {
	a, b, c, d = exchange4(transpose8(a), transpose8(b), transpose8(c), transpose8(d))
	first, second := a&0xffffffff|b<<32, c&0xffffffff|d<<32
	third, fourth := a>>32|b>>32<<32, c>>32|d>>32<<32
	if len(dst) >= 32 {
		binary.LittleEndian.PutUint64(dst[0:], first)
		binary.LittleEndian.PutUint64(dst[8:], second)
		binary.LittleEndian.PutUint64(dst[16:], third)
		binary.LittleEndian.PutUint64(dst[24:], fourth)
		return
	}
	for _, x := range [...]uint64{first, second, third, fourth} {
		if len(dst) < 8 {
			putFew(dst, x)
			return
		}
		binary.LittleEndian.PutUint64(dst, x)
		dst = dst[8:]
	}
}

// putFew writes the low bytes of x, as many as dst has.
func putFew(dst []byte, x uint64) {
	for i := range dst {
		dst[i] = byte(x >> (8 * i))
	}
}

// putMiddle writes planes of 32 words of two bytes, as many as dst has bytes, at most 16.
func putMiddle(dst []byte, u *[64]byte) {
	var x [8]uint64
	for r := 0; r < 8; r += 2 {
		a, b := binary.LittleEndian.Uint64(u[4*r:]), binary.LittleEndian.Uint64(u[4*r+32:])
		x[r] = spreadHalves(a&0xffffffff) | spreadHalves(b&0xffffffff)<<16
		x[r+1] = spreadHalves(a>>32) | spreadHalves(b>>32)<<16
	}
	transpose16(&x)
	for _, y := range x {
		if len(dst) < 8 {
			putFew(dst, y)
			return
		}
		binary.LittleEndian.PutUint64(dst, y)
		dst = dst[8:]
	}
}

// spreadHalves moves two halves of 16 bits to lanes of 32 bits.
func spreadHalves(x uint64) uint64 { return (x | x<<16) & clear4 }
