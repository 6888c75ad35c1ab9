//go:build !race

package checksum

import "unsafe"

func (p *Parts) add(leaf, part []byte, next uintptr) {
	dst := leaf[p.added:]
	if best == nil || len(leaf) < fusedBytes {
		copy(dst, part)
		return
	}
	if p.added == 0 {
		p.sums = begun
	}
	blocks := min(len(part)/blockBytes, wholeBlocks(len(leaf))-p.added/blockBytes)
	ahead := plain
	if misaligned(dst) == 0 {
		ahead = 0
	}
	best.blocks(&p.sums, unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(part)), blocks, &secret[0], ahead, next)
	copy(dst[blocks*blockBytes:], part[blocks*blockBytes:])
}

func (p *Parts) sum(leaf []byte) uint64 {
	if best == nil || len(leaf) < fusedBytes {
		return Leaf(leaf)
	}
	fence()
	return best.finish(&p.sums, leaf, wholeBlocks(len(leaf)))
}
