package codec

import (
	"encoding/binary"
	"math/bits"
)

// Sparse bytes. A bitmap tells which bytes are not zero; only those are stored. The bitmap is stored in the same way, and so is the bitmap of that.
// Only the third bitmap is stored whole. The order is: third bitmap, bytes of the second, bytes of the first, bytes.

// bitmaps are the three bitmaps of at most ChunkBytes bytes, and eight bytes behind each for whole steps.
type bitmaps struct {
	one   [ChunkBytes/8 + 8]byte
	two   [ChunkBytes/64 + 8]byte
	three [ChunkBytes/512 + 8]byte
}

// eighth is the length of a bitmap for n bytes.
func eighth(n int) int { return (n + 7) / 8 }

// levels returns the bitmaps for n bytes.
func (b *bitmaps) levels(n int) (one, two, three []byte) {
	one = b.one[:eighth(n)]
	two = b.two[:eighth(len(one))]
	return one, two, b.three[:eighth(len(two))]
}

// measure fills in the bitmaps of some bytes and returns the length of their sparse form.
func (b *bitmaps) measure(p []byte) int {
	one, two, three := b.levels(len(p))
	n := mark(one, p)
	n += mark(two, one)
	return n + mark(three, two) + len(three)
}

// write writes the sparse form of bytes and returns its length. dst has room for it.
func (b *bitmaps) write(dst, p []byte) int {
	b.measure(p)
	one, two, three := b.levels(len(p))
	n := copy(dst, three)
	n += compress(dst[n:], two, three)
	n += compress(dst[n:], one, two)
	return n + compress(dst[n:], p, one)
}

// read restores bytes from their sparse form and returns the rest behind it; false if src is too short or has marks behind the end of a level.
func (b *bitmaps) read(p, src []byte) (rest []byte, ok bool) {
	one, two, three := b.levels(len(p))
	if len(src) < len(three) {
		return nil, false
	}
	src = src[copy(three, src):]
	if src, ok = expand(two, src, three); !ok {
		return nil, false
	}
	if src, ok = expand(one, src, two); !ok {
		return nil, false
	}
	return expand(p, src, one)
}

// mark sets bit i%8 of byte i/8 of the bitmap where byte i is not zero, and returns the number of those bytes.
//
//go:norace
func mark(bitmap, p []byte) (count int) {
	units, count := markByVectors(bitmap, p)
	bitmap, p = bitmap[8*units:], p[64*units:]
	for len(p) >= 8 && len(bitmap) > 0 {
		m := nonzero(binary.LittleEndian.Uint64(p))
		bitmap[0] = m
		count += bits.OnesCount8(m)
		p, bitmap = p[8:], bitmap[1:]
	}
	for i := range bitmap {
		m := nonzero(eight(p))
		bitmap[i] = m
		count += bits.OnesCount8(m)
		p = p[min(8, len(p)):]
	}
	return count
}

// eight reads 8 bytes; zeros stand for missing ones.
func eight(p []byte) uint64 {
	if len(p) >= 8 {
		return binary.LittleEndian.Uint64(p)
	}
	var few [8]byte
	copy(few[:], p)
	return binary.LittleEndian.Uint64(few[:])
}

// putEight writes 8 bytes, or as many as fit.
func putEight(p []byte, x uint64) {
	if len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, x)
		return
	}
	for i := range p {
		p[i] = byte(x >> (8 * i))
	}
}

// nonzero has bit i set where byte i of x is not zero.
func nonzero(x uint64) byte {
	const low7 = 0x7f7f7f7f7f7f7f7f
	top := x&low7 + low7 | x
	return byte(top >> 7 & ones8 * gather >> 56)
}

// compress writes the marked bytes and returns their number.
//
//go:norace
func compress(dst, p, bitmap []byte) (n int) {
	units, n := compressByVectors(dst, p, bitmap)
	p, bitmap = p[64*units:], bitmap[8*units:]
	for ; len(bitmap) > 0 && len(p) >= 8 && len(dst)-n >= 8; p, bitmap = p[8:], bitmap[1:] {
		if m := bitmap[0]; m != 0 {
			binary.LittleEndian.PutUint64(dst[n:], collect(binary.LittleEndian.Uint64(p), m))
			n += spreads[m].count
		}
	}
	for i, m := range bitmap {
		for ; m != 0; m &= m - 1 {
			dst[n] = p[8*i+bits.TrailingZeros8(m)]
			n++
		}
	}
	return n
}

// expand writes the next bytes of src where the bitmap has a mark, and zeros elsewhere.
func expand(p, src, bitmap []byte) (rest []byte, ok bool) {
	units, n := expandByVectors(p, src, bitmap)
	if n < 0 {
		return nil, false
	}
	p, src, bitmap = p[64*units:], src[n:], bitmap[8*units:]
	clear(p)
	next, left := src, len(src)
	var few [128]byte // the last bytes of src, with room behind them
	for ; len(p) >= 64; p, bitmap = p[64:], bitmap[8:] {
		marks := binary.LittleEndian.Uint64(bitmap)
		if marks == 0 {
			continue
		}
		n := bits.OnesCount64(marks)
		if n > left {
			return nil, false
		}
		if len(next) < 64 {
			copy(few[:], next)
			next = few[:]
		}
		expand64((*[64]byte)(p), (*[64]byte)(next), marks, n)
		next, left = next[n:], left-n
	}
	return expandLast(p, src[len(src)-left:], bitmap)
}

// expand64 does 64 bytes, n of which are marked.
func expand64(p, src *[64]byte, marks uint64, n int) {
	if n <= 8 {
		for i := 0; marks != 0; marks &= marks - 1 {
			p[bits.TrailingZeros64(marks)&63] = src[i&63]
			i++
		}
		return
	}
	taken := 0
	for i := 0; i < 64; i += 8 {
		m := byte(marks)
		marks >>= 8
		at := min(taken, 56)
		x := binary.LittleEndian.Uint64(src[at:]) >> (8 * (taken - at) & 63)
		binary.LittleEndian.PutUint64(p[i:], spread(x, m))
		taken += spreads[m].count
	}
}

// expandLast does the bytes behind the last 64.
func expandLast(p, src, bitmap []byte) (rest []byte, ok bool) {
	for i, m := range bitmap {
		part := p[8*i:]
		n := bits.OnesCount8(m)
		if n > len(src) || len(part) < 8 && m>>len(part) != 0 {
			return nil, false
		}
		putEight(part, spread(eight(src), m))
		src = src[n:]
	}
	return src, true
}

// moves tells which bytes of a register move up by 4, then by 2, then by 1, so that the first bytes come to the marked positions.
type moves struct {
	keep, four, two, one uint64
	count                int
}

var spreads = newSpreads()

func newSpreads() (table [256]moves) {
	for m := range table {
		set := &table[m]
		for source, left := 0, m; left != 0; source, left = source+1, left&(left-1) {
			at, far := source, bits.TrailingZeros(uint(left))-source
			set.keep |= 0xff << (8 * at)
			set.count++
			for _, step := range []struct {
				bytes *uint64
				by    int
			}{{&set.four, 4}, {&set.two, 2}, {&set.one, 1}} {
				if far&step.by != 0 {
					*step.bytes |= 0xff << (8 * at)
					at += step.by
				}
			}
		}
	}
	return table
}

// spread moves the first bytes of x to the marked positions.
func spread(x uint64, m byte) uint64 {
	set := &spreads[m]
	x &= set.keep
	x = x&^set.four | x&set.four<<32
	x = x&^set.two | x&set.two<<16
	return x&^set.one | x&set.one<<8
}

// collect moves the marked bytes to the front, the reverse of spread. Bytes that are not marked must be 0.
func collect(x uint64, m byte) uint64 {
	set := &spreads[m]
	x = x&^(set.one<<8) | x>>8&set.one
	x = x&^(set.two<<16) | x>>16&set.two
	return x&^(set.four<<32) | x>>32&set.four
}
