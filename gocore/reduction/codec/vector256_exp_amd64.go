//go:build !race

package codec

import "unsafe"

//go:noescape
func decodeExp16(parts unsafe.Pointer)

//go:noescape
func decodeExpB16(parts unsafe.Pointer)

//go:noescape
func decodeExp32(parts unsafe.Pointer)

//go:noescape
func decodeExp64(parts unsafe.Pointer)

// readExpBy256 does what readExpByVectors does, with AVX2. The assembly loads 32 bytes where a group has fewer bytes of planes: the arrays behind the
// planes have that many.
func readExpBy256(body []byte, c *codes, f *float, v *view) (done, ok bool) {
	if !vectors256 || v.words == 0 || v.words%groupWords != 0 {
		return false, false
	}
	var marks [ChunkBytes / 2 / groupWords]uint32
	p, escapes := divideExp(body, c, f, v)
	p.marks, p.base, p.escape = unsafe.Pointer(&marks), uint64(c.base), 1<<c.bits-1
	switch {
	case f.exponent == 5:
		decodeExp16(unsafe.Pointer(&p))
	case f.exponent == 11:
		decodeExp64(unsafe.Pointer(&p))
	case f.low == 1:
		decodeExpB16(unsafe.Pointer(&p))
	default:
		decodeExp32(unsafe.Pointer(&p))
	}
	return true, v.patch(escapes, marks[:p.groups], f)
}

// patch replaces the exponents of marked words by the escapes, which are exactly as many.
func (v *view) patch(escapes []byte, marks []uint32, f *float) (ok bool) {
	for g, m := range marks {
		if m == 0 {
			continue
		}
		if escapes, ok = patch(v.group(v.plain, g), escapes, m, v.size, f); !ok {
			return false
		}
	}
	return len(escapes) == 0
}
