package durable

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/tier/disk/catalog"
)

// Stream compares the plain bytes of a checkpoint with its checksums while they pass, in their order. One goroutine uses it.
type Stream struct {
	row    *catalog.Row
	region int   // the next byte belongs to it, or lies before it
	at     int64 // offset in the slot of the next byte
	carry  []byte
	leaves []uint64 // hashes of the region's leaves so far
	first  int      // number of the region's first leaf in row.Leaves
	wrong  bool
}

// NewStream returns a Stream for a row; nil if its bytes are not plain, or have no checksums.
func NewStream(row *catalog.Row) *Stream {
	if row.Content != catalog.Raw || row.Sums == nil {
		return nil
	}
	s := &Stream{row: row}
	s.pass()
	return s
}

// Take takes the next bytes of the slot. What follows the last region counts for nothing.
func (s *Stream) Take(p []byte) {
	for len(p) > 0 && s.region < len(s.row.Layout.Spans) {
		span := s.row.Layout.Spans[s.region]
		n := int64(len(p))
		if s.at < span.Offset {
			n = min(n, span.Offset-s.at)
		} else {
			n = s.hash(p, s.at-span.Offset, span.Bytes)
		}
		s.at += n
		p = p[n:]
		s.pass()
	}
}

// hash takes bytes of a leaf, from an offset of the region on, and returns how many.
func (s *Stream) hash(p []byte, from, bytes int64) (n int64) {
	end := min((from/checksum.LeafBytes+1)*checksum.LeafBytes, bytes)
	n = min(int64(len(p)), end-from)
	leaf := p[:n]
	if len(s.carry) > 0 || from+n < end {
		s.carry = append(s.carry, leaf...)
		leaf = s.carry
	}
	if from+n == end {
		s.leaves = append(s.leaves, checksum.Leaf(leaf))
		s.carry = s.carry[:0]
	}
	return n
}

// pass compares the regions that have been read to their ends.
func (s *Stream) pass() {
	for ; s.region < len(s.row.Layout.Spans) && s.at >= s.row.Layout.Spans[s.region].End(); s.region++ {
		s.wrong = s.wrong || checksum.Combine(s.leaves) != s.row.Sums[s.region]
		if len(s.leaves) > 1 {
			for i := range s.leaves {
				s.wrong = s.wrong || s.row.Leaves != nil && s.row.Leaves[s.first+i] != s.leaves[i]
			}
			s.first += len(s.leaves)
		}
		s.leaves = s.leaves[:0]
	}
}

// Sound tells whether all bytes have been taken, and are those of the checksums.
func (s *Stream) Sound() bool { return !s.wrong && s.region == len(s.row.Layout.Spans) }
