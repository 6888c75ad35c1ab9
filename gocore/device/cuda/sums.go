package cuda

import (
	"errors"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
)

// sums are the hashes of leaves. Kernels write them, and the host combines them to the checksums. Take and Discard may be called only after the
// kernels, and the copy of a Fetch, are done: the words are reused afterwards.
type sums struct {
	d      *Device
	counts []int // leaves by piece
	there  block // on the device; none: kernels write to the host
	here   block // pinned host memory
}

// sumsFor allocates words for the leaves of all pieces. Sums that no caller waits for are on the device, unless that is full. A kernel that has
// written to host memory takes 0.6 µs longer to end on an H200.
func (d *Device) sumsFor(pieces []device.Piece, waited bool) (*sums, error) {
	s := &sums{d: d, counts: make([]int, len(pieces))}
	for i := range pieces {
		s.counts[i] = checksum.Leaves(pieces[i].Bytes)
	}
	var err error
	if !waited {
		if s.there, err = d.mapped.take(s.leaves()); !errors.Is(err, device.ErrMemory) {
			return s, err
		}
	}
	s.here, err = d.pinned.take(s.leaves())
	return s, err
}

func (s *sums) leaves() int {
	total := 0
	for _, n := range s.counts {
		total += n
	}
	return max(total, 1)
}

// address is where kernels write the hashes.
func (s *sums) address() device.Address {
	if s.there.none() {
		return s.here.at
	}
	return s.there.at
}

// Fetch may be repeated after a failure.
func (s *sums) Fetch(l device.Lane) error {
	if s.there.none() {
		return nil
	}
	if s.here.none() {
		var err error
		if s.here, err = s.d.pinned.take(s.leaves()); err != nil {
			return err
		}
	}
	return l.Copy(s.here.at, s.there.at, int64(s.leaves())*8)
}

// Renew implements device.Sums. The memory is never used again.
func (s *sums) Renew() {
	if !s.there.none() {
		s.here = block{}
	}
}

// Leaves implements device.Sums.
func (s *sums) Leaves() (all []uint64) {
	if s.here.none() {
		return nil
	}
	leaves := s.here.onHost()
	for _, n := range s.counts {
		if n > 1 {
			all = append(all, leaves[:n]...)
		}
		leaves = leaves[n:]
	}
	return all
}

// Take returns nil if no sums were fetched, or if the words were freed before.
func (s *sums) Take() []uint64 {
	if s.here.none() {
		return nil
	}
	all, leaves := make([]uint64, 0, len(s.counts)), s.here.onHost()
	for _, n := range s.counts {
		all = append(all, checksum.Combine(leaves[:n]))
		leaves = leaves[n:]
	}
	s.Discard()
	return slices.Clip(all)
}

func (s *sums) Discard() {
	s.d.mapped.give(s.there)
	s.d.pinned.give(s.here)
	s.there, s.here = block{}, block{}
}
