//go:build !race

package codec

import "unsafe"

// expParts are the parts of a body of mode Exp, and the words. The assembly knows the order.
type expParts struct {
	planes, bytes, halves, words unsafe.Pointer
	escapes                      unsafe.Pointer
	plain                        unsafe.Pointer
	groups, bits                 int
	base, escape                 uint64 // writing: exponents; reading: the base in its place in the top 16 bits, or as it is with AVX2
	left                         int    // reading: escapes that were not read; below 0 if they were too few
	least                        int    // reading with AVX2: how many escapes must be left for another group
}

//go:noescape
func writeExp16(parts unsafe.Pointer)

//go:noescape
func writeExpB16(parts unsafe.Pointer)

//go:noescape
func writeExp32(parts unsafe.Pointer)

//go:noescape
func writeExp64(parts unsafe.Pointer)

//go:noescape
func readExp16(parts unsafe.Pointer)

//go:noescape
func readExpB16(parts unsafe.Pointer)

//go:noescape
func readExp32(parts unsafe.Pointer)

//go:noescape
func readExp64(parts unsafe.Pointer)

//go:noescape
func exponents16(dst, x unsafe.Pointer, units int, shift, mask uint64) (most int)

//go:noescape
func exponents32(dst, x unsafe.Pointer, units int) (most int)

//go:noescape
func count26(counts, exponents unsafe.Pointer, units int, registers unsafe.Pointer, first, mask uint64)

// counted is the number of neighbouring exponents that count26 counts, beside 0 and that of infinities. More would need more registers.
const counted = 24

// registers has, for each byte, a register that repeats it.
var registers = newRegisters()

func newRegisters() (table [256][vectorBytes]byte) {
	for i := range table {
		for j := range table[i] {
			table[i][j] = byte(i)
		}
	}
	return table
}

// takeByVectors does what take does. It returns false if it cannot, or if the exponents are too many: it only counts those up to the largest finite one.
func (h *histogram) takeByVectors(f *float, v *view) bool {
	if !vectors || v.size == 8 || v.words == 0 || v.words%(8*vectorBytes) != 0 {
		return false
	}
	units, most, mask := v.words/vectorBytes, 0, int(f.mask())
	if v.size == 2 {
		most = exponents16(begin(h.bytes[:]), begin(v.plain), units, uint64(f.shift), uint64(mask))
	} else {
		most = exponents32(begin(h.bytes[:]), begin(v.plain), units)
	}
	first := max(most-counted+1, 1)
	var counts [counted + 2]uint32
	count26(unsafe.Pointer(&counts), begin(h.bytes[:]), units, unsafe.Pointer(&registers), uint64(first), uint64(mask))
	return h.takeCounts(first, most, counts[:counted], counts[counted], counts[counted+1], mask, v.words)
}

// takeCounts takes the numbers of exponents from first on, of 0 and of the mask; false if they are not those of all words. The largest of the others is most.
func (h *histogram) takeCounts(first, most int, counts []uint32, zeros, infinities uint32, mask, words int) bool {
	all := zeros + infinities
	for _, n := range counts {
		all += n
	}
	if int(all) != words {
		return false
	}
	clear(h.count[:mask+1])
	h.count[0], h.count[mask] = zeros, infinities
	copy(h.count[first:mask], counts)
	h.min, h.max = 0, most
	if zeros == 0 {
		for h.min = first; h.count[h.min] == 0; h.min++ { // ends: some word has an exponent
		}
	}
	if infinities != 0 {
		h.max = mask
	}
	return true
}

// divideExp returns the parts of a body behind its head, without those at the end, and those.
func divideExp(body []byte, c *codes, f *float, v *view) (parts expParts, escapes []byte) {
	planes, low, escapes := f.parts(body, c.bits, groups(v.words))
	parts = expParts{planes: begin(planes), plain: begin(v.plain), groups: groups(v.words), bits: c.bits}
	switch all := len(low) / f.low; f.low {
	case 1:
		parts.bytes = begin(low)
	case 3:
		parts.halves, parts.bytes = begin(low), begin(low[2*all:])
	default:
		parts.words, parts.halves = begin(low), begin(low[4*all:])
	}
	return parts, escapes
}

// writeExpByVectors does what writeExp does behind the head of the body. It returns false, and does nothing, if it cannot.
func writeExpByVectors(body []byte, c *codes, f *float, v *view) bool {
	if !vectors || v.words == 0 || v.words%groupWords != 0 {
		return false
	}
	p, escapes := divideExp(body, c, f, v)
	p.escapes, p.base, p.escape = begin(escapes), uint64(c.base), 1<<c.bits-1
	switch {
	case f.exponent == 5:
		writeExp16(unsafe.Pointer(&p))
	case f.exponent == 11:
		writeExp64(unsafe.Pointer(&p))
	case f.low == 1:
		writeExpB16(unsafe.Pointer(&p))
	default:
		writeExp32(unsafe.Pointer(&p))
	}
	return true
}

// readExpByVectors does what readExp does behind the head of the body. done is false, and nothing was done, if it cannot.
func readExpByVectors(body []byte, c *codes, f *float, v *view) (done, ok bool) {
	if !vectors {
		return readExpBy256(body, c, f, v)
	}
	if v.words == 0 || v.words%groupWords != 0 {
		return false, false
	}
	p, escapes := divideExp(body, c, f, v)
	if len(escapes)%f.escape != 0 || !f.exponents(escapes) {
		return true, false
	}
	p.escapes, p.base, p.left = begin(escapes), uint64(c.base)<<f.shift, len(escapes)/f.escape
	switch {
	case f.exponent == 5:
		readExp16(unsafe.Pointer(&p))
	case f.exponent == 11:
		readExp64(unsafe.Pointer(&p))
	case f.low == 1:
		readExpB16(unsafe.Pointer(&p))
	default:
		readExp32(unsafe.Pointer(&p))
	}
	return true, p.left == 0
}

// exponents tells whether all escapes are exponents.
func (f *float) exponents(escapes []byte) bool {
	if f.exponent == 8 {
		return true
	}
	all, high := byte(0), byte(0)
	for i := 0; i < len(escapes); i += f.escape {
		all |= escapes[i]
		high |= escapes[i+f.escape-1]
	}
	if f.escape == 1 {
		return all <= byte(f.mask())
	}
	return high <= byte(f.mask()>>8)
}
