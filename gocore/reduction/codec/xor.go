package codec

import "encoding/binary"

// XOR with the reference. The bytes of the results are divided into planes: plane j has byte j of each word. A plane is left out if it is zero, or
// stored whole, or sparse, whichever is shortest.
//
// The body is: 2 bits a plane with its form, in 16 bits; 16 zero bits; the planes.

const (
	planeZero = iota
	planeWhole
	planeSparse
)

const xorHead = 4

// byteplanes are the results of a chunk by planes. Planes lie at multiples of the stride, which is a whole number of groups.
type byteplanes struct {
	delta  [ChunkBytes]byte
	planes [ChunkBytes]byte
	forms  uint16
}

// take computes the planes of a chunk.
func (x *byteplanes) take(v *view) {
	if bytePlanesByVectors(x.planes[:], v.plain, v.reference, v.size) {
		return
	}
	delta := x.delta[:len(v.plain)]
	xorBytes(delta, v.plain, v.reference)
	x.divide(delta, v.size)
}

// plane returns plane j without the bytes behind the last word.
func (x *byteplanes) plane(j int, v *view) []byte {
	stride := roundUp(v.words, groupWords)
	return x.planes[j*stride : j*stride+v.words : (j+1)*stride]
}

// measureXor chooses the forms of the planes and returns the length of the body.
func measureXor(x *byteplanes, b *bitmaps, v *view) int {
	x.take(v)
	x.forms = 0
	n := xorHead
	for j := range v.size {
		form, bytes := b.form(x.plane(j, v))
		x.forms |= uint16(form) << (2 * j)
		n += bytes
	}
	return n
}

// form returns the shortest form of a plane and its length.
func (b *bitmaps) form(plane []byte) (form, length int) {
	_, _, three := b.levels(len(plane))
	switch n := b.measure(plane); {
	case n == len(three): // no byte is marked
		return planeZero, 0
	case n < len(plane):
		return planeSparse, n
	}
	return planeWhole, len(plane)
}

// writeXor writes the body; dst has the length that measureXor returned, just before.
func writeXor(dst []byte, x *byteplanes, b *bitmaps, v *view) {
	binary.LittleEndian.PutUint32(dst, uint32(x.forms))
	dst = dst[xorHead:]
	for j := range v.size {
		switch plane := x.plane(j, v); x.forms >> (2 * j) & 3 {
		case planeWhole:
			dst = dst[copy(dst, plane):]
		case planeSparse:
			dst = dst[b.write(dst, plane):]
		}
	}
}

// readXor writes the words of a body to v.plain; false if the body is malformed.
func readXor(v *view, x *byteplanes, b *bitmaps, body []byte) bool {
	if len(body) < xorHead {
		return false
	}
	forms := binary.LittleEndian.Uint32(body)
	if forms>>(2*v.size) != 0 {
		return false
	}
	rest := body[xorHead:]
	for j := range v.size {
		var ok bool
		if rest, ok = readPlane(x.plane(j, v), rest, forms>>(2*j)&3, b); !ok {
			return false
		}
	}
	if len(rest) != 0 {
		return false
	}
	x.unite(v)
	return true
}

func readPlane(plane, src []byte, form uint32, b *bitmaps) (rest []byte, ok bool) {
	switch form {
	case planeZero:
		clear(plane)
		return src, true
	case planeWhole:
		if len(src) < len(plane) {
			return nil, false
		}
		return src[copy(plane, src):], true
	case planeSparse:
		return b.read(plane, src)
	}
	return nil, false
}

// xorBytes writes a XOR b. The lengths are equal, and multiples of 8.
//
//go:norace
func xorBytes(dst, a, b []byte) {
	for len(dst) >= 8 && len(a) >= 8 && len(b) >= 8 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(a)^binary.LittleEndian.Uint64(b))
		dst, a, b = dst[8:], a[8:], b[8:]
	}
}

// divide writes the planes of whole groups of words.
//
//go:norace
func (x *byteplanes) divide(words []byte, size int) {
	stride := len(words) / size
	p := x.planes[:len(words)]
	switch size {
	case 1:
		copy(p, words)
	case 2:
		divide2(p[:stride], p[stride:], words)
	case 4:
		divide4(p[:stride], p[stride:2*stride], p[2*stride:3*stride], p[3*stride:], words)
	default:
		divide8(p, words)
	}
}

// unite writes the words that the planes and the reference yield.
func (x *byteplanes) unite(v *view) {
	stride := len(v.plain) / v.size
	p := x.planes[:len(v.plain)]
	if uniteByVectors(v.plain, p, v.reference, v.size) {
		return
	}
	switch v.size {
	case 1:
		xorBytes(v.plain, p, v.reference)
	case 2:
		unite2(v.plain, v.reference, p[:stride], p[stride:])
	case 4:
		unite4(v.plain, v.reference, p[:stride], p[stride:2*stride], p[2*stride:3*stride], p[3*stride:])
	default:
		unite8(v.plain, v.reference, p)
	}
}

// gatherBytes moves the low bytes of lanes of 16 bits together, the reverse of spreadBytes.
func gatherBytes(x uint64) uint64 {
	x = (x | x>>8) & clear4
	return (x | x>>16) & 0xffffffff
}

func divide2(low, high, words []byte) {
	for len(words) >= 16 && len(low) >= 8 && len(high) >= 8 {
		a, b := binary.LittleEndian.Uint64(words), binary.LittleEndian.Uint64(words[8:])
		binary.LittleEndian.PutUint64(low, gatherBytes(a&even8)|gatherBytes(b&even8)<<32)
		binary.LittleEndian.PutUint64(high, gatherBytes(a>>8&even8)|gatherBytes(b>>8&even8)<<32)
		words, low, high = words[16:], low[8:], high[8:]
	}
}

func unite2(words, reference, low, high []byte) {
	for i := 0; i+16 <= len(words) && i+16 <= len(reference) && i/2+8 <= len(low) && i/2+8 <= len(high); i += 16 {
		a, b := binary.LittleEndian.Uint64(low[i/2:]), binary.LittleEndian.Uint64(high[i/2:])
		u, r := (*[16]byte)(words[i:]), (*[16]byte)(reference[i:])
		binary.LittleEndian.PutUint64(u[0:], spreadBytes(a&0xffffffff)|spreadBytes(b&0xffffffff)<<8^binary.LittleEndian.Uint64(r[0:]))
		binary.LittleEndian.PutUint64(u[8:], spreadBytes(a>>32)|spreadBytes(b>>32)<<8^binary.LittleEndian.Uint64(r[8:]))
	}
}

func divide4(p0, p1, p2, p3, words []byte) {
	for len(words) >= 32 && len(p0) >= 8 && len(p1) >= 8 && len(p2) >= 8 && len(p3) >= 8 {
		u := (*[32]byte)(words)
		a, b, c, d := exchange4(word4(u, 0), word4(u, 4), word4(u, 8), word4(u, 12))
		binary.LittleEndian.PutUint64(p0, a)
		binary.LittleEndian.PutUint64(p1, b)
		binary.LittleEndian.PutUint64(p2, c)
		binary.LittleEndian.PutUint64(p3, d)
		words, p0, p1, p2, p3 = words[32:], p0[8:], p1[8:], p2[8:], p3[8:]
	}
}

// word4 reads two words of 4 bytes, 16 bytes apart.
func word4(u *[32]byte, at int) uint64 {
	return pair(binary.LittleEndian.Uint32(u[at:]), binary.LittleEndian.Uint32(u[at+16:]))
}

func unite4(words, reference, p0, p1, p2, p3 []byte) {
	for i := 0; i+32 <= len(words) && i+32 <= len(reference); i += 32 {
		a, b := binary.LittleEndian.Uint64(p0[i/4:]), binary.LittleEndian.Uint64(p1[i/4:])
		c, d := binary.LittleEndian.Uint64(p2[i/4:]), binary.LittleEndian.Uint64(p3[i/4:])
		a, b, c, d = exchange4(a, b, c, d)
		u, r := (*[32]byte)(words[i:]), (*[32]byte)(reference[i:])
		binary.LittleEndian.PutUint64(u[0:], (a&0xffffffff|b<<32)^binary.LittleEndian.Uint64(r[0:]))
		binary.LittleEndian.PutUint64(u[8:], (c&0xffffffff|d<<32)^binary.LittleEndian.Uint64(r[8:]))
		binary.LittleEndian.PutUint64(u[16:], (a>>32|b>>32<<32)^binary.LittleEndian.Uint64(r[16:]))
		binary.LittleEndian.PutUint64(u[24:], (c>>32|d>>32<<32)^binary.LittleEndian.Uint64(r[24:]))
	}
}

func divide8(planes, words []byte) {
	stride := len(words) / 8
	var unit [8]uint64
	for at := 0; at < stride; at += 8 {
		u := (*[64]byte)(words[8*at:])
		for i := range unit {
			unit[i] = binary.LittleEndian.Uint64(u[8*i:])
		}
		exchange8(&unit)
		for j, plane := range unit {
			binary.LittleEndian.PutUint64(planes[j*stride+at:], plane)
		}
	}
}

func unite8(words, reference, planes []byte) {
	stride := len(words) / 8
	var unit [8]uint64
	for at := 0; at < stride; at += 8 {
		for j := range unit {
			unit[j] = binary.LittleEndian.Uint64(planes[j*stride+at:])
		}
		exchange8(&unit)
		u, r := (*[64]byte)(words[8*at:]), (*[64]byte)(reference[8*at:])
		for i := range unit {
			binary.LittleEndian.PutUint64(u[8*i:], unit[i]^binary.LittleEndian.Uint64(r[8*i:]))
		}
	}
}

// exchange4 turns 8 words of 4 bytes, of which a register has words i and i+4, into 4 planes of 8 bytes, and back.
func exchange4(a, b, c, d uint64) (w, x, y, z uint64) {
	a, c = cross(a, c, 16, clear4)
	b, d = cross(b, d, 16, clear4)
	a, b = cross(a, b, 8, clear3)
	c, d = cross(c, d, 8, clear3)
	return a, b, c, d
}

// exchange8 transposes 8x8 bytes.
func exchange8(x *[8]uint64) {
	for i := range 4 {
		x[i], x[i+4] = cross(x[i], x[i+4], 32, 0xffffffff)
	}
	x[0], x[1], x[2], x[3] = exchange4(x[0], x[1], x[2], x[3])
	x[4], x[5], x[6], x[7] = exchange4(x[4], x[5], x[6], x[7])
}
