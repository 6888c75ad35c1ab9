package cuda

import (
	"slices"
	"unsafe"

	"velocpy/gocore/checksum"
	"velocpy/gocore/device"
)

// sums are the hashes of leaves, which kernels write into pinned words; the host makes the checksums of them. Neither Take nor
// Discard may come before the kernels are done, as the words then belong to others.
type sums struct {
	d      *Device
	leaves []uint64
	counts []int // leaves by piece
}

// sumsFor finds room for the leaves of all pieces.
func (d *Device) sumsFor(pieces []device.Piece) (*sums, error) {
	s := &sums{d: d, counts: make([]int, len(pieces))}
	total := 0
	for i := range pieces {
		s.counts[i] = checksum.Leaves(pieces[i].Bytes)
		total += s.counts[i]
	}
	var err error
	s.leaves, err = d.words.take(max(total, 1))
	return s, err
}

func (s *sums) address() device.Address { return uintptr(unsafe.Pointer(unsafe.SliceData(s.leaves))) }

// Take returns nil when the words were given back before.
func (s *sums) Take() []uint64 {
	if s.leaves == nil {
		return nil
	}
	all, leaves := make([]uint64, 0, len(s.counts)), s.leaves
	for _, n := range s.counts {
		all = append(all, checksum.Combine(leaves[:n]))
		leaves = leaves[n:]
	}
	s.Discard()
	return slices.Clip(all)
}

func (s *sums) Discard() {
	if s.leaves != nil {
		s.d.words.give(s.leaves)
		s.leaves = nil
	}
}
