package codec

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Differences. From each word its neighbour before it is subtracted, modulo the word size; the first word is stored as the base. Each difference d is
// stored zig-zag, as 2d or -2d-1. A group has as many planes as its largest value has bits. Mode Step subtracts the reference's word from each word
// before that.
//
// The body is: the base in at least 4 bytes; the widths of the groups, sparse and padded to a multiple of 4; the planes of each group.

// widths are the numbers of planes by group.
type widths struct {
	list   [ChunkBytes / groupWords]byte
	groups int
	planes int // their sum
}

func (w *widths) all() []byte { return w.list[:w.groups] }

// baseBytes is the length of the base in a body.
func baseBytes(size int) int { return max(4, size) }

// measureDiff fills in the widths and returns the length of the body.
func measureDiff(w *widths, b *bitmaps, v *view) int {
	switch v.size {
	case 1:
		measureWidths[uint8](w, v)
	case 2:
		measureWidths[uint16](w, v)
	case 4:
		measureWidths[uint32](w, v)
	default:
		measureWidths[uint64](w, v)
	}
	return baseBytes(v.size) + roundUp(b.measure(w.all()), 4) + w.planes*planeBytes
}

func measureWidths[T word](w *widths, v *view) {
	var z [groupWords]T
	last := base[T](v)
	w.groups, w.planes = groups(v.words), 0
	for g := range w.groups {
		var all T
		all, last = zigzags(&z, v, g, last)
		n := bits.Len64(uint64(all))
		w.list[g] = byte(n)
		w.planes += n
	}
}

// base is the first word, less that of the reference.
func base[T word](v *view) T {
	x := T(wordAt(v.plain, v.size))
	if v.reference != nil {
		x -= T(wordAt(v.reference, v.size))
	}
	return x
}

// zigzags computes the values of a group, their OR, and the group's last word.
func zigzags[T word](z *[groupWords]T, v *view, g int, last T) (all, end T) {
	load(z, v.group(v.plain, g))
	if v.reference != nil {
		var y [groupWords]T
		load(&y, v.group(v.reference, g))
		for i := range z {
			z[i] -= y[i]
		}
	}
	n := v.valid(g)
	for i := n; i < groupWords; i++ {
		z[i] = z[n-1]
	}
	for i, x := range z {
		d := x - last
		last = x
		d = d<<1 ^ -(d >> (8*unsafe.Sizeof(d) - 1))
		z[i] = d
		all |= d
	}
	return all, last
}

// writeDiff writes the body; dst has the length that measureDiff returned, just before.
func writeDiff(dst []byte, w *widths, b *bitmaps, v *view) {
	switch v.size {
	case 1:
		writeDiffs[uint8](dst, w, b, v)
	case 2:
		writeDiffs[uint16](dst, w, b, v)
	case 4:
		writeDiffs[uint32](dst, w, b, v)
	default:
		writeDiffs[uint64](dst, w, b, v)
	}
}

func writeDiffs[T word](dst []byte, w *widths, b *bitmaps, v *view) {
	last := base[T](v)
	putBase(dst, uint64(last), v.size)
	dst = dst[baseBytes(v.size):]
	n := b.write(dst, w.all())
	padded := roundUp(n, 4)
	clear(dst[n:padded])
	dst = dst[padded:]
	var z [groupWords]T
	for g, width := range w.all() {
		_, last = zigzags(&z, v, g, last)
		n := int(width) * planeBytes
		putPlanes(dst[:n], &z, int(width))
		dst = dst[n:]
	}
}

func putBase(dst []byte, x uint64, size int) {
	if size == 8 {
		binary.LittleEndian.PutUint64(dst, x)
		return
	}
	binary.LittleEndian.PutUint32(dst, uint32(x))
}

// readDiff writes the words of a body to v.plain; false if the body is malformed.
func readDiff(v *view, w *widths, b *bitmaps, body []byte) bool {
	head := baseBytes(v.size)
	if len(body) < head {
		return false
	}
	first := uint64(binary.LittleEndian.Uint32(body))
	if v.size == 8 {
		first = binary.LittleEndian.Uint64(body)
	}
	planes, ok := w.read(b, body[head:], groups(v.words), 8*v.size)
	if !ok {
		return false
	}
	switch v.size {
	case 1:
		readBytes(v, w, planes, byte(first))
	case 2:
		readDiffs(v, w, planes, uint16(first))
	case 4:
		readDiffs(v, w, planes, uint32(first))
	default:
		readDiffs(v, w, planes, first)
	}
	return true
}

// read reads the widths and returns the planes behind them, which have exactly the length that the widths require.
func (w *widths) read(b *bitmaps, src []byte, groups, most int) (planes []byte, ok bool) {
	w.groups, w.planes = groups, 0
	rest, ok := b.read(w.all(), src)
	if !ok {
		return nil, false
	}
	for _, n := range w.all() {
		if int(n) > most {
			return nil, false
		}
		w.planes += int(n)
	}
	pad := -(len(src) - len(rest)) & 3
	if len(rest) != pad+w.planes*planeBytes {
		return nil, false
	}
	return rest[pad:], true
}

func readDiffs[T word](v *view, w *widths, planes []byte, last T) {
	var z, y [groupWords]T
	for g, width := range w.all() {
		n := int(width) * planeBytes
		if n == 0 {
			for i := range z {
				z[i] = last
			}
		} else {
			wordsOfPlanes(&z, planes[:n], int(width))
			planes = planes[n:]
			for i, d := range z {
				last += d>>1 ^ -(d & 1)
				z[i] = last
			}
		}
		if v.reference == nil {
			store(v.group(v.plain, g), &z)
			continue
		}
		load(&y, v.group(v.reference, g))
		for i := range y {
			y[i] += z[i]
		}
		store(v.group(v.plain, g), &y)
	}
}

// readBytes is readDiffs for words of one byte, 8 at a time.
func readBytes(v *view, w *widths, planes []byte, last byte) {
	for g, width := range w.all() {
		n := int(width) * planeBytes
		x := readNarrow(planes[:n])
		planes = planes[n:]
		dst, reference := v.group(v.plain, g), v.group(v.reference, g)
		for i, d := range x {
			sum := sumBytes(unzigzagBytes(d), last)
			last = byte(sum >> 56)
			if reference != nil {
				sum = addBytes(sum, binary.LittleEndian.Uint64(reference[8*i:]))
			}
			binary.LittleEndian.PutUint64(dst[8*i:], sum)
		}
	}
}

const (
	even8  = clear3             // bytes 0, 2, 4, 6
	even16 = 0x0001000100010001 // bit 0 of each 16
)

// unzigzagBytes returns the differences of 8 zig-zag values.
func unzigzagBytes(x uint64) uint64 { return x>>1&0x7f7f7f7f7f7f7f7f ^ x&ones8*0xff }

// sumBytes returns the running sums of 8 bytes, each modulo 256.
func sumBytes(x uint64, last byte) uint64 {
	even, odd := x&even8*even16, x>>8&even8*even16 // sums of up to four bytes fit 16 bits
	start := uint64(last) * even16
	low, high := even+odd<<16+start, even+odd+start
	return low&even8 | high&even8<<8
}

// addBytes adds 8 bytes, each modulo 256.
func addBytes(a, b uint64) uint64 {
	return (a&even8+b&even8)&even8 | (a>>8&even8+b>>8&even8)&even8<<8
}
