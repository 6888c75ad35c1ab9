package segment

import (
	"errors"
	"fmt"
	"io"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"
)

// After the head, a named file may have an index: an area in which the caller lists the contents of the file. Unwritten parts take no room on the disk. It
// has two halves. Each half is written from its beginning on, in contiguous pieces of IndexPiece.

// IndexPiece is the step in which half an index grows. The next writes overwrite room that was allocated ahead, which saves a sync.
const IndexPiece = 16 << 10

// indexUse is the room that the index of a segment's file takes. The segment's mu guards it.
type indexUse struct {
	ends  [2]int64 // end of the written part of each half
	known bool     // false: the index may take its whole area
}

// held is the number of bytes of the disk that an index may take.
func (u *indexUse) held(area int64) int64 {
	if !u.known {
		return area
	}
	return u.ends[0] + u.ends[1]
}

// front is an area between the head of a named file and its segment.
type front struct {
	name  string
	from  int64 // in the file
	bytes int64
}

func (o *Options) index() front { return front{"index", HeadBytes, o.Index} }

// half returns the half of an area that contains an offset, and the offset in that half.
func half(area, off int64) (number int, at int64) {
	if off >= area/2 {
		return 1, off - area/2
	}
	return 0, off
}

// ReadIndex fills p with the bytes at off in the index of a segment's file. Bytes that were never written are zero. It returns ErrUnwritten if the file is
// missing.
func (s *Space) ReadIndex(number, off int64, p []byte) error {
	return s.withFront(s.opt.index(), number, off, int64(len(p)), read, func(_ *segment, file vfs.File, buf []byte) error {
		at := HeadBytes + off
		for len(p) > 0 {
			part := buf[:min(len(p), len(buf))]
			n, err := file.ReadAt(part, at)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			clear(part[n:])
			at += int64(copy(p, part))
			p = p[len(part):]
		}
		return nil
	})
}

// WriteIndex stores p, whole blocks, at off in the index of a segment's file, which it creates if needed. A write beyond the end of a half must begin at
// that end, and must be a multiple of IndexPiece, except at the end of the half. It fails with ENOSPC before it takes reserved room of the disk. The next
// Sync of the segment makes it durable.
func (s *Space) WriteIndex(number, off int64, p []byte) error {
	return s.withFront(s.opt.index(), number, off, int64(len(p)), write, func(g *segment, file vfs.File, buf []byte) error {
		if err := s.extendIndex(g, file, off, int64(len(p))); err != nil {
			return err
		}
		return writeThrough(file, buf, p, HeadBytes+off)
	})
}

// Create creates the file of a segment with its head, unless the file is there. The next Sync of the segment makes both durable. Files without heads are not
// created.
func (s *Space) Create(number int64) error {
	if s.opt.Store == nil {
		return nil
	}
	return s.withFront(s.opt.index(), number, 0, 0, write, func(*segment, vfs.File, []byte) error { return nil })
}

// withFront calls f with the whole file of a segment, and a buffer, for n bytes at off in an area of it.
func (s *Space) withFront(area front, number, off, n int64, dir direction, f func(g *segment, file vfs.File, buf []byte) error) (err error) {
	defer safego.Guard("access to the "+area.name+" of a data file", &err)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if off < 0 || n < 0 || off > area.bytes-n || (off|n)%Block != 0 {
		return fmt.Errorf("%d bytes at %d of an area of %d, the %s: %w", n, off, area.bytes, area.name, ErrRange)
	}
	g := s.lookUp(number)
	file, err := g.openFront(s, dir)
	if err == nil {
		buf := s.bounce.take()
		err = f(g, file, buf)
		s.bounce.give(buf)
		g.release(dir)
	}
	s.answers[write].Inc() // reads count as writes here, as the writer does them
	if err != nil {
		return fmt.Errorf("%s %d bytes at %d of the %s of %s in %s: %w", dir, n, off, area.name, FileName(uint64(number)+1), s.opt.Dir, err)
	}
	return nil
}

// openFront returns the file including its head. The caller must release it.
func (g *segment) openFront(s *Space, dir direction) (vfs.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.ready(s, dir); err != nil {
		return nil, err
	}
	if dir == write {
		if err := g.writeHead(s); err != nil {
			return nil, err
		}
	}
	return g.hold(s, dir).(headed).File, nil
}

// extendIndex allocates room for the index of a file, if the disk has enough.
func (s *Space) extendIndex(g *segment, file vfs.File, off, n int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	number, at := half(s.opt.Index, off)
	more := at + n - g.index.ends[number]
	if more <= 0 {
		return nil
	}
	if err := s.growth.allocate(file, HeadBytes+off+n-more, more); err != nil {
		return err
	}
	g.index.ends[number] = at + n
	return nil
}

// BlankIndex tells whether the index of a segment's file was never written: the file is missing, or this space has created it.
func (s *Space) BlankIndex(number int64) (bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false, ErrClosed
	}
	g := s.lookUp(number)
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.ready(s, read)
	if errors.Is(err, ErrUnwritten) {
		return true, nil
	}
	return g.index == indexUse{known: true}, err
}
