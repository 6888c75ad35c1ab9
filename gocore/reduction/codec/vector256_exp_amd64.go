//go:build !race

package codec

import "unsafe"

//go:noescape
func decodeExp16(parts, escapes unsafe.Pointer)

//go:noescape
func decodeExpB16(parts, escapes unsafe.Pointer)

//go:noescape
func decodeExp32(parts, escapes unsafe.Pointer)

//go:noescape
func decodeExp64(parts, marks unsafe.Pointer)

// readExpBy256 does what readExpByVectors does, with AVX2. The assembly loads 32 bytes where a group has fewer bytes of planes: the arrays behind the
// planes have that many.
func readExpBy256(body []byte, c *codes, f *float, v *view) (done, ok bool) {
	if !vectors256 || v.words == 0 || v.words%groupWords != 0 {
		return false, false
	}
	p, escapes := divideExp(body, c, f, v)
	p.base, p.escape = uint64(c.base), 1<<c.bits-1
	if f.escape == 2 {
		var marks [ChunkBytes / 8 / groupWords]uint32
		decodeExp64(unsafe.Pointer(&p), unsafe.Pointer(&marks))
		return true, v.patch(escapes, marks[:p.groups], f)
	}
	return true, f.exponents(escapes) && p.decode(escapes, f, v)
}

// escapeLeast is how many escapes the assembly needs for a group of words: it loads 8 behind those that it takes.
const escapeLeast = groupWords + 8

// decode decodes words whose escapes have a byte; false if these are too many or too few. The last ones are copied to memory with zeros behind them, so that
// the assembly reads nothing behind the body.
func (p *expParts) decode(escapes []byte, f *float, v *view) (ok bool) {
	all := p.groups
	p.left, p.least = len(escapes), escapeLeast
	p.decodeGroups(escapes, f)
	if p.groups > 0 {
		var last [escapeLeast + 8]byte // fewer than escapeLeast are left
		copy(last[:escapeLeast], escapes[len(escapes)-p.left:])
		p.skip(all-p.groups, f, v)
		p.least = 0
		p.decodeGroups(last[:], f)
	}
	return p.groups == 0 && p.left == 0
}

// decodeGroups decodes groups until fewer escapes are left than it needs. It calls functions by their names: a call of a variable would move the parts to the
// heap.
func (p *expParts) decodeGroups(escapes []byte, f *float) {
	switch {
	case f.exponent == 5:
		decodeExp16(unsafe.Pointer(p), begin(escapes))
	case f.low == 1:
		decodeExpB16(unsafe.Pointer(p), begin(escapes))
	default:
		decodeExp32(unsafe.Pointer(p), begin(escapes))
	}
}

// skip moves the parts behind groups of words; there are more groups.
func (p *expParts) skip(groups int, f *float, v *view) {
	p.planes = unsafe.Add(p.planes, groups*(p.bits+f.rest)*planeBytes)
	p.bytes = unsafe.Add(p.bytes, groups*groupWords)
	if p.halves != nil {
		p.halves = unsafe.Add(p.halves, 2*groups*groupWords)
	}
	p.plain = unsafe.Add(p.plain, groups*groupWords*v.size)
}

// patch replaces the exponents of marked words by the escapes, which are exactly as many.
func (v *view) patch(escapes []byte, marks []uint32, f *float) (ok bool) {
	for g, m := range marks {
		if escapes, ok = patch(v.group(v.plain, g), escapes, m, v.size, f); !ok {
			return false
		}
	}
	return len(escapes) == 0
}
