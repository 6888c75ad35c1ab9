package codec

import "encoding/binary"

// Widths of blocks. They change little from one block to the next: their differences are stored zig-zag, in groups of 32, of which each has as many planes
// as its largest value has bits.
//
// The form is: a byte for each group with the number of its planes, padded to a multiple of 4; the planes of each group.

// widths are the numbers of planes by block.
type widths struct {
	list   [ChunkBytes / 32]byte // behind the last block it may have anything
	blocks int
	planes int // their sum
}

func (w *widths) all() []byte { return w.list[:w.blocks] }

// add notes the width of the next block.
func (w *widths) add(n int) {
	w.list[w.blocks] = byte(n)
	w.blocks++
	w.planes += n
}

// count takes over so many widths that are in the list.
func (w *widths) count(blocks int) {
	w.blocks, w.planes = blocks, 0
	list := w.all()
	sum := uint64(0) // of bytes in lanes of 16 bits, which have space for 64 * 64 * 2
	for ; len(list) >= 8; list = list[8:] {
		x := binary.LittleEndian.Uint64(list)
		sum += x&even8 + x>>8&even8
	}
	w.planes = int(sum * even16 >> 48)
	for _, n := range list {
		w.planes += int(n)
	}
}

// exceed tells whether a width is above most, which is below 128.
func (w *widths) exceed(most int) bool {
	list, over := w.all(), uint64(0)
	for ; len(list) >= 8; list = list[8:] {
		x := binary.LittleEndian.Uint64(list)
		over |= x | (x&^(0x80*ones8) + uint64(127-most)*ones8)
	}
	for _, n := range list {
		over |= uint64(n) | (uint64(n&0x7f) + uint64(127-most))
	}
	return over&(0x80*ones8) != 0
}

// replaceLast replaces the width of the last block.
func (w *widths) replaceLast(n int) {
	last := &w.list[w.blocks-1]
	w.planes += n - int(*last)
	*last = byte(n)
}

// reset removes all blocks.
func (w *widths) reset() { w.blocks, w.planes = 0, 0 }

// zigzags computes the zig-zag values of the differences of group g in four registers, and the number of their planes.
func (w *widths) zigzags(z *[4]uint64, g int) (planes int) {
	group := (*[groupWords]byte)(w.list[g*groupWords:])
	last := uint64(0)
	if g > 0 {
		last = uint64(w.list[g*groupWords-1]) << 56
	}
	all := uint64(0)
	for i := range z {
		x := binary.LittleEndian.Uint64(group[8*i:])
		z[i] = zigzags[uint8](subtract[uint8](x, before[uint8](x, last))) & keep[clip(w.blocks-g*groupWords-8*i, 8)][0]
		last = x
		all |= z[i]
	}
	return widthOf[uint8](all)
}

// clip is n, not below 0 and not above most.
func clip(n, most int) int { return min(max(n, 0), most) }

// measure returns the length of the form.
func (w *widths) measure() int {
	var z [4]uint64
	n := roundUp(groups(w.blocks), 4)
	for g := range groups(w.blocks) {
		n += planeBytes * w.zigzags(&z, g)
	}
	return n
}

// write writes the form and returns its length.
func (w *widths) write(dst []byte) int {
	var z [4]uint64
	n := roundUp(groups(w.blocks), 4)
	clear(dst[:n])
	for g := range groups(w.blocks) {
		planes := w.zigzags(&z, g)
		dst[g] = byte(planes)
		putNarrow(dst[n:n+planeBytes*planes], z[0], z[1], z[2], z[3])
		n += planeBytes * planes
	}
	return n
}

// read reads the form for so many blocks, none wider than most, and returns what is behind it.
func (w *widths) read(src []byte, blocks, most int) (rest []byte, ok bool) {
	w.blocks, w.planes = blocks, 0
	n := groups(blocks)
	if len(src) < roundUp(n, 4) {
		return nil, false
	}
	heads, rest := src[:n], src[roundUp(n, 4):]
	last := byte(0)
	for g, planes := range heads {
		if planes > 8 || len(rest) < int(planes)*planeBytes {
			return nil, false
		}
		last = sumGroup((*[groupWords]byte)(w.list[g*groupWords:]), rest, int(planes), last)
		rest = rest[int(planes)*planeBytes:]
	}
	if w.exceed(most) {
		return nil, false
	}
	w.count(blocks)
	return rest, true
}

// sumGroup writes the running sums of a group, from the differences in up to 8 planes, and returns the last one.
func sumGroup(dst *[groupWords]byte, src []byte, planes int, last byte) byte {
	a, b, c, d := readNarrow(src, planes)
	for i, z := range [...]uint64{a, b, c, d} {
		sums := sumBytes(unzigzagBytes(z), last)
		last = byte(sums >> 56)
		binary.LittleEndian.PutUint64(dst[8*i:], sums)
	}
	return last
}
