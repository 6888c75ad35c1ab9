package segment

import (
	"fmt"
	"io"

	"velocpy/gocore/base/quantity"
)

// Holds returns an error unless the files have every byte of a range: ErrUnwritten for a missing file, io.ErrUnexpectedEOF for one that is too short. So a
// caller maps no memory for ranges that only a damaged catalog claims.
func (s *Space) Holds(off, n int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if capacity := s.Capacity(); off < 0 || n < 0 || off > capacity || n > capacity-off {
		return fmt.Errorf("%d bytes at %d of %d: %w", n, off, capacity, ErrRange)
	}
	for end := off + n; off < end; {
		g := s.segment(off)
		next := min(end, g.start+s.opt.SegmentBytes)
		file, err := g.open(s, read, off-g.start, next-off, 0)
		if err != nil {
			return err
		}
		size, err := file.Size()
		g.release(read)
		if err == nil && g.start+size < next {
			err = fmt.Errorf("segment file %d in %s has %s, not %s: %w", g.number, s.opt.Dir, quantity.Exact(size), quantity.Exact(next-g.start), io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
		off = next
	}
	return nil
}
