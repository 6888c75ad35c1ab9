package cuda

import (
	"errors"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
)

// sums are the hashes of leaves, which kernels write and of which the host makes the checksums. Neither Take nor Discard may come before
// the kernels, and the copy of a Fetch, are done, as the words then belong to others.
type sums struct {
	d      *Device
	counts []int // leaves by piece
	there  block // on the device; none: kernels write to the host
	here   block // pinned
}

// sumsFor finds room for the leaves of all pieces. Those that nobody waits for lie on the device, unless that is full: a kernel that has written
// to the host's memory takes 0.6 µs longer to end on an H200.
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

// address is where kernels write.
func (s *sums) address() device.Address {
	if s.there.none() {
		return s.here.at
	}
	return s.there.at
}

// Fetch may be called again after one that failed.
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

// Take returns nil when nothing was fetched, or when the words were given back before.
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
