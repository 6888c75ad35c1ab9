package codec

import (
	"encoding/binary"
	"math/bits"
)

// expGroup is a group of words on its way to the body of mode Exp: bytes of 8 words in a register. fp64 has the exponents in exponents64.
type expGroup struct {
	src         []byte
	codes       [4]uint64
	exponents   [4]uint64
	exponents64 [groupWords]uint16
	rest        [4]uint64 // the bits for planes of their own
	low         [4]uint64 // the low bytes of fp16, or the signs and high bits of the mantissas of bf16 and fp32
	marks       uint32    // the words whose exponents are escapes
}

// load divides the words of a group, of which so many are valid.
func (x *expGroup) load(src []byte, f *float, c *codes, valid int) {
	x.src = src
	switch {
	case f.exponent == 5:
		x.load16((*[2 * groupWords]byte)(src))
	case f.exponent == 11:
		x.load64((*[8 * groupWords]byte)(src), c)
	case f.low == 1:
		x.loadB16((*[2 * groupWords]byte)(src))
	default:
		x.load32((*[4 * groupWords]byte)(src))
	}
	escape := uint64(1<<c.bits-1) * ones8
	for r, e := range x.exponents {
		if f.exponent != 11 {
			x.codes[r] = saturate(subtract[uint8](e, uint64(c.base)*ones8), escape)
		}
		x.codes[r] &= keep[clip(valid-8*r, 8)][0]
	}
}

// saturate limits the bytes of x to those of most, which has only low bits, the same in each byte.
func saturate(x, most uint64) uint64 {
	const low7 = 0x7f * ones8
	high := x &^ most
	above := (high&low7 + low7 | high) >> 7 & ones8 // 1 where a high bit is set
	return x&most | above*0xff&most
}

// lanes4 returns the bytes in the low halves of four lanes of two registers.
func lanes4(a, b uint64) uint64 { return gatherBytes(a&even8) | gatherBytes(b&even8)<<32 }

func (x *expGroup) load16(src *[2 * groupWords]byte) {
	for r := range x.codes {
		a, b := binary.LittleEndian.Uint64(src[16*r:]), binary.LittleEndian.Uint64(src[16*r+8:])
		x.exponents[r] = lanes4(a>>10&(31*even16), b>>10&(31*even16))
		x.low[r] = lanes4(a, b)
		x.rest[r] = lanes4(a>>8&(3*even16)|a>>13&(4*even16), b>>8&(3*even16)|b>>13&(4*even16))
	}
}

func (x *expGroup) loadB16(src *[2 * groupWords]byte) {
	const sign, mantissa = 0x80 * even16, 0x7f * even16
	for r := range x.codes {
		a, b := binary.LittleEndian.Uint64(src[16*r:]), binary.LittleEndian.Uint64(src[16*r+8:])
		x.exponents[r] = lanes4(a>>7, b>>7)
		x.low[r] = lanes4(a>>8&sign|a&mantissa, b>>8&sign|b&mantissa)
	}
}

func (x *expGroup) load32(src *[4 * groupWords]byte) {
	for r := range x.codes {
		exponents, low := uint64(0), uint64(0)
		for i := 0; i < 32; i += 8 {
			w := binary.LittleEndian.Uint64(src[32*r+i:])
			top := w >> 24 & 0x80_00000080
			top |= w >> 16 & 0x7f_0000007f
			exponents |= (w>>23&0xff | w>>47&0xff00) << (2 * i)
			low |= (top | top>>24) & 0xffff << (2 * i)
		}
		x.exponents[r], x.low[r] = exponents, low
	}
}

func (x *expGroup) load64(src *[8 * groupWords]byte, c *codes) {
	base, escape := uint16(c.base), uint16(1<<c.bits-1)
	for r := range x.codes {
		codes, rest := uint64(0), uint64(0)
		for i := range 8 {
			w := binary.LittleEndian.Uint64(src[64*r+8*i:])
			e := uint16(w >> 52 & (1<<11 - 1))
			x.exponents64[8*r+i] = e
			codes |= uint64(min(e-base, escape)) << (8 * i)
			rest |= (w>>48&15 | w>>63<<4) << (8 * i)
		}
		x.codes[r], x.rest[r] = codes, rest
	}
}

// putPlanes writes the planes of the codes and those of the rest, and returns the space behind them.
func (x *expGroup) putPlanes(dst []byte, bits, rest int) []byte {
	x.marks = 1<<32 - 1
	planes := planes4(&x.codes)
	for _, plane := range planes[:bits] {
		binary.LittleEndian.PutUint32(dst, plane)
		dst = dst[planeBytes:]
		x.marks &= plane
	}
	if rest == 0 {
		return dst
	}
	putNarrow(dst[:rest*planeBytes], x.rest[0], x.rest[1], x.rest[2], x.rest[3])
	return dst[rest*planeBytes:]
}

// planes4 returns the planes of the low 4 bits of the bytes of a group; the others are 0.
func planes4(x *[4]uint64) (planes [4]uint32) {
	a, b := transpose8(x[0]|x[1]<<4), transpose8(x[2]|x[3]<<4) // byte i is plane i of 8 words, and byte i+4 of the next 8
	low := spreadBytes(a&0xffffffff) | spreadBytes(a>>32)<<8
	high := spreadBytes(b&0xffffffff) | spreadBytes(b>>32)<<8
	for i := range planes {
		planes[i] = uint32(low>>(16*i)&0xffff | high>>(16*i)<<16)
	}
	return planes
}

// putEscapes writes the exponents of marked words, and returns the space behind them.
func (x *expGroup) putEscapes(dst []byte, size int) []byte {
	for marks := x.marks; marks != 0; marks &= marks - 1 {
		i := bits.TrailingZeros32(marks)
		if size == 2 {
			binary.LittleEndian.PutUint16(dst, x.exponents64[i&31])
		} else {
			dst[0] = byte(x.exponents[i>>3&3] >> (i & 7 * 8))
		}
		dst = dst[size:]
	}
	return dst
}

// putLow writes the low bits of group g into the arrays, of so many bytes a word.
func (x *expGroup) putLow(low []byte, g, bytes int) {
	at, all := g*groupWords, len(low)/bytes
	switch bytes {
	case 1:
		x.putBytes(low[at:])
	case 3:
		halves := (*[2 * groupWords]byte)(low[2*at:])
		src := (*[4 * groupWords]byte)(x.src)
		for i := 0; i < len(halves); i += 4 {
			w := binary.LittleEndian.Uint64(src[2*i:])
			binary.LittleEndian.PutUint32(halves[i:], uint32(w&0xffff|w>>16&0xffff0000))
		}
		x.putBytes(low[2*all+at:])
	case 6:
		words, halves := (*[4 * groupWords]byte)(low[4*at:]), (*[2 * groupWords]byte)(low[4*all+2*at:])
		src := (*[8 * groupWords]byte)(x.src)
		for i := range groupWords {
			w := binary.LittleEndian.Uint64(src[8*i:])
			binary.LittleEndian.PutUint32(words[4*i:], uint32(w))
			binary.LittleEndian.PutUint16(halves[2*i:], uint16(w>>32))
		}
	}
}

func (x *expGroup) putBytes(dst []byte) {
	p := (*[groupWords]byte)(dst)
	for r, y := range x.low {
		binary.LittleEndian.PutUint64(p[8*r:], y)
	}
}
