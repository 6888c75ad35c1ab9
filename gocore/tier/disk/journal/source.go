package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"velocpy/gocore/base/vfs"
)

// source reads a file through a window. Ranges that the medium refuses to read count as zeros, and are recorded.
type source struct {
	file   vfs.File
	size   int64
	window []byte // the last bytes read
	from   int64  // offset of the window in the file

	failed []gap // unreadable ranges
	why    error // the first error of these
	probes int   // failed reads so far
}

// gap is a range of a file.
type gap struct{ from, end int64 }

const (
	readAhead  = 1 << 20
	leastRead  = 4 << 10 // alignment of reads
	mediumUnit = 512     // the smallest unit that a medium refuses

	// mostProbes bounds the failing reads. Then a failing range is given up whole: a failing disk takes seconds for each read.
	mostProbes = 1000
)

// bytes returns n bytes from an offset, or fewer at the end of the file; they are valid until the next call. On a miss it fills the window with at least
// ahead bytes from the offset.
func (s *source) bytes(off int64, n, ahead int) ([]byte, error) {
	end := min(off+int64(n), s.size)
	if off >= end {
		return nil, nil
	}
	if off < s.from || end > s.from+int64(len(s.window)) {
		if err := s.fill(off, max(end, min(off+int64(ahead), s.size))); err != nil {
			return nil, err
		}
	}
	return s.window[off-s.from : end-s.from], nil
}

// rest returns the bytes in the window from an offset on.
func (s *source) rest(off int64) []byte {
	if off < s.from || off >= s.from+int64(len(s.window)) {
		return nil
	}
	return s.window[off-s.from:]
}

func (s *source) fill(from, end int64) error {
	from = from / leastRead * leastRead
	if n := int(end - from); n > cap(s.window) {
		s.window = make([]byte, n)
	} else {
		s.window = s.window[:n]
	}
	s.from = from
	err := s.read(s.window, from, readAhead)
	if err != nil {
		s.window = s.window[:0]
	}
	return err
}

// read fills p. It splits a failing range into smaller and smaller parts, down to the medium's unit.
func (s *source) read(p []byte, off int64, unit int) error {
	end := off + int64(len(p))
	if slices.ContainsFunc(s.failed, func(g gap) bool { return g.from <= off && end <= g.end }) {
		clear(p)
		return nil
	}
	n, err := s.file.ReadAt(p, off)
	switch {
	case errors.Is(err, io.EOF): // the file was truncated meanwhile
		clear(p[n:])
		return nil
	//mutation:unreadable-ends-reading
	case !vfs.Unreadable(err):
		return err
	}
	s.probes++
	//mutation:unreadable-costs-neighbours
	if unit == mediumUnit || s.probes >= mostProbes {
		clear(p)
		s.fail(gap{off, end}, err)
		return nil
	}
	switch unit {
	case readAhead:
		unit = 64 << 10
	case 64 << 10:
		unit = leastRead
	default:
		unit = mediumUnit
	}
	for len(p) > 0 {
		part := p[:min(len(p), unit-int(off%int64(unit)))]
		if err := s.read(part, off, unit); err != nil {
			return err
		}
		p, off = p[len(part):], off+int64(len(part))
	}
	return nil
}

func (s *source) fail(g gap, err error) {
	if s.why == nil {
		s.why = err
	}
	if n := len(s.failed); n > 0 && s.failed[n-1].end == g.from {
		s.failed[n-1].end = g.end
		return
	}
	s.failed = append(s.failed, g)
}

// failure returns why a part of a range could not be read; nil: all was read.
func (s *source) failure(from, end int64) error {
	for _, g := range s.failed {
		if g.from < end && from < g.end {
			return fmt.Errorf("bytes %d to %d cannot be read: %w", g.from, g.end, s.why)
		}
	}
	return nil
}
