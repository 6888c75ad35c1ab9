package codec

import (
	"encoding/binary"
	"math/bits"
)

// Exponent codes. A code of k bits stands for the exponents base, base+1, ...; the code of k ones says that the exponent follows behind all words,
// among the escapes. That code is the largest, not 0: then a decoder adds base to the codes of several words at once and nothing borrows or overflows.
// Sign and mantissa hardly compress. They are stored as they are: the low bits of the words as arrays of whole bytes, the others as planes.

const mostCodeBits = 4

// float is how words of a kind are divided. The top 16 bits of a word are sign, exponent and the high bits of the mantissa.
type float struct {
	shift    uint // of the exponent within the top 16 bits
	exponent uint // bits
	rest     int  // planes of sign and mantissa bits in a group
	low      int  // bytes of a word in the arrays
	escape   int  // bytes of an escape
}

func floatOf(k Kind) float {
	switch k {
	case Float16:
		return float{shift: 10, exponent: 5, rest: 3, low: 1, escape: 1}
	case BFloat16:
		return float{shift: 7, exponent: 8, rest: 0, low: 1, escape: 1}
	case Float32:
		return float{shift: 7, exponent: 8, rest: 0, low: 3, escape: 1}
	}
	return float{shift: 4, exponent: 11, rest: 5, low: 6, escape: 2}
}

// mask has the bits of an exponent.
func (f *float) mask() uint16 { return 1<<f.exponent - 1 }

// codes is the choice for a chunk.
type codes struct {
	bits    int
	base    int
	escapes int
}

const codesHead = 4 // base (16 bits), bits (8), a zero

// bytes is the length of the body.
func (c *codes) bytes(f *float, groups int) int {
	return codesHead + groups*((c.bits+f.rest)*planeBytes+f.low*groupWords) + c.escapes*f.escape
}

// histogram counts the exponents of a chunk.
type histogram struct {
	count    [1 << 11]uint32
	parts    [4][1 << 8]uint32
	bytes    [ChunkBytes / 2]byte // the exponents, where a vector counts them
	min, max int
}

// take counts the exponents of the words of a chunk.
func (h *histogram) take(f *float, v *view) {
	words := v.plain[:v.words*v.size]
	if h.takeByVectors(f, v) {
		return
	}
	if v.size == 8 {
		h.take64(words)
		return
	}
	clear(h.parts[0][:])
	clear(h.parts[1][:])
	clear(h.parts[2][:])
	clear(h.parts[3][:])
	if v.size == 2 {
		h.take16(words, f.shift&15, byte(f.mask()))
	} else {
		h.take32(words)
	}
	h.unite(int(f.mask()) + 1)
}

// take16 counts the exponents of words of two bytes. Neighbouring words count in different parts: an addition to a number waits for the one before.
func (h *histogram) take16(p []byte, shift uint, mask byte) {
	a, b, c, d := &h.parts[0], &h.parts[1], &h.parts[2], &h.parts[3]
	for ; len(p) >= 8; p = p[8:] {
		x := binary.LittleEndian.Uint64(p) >> shift
		a[byte(x)&mask]++
		b[byte(x>>16)&mask]++
		c[byte(x>>32)&mask]++
		d[byte(x>>48)&mask]++
	}
	for ; len(p) >= 2; p = p[2:] {
		a[byte(binary.LittleEndian.Uint16(p)>>shift)&mask]++
	}
}

// take32 is for words of four bytes.
func (h *histogram) take32(p []byte) {
	a, b, c, d := &h.parts[0], &h.parts[1], &h.parts[2], &h.parts[3]
	for ; len(p) >= 16; p = p[16:] {
		x, y := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		a[byte(x>>23)]++
		b[byte(x>>55)]++
		c[byte(y>>23)]++
		d[byte(y>>55)]++
	}
	for ; len(p) >= 4; p = p[4:] {
		a[byte(binary.LittleEndian.Uint32(p)>>23)]++
	}
}

// unite adds the parts, for so many exponents.
func (h *histogram) unite(exponents int) {
	a, b, c, d := &h.parts[0], &h.parts[1], &h.parts[2], &h.parts[3]
	for e := range h.count[:min(exponents, len(a))] {
		h.count[e] = a[e] + b[e] + c[e] + d[e]
	}
	h.bounds(exponents - 1)
}

// bounds finds the smallest and the largest exponent, of those up to mask.
func (h *histogram) bounds(mask int) {
	h.min, h.max = 0, mask
	for h.min < mask && h.count[h.min] == 0 {
		h.min++
	}
	for h.max > 0 && h.count[h.max] == 0 {
		h.max--
	}
}

// take64 is for words of eight bytes, of which a chunk has as many as there are exponents.
func (h *histogram) take64(p []byte) {
	const mask = 1<<11 - 1
	clear(h.count[:])
	h.min, h.max = mask, 0
	for ; len(p) >= 8; p = p[8:] {
		e := binary.LittleEndian.Uint64(p) >> 52 & mask
		h.count[e]++
		h.min, h.max = min(h.min, int(e)), max(h.max, int(e))
	}
}

// choose returns the codes with the shortest body: of equal ones that with the fewest bits, and then the smallest base.
func (h *histogram) choose(f *float, words int) (best codes) {
	shortest := 0
	for k := 1; k <= mostCodeBits; k++ {
		c := codes{bits: k}
		covered := 0
		c.base, covered = h.window(1<<k-1, int(f.mask())+1-1<<k)
		c.escapes = words - covered
		if n := c.bytes(f, groups(words)); k == 1 || n < shortest {
			best, shortest = c, n
		}
	}
	return best
}

// window returns the start of the range of so many exponents that has the most words, and their number. The start is at most last; of equal ranges it is the
// first from the smallest exponent on.
func (h *histogram) window(width, last int) (base, most int) {
	low, high := min(h.min, last), min(h.max, last)
	sum := 0
	for _, n := range h.count[low : low+width] {
		sum += int(n)
	}
	base, most = low, sum
	for at := low + 1; at <= high; at++ {
		sum += int(h.count[at+width-1]) - int(h.count[at-1])
		if sum > most {
			base, most = at, sum
		}
	}
	return base, most
}

// writeExp writes the body; dst has exactly its length.
func writeExp(dst []byte, c *codes, f *float, v *view) {
	binary.LittleEndian.PutUint16(dst, uint16(c.base))
	dst[2], dst[3] = byte(c.bits), 0
	if writeExpByVectors(dst[codesHead:], c, f, v) {
		return
	}
	planes, low, escapes := f.parts(dst[codesHead:], c.bits, groups(v.words))
	var x expGroup
	for g := range groups(v.words) {
		x.load(v.group(v.plain, g), f, c, v.valid(g))
		planes = x.putPlanes(planes, c.bits, f.rest)
		escapes = x.putEscapes(escapes, f.escape)
		x.putLow(low, g, f.low)
	}
}

// parts divides a body behind its head: planes, arrays of low bytes, escapes.
func (f *float) parts(body []byte, bits, groups int) (planes, low, escapes []byte) {
	n := groups * (bits + f.rest) * planeBytes
	m := n + groups*f.low*groupWords
	return body[:n], body[n:m], body[m:]
}

// readExp writes the words of a body to v.plain; false if the body is malformed.
func readExp(v *view, f *float, body []byte) bool {
	if len(body) < codesHead {
		return false
	}
	c := codes{base: int(binary.LittleEndian.Uint16(body)), bits: int(body[2])}
	if c.bits < 1 || c.bits > mostCodeBits || body[3] != 0 || c.base+1<<c.bits > int(f.mask())+1 || len(body) < c.bytes(f, groups(v.words)) {
		return false
	}
	planes, low, escapes := f.parts(body[codesHead:], c.bits, groups(v.words))
	if done, ok := readExpByVectors(body[codesHead:], &c, f, v); done {
		return ok
	}
	for g := range groups(v.words) {
		var p groupPlanes
		planes = p.read(planes, c.bits, f.rest)
		dst := v.group(v.plain, g)
		marks := p.escapes(c.bits, v.valid(g))
		p.words(dst, low, g, &c, f)
		var ok bool
		if escapes, ok = patch(dst, escapes, marks, v.size, f); !ok {
			return false
		}
	}
	return len(escapes) == 0
}

// groupPlanes are the planes of a group.
type groupPlanes struct {
	code [mostCodeBits]uint32
	rest [5]uint32
}

// read reads the planes of a group and returns those behind them.
func (p *groupPlanes) read(src []byte, bits, rest int) []byte {
	for b := range bits {
		p.code[b&3] = binary.LittleEndian.Uint32(src[b*planeBytes:])
	}
	src = src[bits*planeBytes:]
	for b := range rest {
		p.rest[b] = binary.LittleEndian.Uint32(src[b*planeBytes:])
	}
	return src[rest*planeBytes:]
}

// escapes marks the words of a group whose exponent is among the escapes.
func (p *groupPlanes) escapes(bits, valid int) uint32 {
	m := uint32(1<<valid - 1)
	for _, plane := range p.code[:bits] {
		m &= plane
	}
	return m
}

// patch replaces the exponents of marked words by the next escapes.
func patch(dst, escapes []byte, marks uint32, size int, f *float) (rest []byte, ok bool) {
	if len(escapes) < f.escape*bits.OnesCount32(marks) {
		return nil, false
	}
	mask, shift := f.mask(), f.shift&15
	for ; marks != 0; marks &= marks - 1 {
		e := uint16(escapes[0])
		if f.escape == 2 {
			e |= uint16(escapes[1]) << 8
		}
		escapes = escapes[f.escape:]
		if e > mask {
			return nil, false
		}
		top := dst[size*bits.TrailingZeros32(marks)+size-2:]
		binary.LittleEndian.PutUint16(top, binary.LittleEndian.Uint16(top)&^(mask<<shift)|e<<shift)
	}
	return escapes, true
}

// lanes has, for four bits, each in bit 0 of a lane of 16 bits.
var lanes = newLanes()

func newLanes() (table [16]uint64) {
	for n := range table {
		for i := range 4 {
			table[n] |= uint64(n>>i&1) << (16 * i)
		}
	}
	return table
}

// next returns the codes of the next four words, in lanes of 16 bits.
func (p *groupPlanes) next() uint64 {
	k := &p.code
	x := lanes[k[0]&15] | lanes[k[1]&15]<<1 | lanes[k[2]&15]<<2 | lanes[k[3]&15]<<3
	k[0], k[1], k[2], k[3] = k[0]>>4, k[1]>>4, k[2]>>4, k[3]>>4
	return x
}

// words writes the words of group g, with wrong exponents for escapes. It uses up the planes.
func (p *groupPlanes) words(dst, low []byte, g int, c *codes, f *float) {
	at, all := g*groupWords, len(low)/f.low
	start := uint64(c.base) << f.shift * even16
	switch {
	case f.exponent == 5:
		p.float16((*[64]byte)(dst), (*[32]byte)(low[at:]), byte(c.base))
	case f.exponent == 11:
		p.float64((*[256]byte)(dst), (*[128]byte)(low[4*at:]), (*[64]byte)(low[4*all+2*at:]), start)
	case f.low == 1:
		p.bfloat16((*[64]byte)(dst), (*[32]byte)(low[at:]), byte(c.base))
	default:
		p.float32((*[128]byte)(dst), (*[64]byte)(low[2*at:]), (*[32]byte)(low[2*all+at:]), start)
	}
}

// spreadBytes moves four bytes to lanes of 16 bits.
func spreadBytes(x uint64) uint64 {
	x = (x | x<<16) & clear4
	return (x | x<<8) & clear3
}

// top8 are the top 16 bits of four words with exponents of 8 bits, from their sign and high mantissa bits, and their exponents in lanes.
func top8(four uint32, exponents uint64) uint64 {
	x := spreadBytes(uint64(four))
	return x&(0x7f*even16) + exponents | x&(0x80*even16)<<8
}

// bfloat16 makes the low and the high bytes of eight words at once.
func (p *groupPlanes) bfloat16(dst *[64]byte, low *[32]byte, base byte) {
	a, b, c, d := p.code[0], p.code[1], p.code[2], p.code[3]
	start := uint64(base) * ones8
	for q := 0; q < groupWords; q += 8 {
		e := bytesOf[byte(a)] | bytesOf[byte(b)]<<1 | bytesOf[byte(c)]<<2 | bytesOf[byte(d)]<<3
		a, b, c, d = a>>8, b>>8, c>>8, d>>8
		e += start
		s := binary.LittleEndian.Uint64(low[q:])
		x, y := s&(0x80*ones8)|e>>1&(0x7f*ones8), s&(0x7f*ones8)|e<<7&(0x80*ones8)
		binary.LittleEndian.PutUint64(dst[2*q:], spreadBytes(y&0xffffffff)|spreadBytes(x&0xffffffff)<<8)
		binary.LittleEndian.PutUint64(dst[2*q+8:], spreadBytes(y>>32)|spreadBytes(x>>32)<<8)
	}
}

func (p *groupPlanes) float32(dst *[128]byte, halves *[64]byte, low *[32]byte, start uint64) {
	a, b, c, d := p.code[0], p.code[1], p.code[2], p.code[3]
	for q := 0; q < groupWords; q += 4 {
		codes := lanes[a&15] | lanes[b&15]<<1 | lanes[c&15]<<2 | lanes[d&15]<<3
		a, b, c, d = a>>4, b>>4, c>>4, d>>4
		x := top8(binary.LittleEndian.Uint32(low[q:]), codes<<7+start)
		y := binary.LittleEndian.Uint64(halves[2*q:])
		binary.LittleEndian.PutUint64(dst[4*q:], unpack(uint32(x), uint32(y)))
		binary.LittleEndian.PutUint64(dst[4*q+8:], unpack(uint32(x>>32), uint32(y>>32)))
	}
}

// unpack returns two words of 32 bits from their high and their low halves.
func unpack(high, low uint32) uint64 {
	x, y := uint64(high), uint64(low)
	return x&0xffff<<16 | x>>16<<48 | y&0xffff | y>>16<<32
}

// bytesOf has, for eight bits, each in bit 0 of a byte.
var bytesOf = newBytesOf()

func newBytesOf() (table [256]uint64) {
	for n := range table {
		for i := range 8 {
			table[n] |= uint64(n>>i&1) << (8 * i)
		}
	}
	return table
}

// float16 makes the high bytes of eight words at once.
func (p *groupPlanes) float16(dst *[64]byte, low *[32]byte, base byte) {
	k, r := p.code, p.rest
	start := uint64(base) << 2 * ones8
	for q := 0; q < groupWords; q += 8 {
		x := bytesOf[byte(k[0]>>q)] | bytesOf[byte(k[1]>>q)]<<1 | bytesOf[byte(k[2]>>q)]<<2 | bytesOf[byte(k[3]>>q)]<<3
		x = x<<2 + start | bytesOf[byte(r[0]>>q)] | bytesOf[byte(r[1]>>q)]<<1 | bytesOf[byte(r[2]>>q)]<<7
		y := binary.LittleEndian.Uint64(low[q:])
		binary.LittleEndian.PutUint64(dst[2*q:], spreadBytes(y&0xffffffff)|spreadBytes(x&0xffffffff)<<8)
		binary.LittleEndian.PutUint64(dst[2*q+8:], spreadBytes(y>>32)|spreadBytes(x>>32)<<8)
	}
}

func (p *groupPlanes) float64(dst *[256]byte, words *[128]byte, halves *[64]byte, start uint64) {
	for q := 0; q < groupWords; q += 4 {
		x := p.next()<<4 + start
		r := &p.rest
		x |= lanes[r[0]>>q&15] | lanes[r[1]>>q&15]<<1 | lanes[r[2]>>q&15]<<2 | lanes[r[3]>>q&15]<<3 | lanes[r[4]>>q&15]<<15
		y := binary.LittleEndian.Uint64(halves[2*q:])
		a, b := binary.LittleEndian.Uint64(words[4*q:]), binary.LittleEndian.Uint64(words[4*q+8:])
		binary.LittleEndian.PutUint64(dst[8*q:], x<<48|y&0xffff<<32|a&0xffffffff)
		binary.LittleEndian.PutUint64(dst[8*q+8:], x>>16<<48|y>>16&0xffff<<32|a>>32)
		binary.LittleEndian.PutUint64(dst[8*q+16:], x>>32<<48|y>>32&0xffff<<32|b&0xffffffff)
		binary.LittleEndian.PutUint64(dst[8*q+24:], x>>48<<48|y>>48<<32|b>>32)
	}
}
