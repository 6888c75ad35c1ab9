package codec

import "encoding/binary"

// Widths of blocks. They change little from one block to the next: their differences are stored zig-zag, in groups of 32, of which each has as many planes
// as its largest value has bits.
//
// The form is: a byte for each group with the number of its planes, padded to a multiple of 4; the planes of each group.

// widths are the numbers of planes by block.
type widths struct {
	list   [mostBlocks]byte // behind the last block it may have anything
	blocks int
	planes int // their sum

	steps [mostBlocks]byte              // zig-zag differences; 0 behind the last block of a group
	heads [mostBlocks / groupWords]byte // planes of the steps of each group
}

// mostBlocks is the largest number of blocks of a chunk.
const mostBlocks = ChunkBytes / 32

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

// differ computes the steps and their heads.
func (w *widths) differ() {
	if stepsByVectors(w) {
		return
	}
	last := uint64(0)
	for g := range groups(w.blocks) {
		group, steps := (*[groupWords]byte)(w.list[g*groupWords:]), (*[groupWords]byte)(w.steps[g*groupWords:])
		all := uint64(0)
		for i := 0; i < groupWords; i += 8 {
			x := binary.LittleEndian.Uint64(group[i:])
			z := zigzags[uint8](subtract[uint8](x, before[uint8](x, last))) & keep[clip(w.blocks-g*groupWords-i, 8)][0]
			binary.LittleEndian.PutUint64(steps[i:], z)
			last = x
			all |= z
		}
		w.heads[g] = byte(widthOf[uint8](all))
	}
}

// clip is n, not below 0 and not above most.
func clip(n, most int) int { return min(max(n, 0), most) }

// measure returns the length of the form.
func (w *widths) measure() int {
	w.differ()
	n := roundUp(groups(w.blocks), 4)
	for _, planes := range w.heads[:groups(w.blocks)] {
		n += int(planes) * planeBytes
	}
	return n
}

// write writes the form, which was measured and has the length of dst.
func (w *widths) write(dst []byte) {
	heads := w.heads[:groups(w.blocks)]
	n := roundUp(len(heads), 4)
	clear(dst[:n])
	copy(dst, heads)
	done, behind := planesByVectors(dst[n:], w.steps[:], heads, 1)
	writeBlocks8(dst[len(dst)-behind:], w.steps[done*groupWords:], heads[done:])
}

// read reads the form for so many blocks, none wider than most, and returns what is behind it.
func (w *widths) read(src []byte, blocks, most int) (rest []byte, ok bool) {
	w.blocks, w.planes = blocks, 0
	n := groups(blocks)
	if len(src) < roundUp(n, 4) {
		return nil, false
	}
	heads, rest := src[:n], src[roundUp(n, 4):]
	planes := 0
	for _, n := range heads {
		if n > 8 {
			return nil, false
		}
		planes += int(n) * planeBytes
	}
	if len(rest) < planes {
		return nil, false
	}
	form, rest := rest[:planes], rest[planes:]
	if !wordsByVectors(w.list[:blocks], form, heads, nil, 0, 1, 1) {
		w.sum(form, heads)
	}
	if w.exceed(most) {
		return nil, false
	}
	w.count(blocks)
	return rest, true
}

// sum computes the widths from the planes of their steps.
func (w *widths) sum(form, heads []byte) {
	last := byte(0)
	for g, planes := range heads {
		last = sumGroup((*[groupWords]byte)(w.list[g*groupWords:]), form, int(planes), last)
		form = form[int(planes)*planeBytes:]
	}
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
