package segment

import (
	"errors"
	"fmt"
	"io"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"

	"golang.org/x/sys/unix"
)

// Behind the head of a named file there may be an index: an area for whoever says there what lies in the file. It takes no room on the disk where nothing was
// written. It has two halves, each of which is written from its beginning on, in pieces of IndexPiece that follow each other.

// IndexPiece is what half an index grows by: room ahead, so that the next writes take the place of other bytes, which costs a sync less.
const IndexPiece = 16 << 10

// indexUse is what a segment knows of the room that its file's index takes. The segment's lock guards it.
type indexUse struct {
	ends  [2]int64 // of what was written in the halves
	known bool     // else the index may take all of its area
}

// held is how many bytes of the disk an index may take.
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

func (s *Space) index() front { return front{"index", HeadBytes, s.opt.Index} }

// half tells in which half of an area an offset lies, and where there.
func half(area, off int64) (number int, at int64) {
	if off >= area/2 {
		return 1, off - area/2
	}
	return 0, off
}

// ReadIndex fills p with the bytes at off in the index of a segment's file. What was never written is zero. It returns ErrUnwritten where there is no file.
func (s *Space) ReadIndex(number, off int64, p []byte) error {
	return s.withFront(s.index(), number, off, int64(len(p)), read, func(_ *segment, file vfs.File, buf []byte) error {
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

// WriteIndex stores p, whole blocks, at off in the index of a segment's file, which is made if there is none. What is written behind the end of a half begins
// there and has whole pieces of IndexPiece, but for the last of a half. It fails with ENOSPC rather than take what is to be left of the disk. The next Sync of the segment brings it down.
func (s *Space) WriteIndex(number, off int64, p []byte) error {
	return s.withFront(s.index(), number, off, int64(len(p)), write, func(g *segment, file vfs.File, buf []byte) error {
		if err := s.extendIndex(g, file, off, int64(len(p))); err != nil {
			return err
		}
		return writeThrough(file, buf, p, HeadBytes+off)
	})
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
	s.answers[write].Inc() // a writer reads it to go on
	if err != nil {
		return fmt.Errorf("%s %d bytes at %d of the %s of %s in %s: %w", dir, n, off, area.name, FileName(uint64(number)+1), s.opt.Dir, err)
	}
	return nil
}

// openFront returns the file with its head, for a use that ends with release.
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

// extendIndex gives the index of a file its room, if the disk has so much.
func (s *Space) extendIndex(g *segment, file vfs.File, off, n int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	number, at := half(s.opt.Index, off)
	more := at + n - g.index.ends[number]
	if more <= 0 {
		return nil
	}
	if err := s.allocateFront(file, HeadBytes+off+n-more, more); err != nil {
		return err
	}
	g.index.ends[number] = at + n
	return nil
}

// allocateFront gives a range of a whole file its room, if the disk has so much and what is to be left of it. The segment's lock is held.
func (s *Space) allocateFront(file vfs.File, off, n int64) error {
	s.growth.Lock()
	defer s.growth.Unlock()
	free, err := s.opt.FS.Free(s.opt.Dir)
	if err != nil {
		return err
	}
	if leave := s.leave.Load(); free-leave < n {
		return fmt.Errorf("%s were free, and %s are left to the catalog: %w", quantity.Exact(free), quantity.Exact(leave), unix.ENOSPC)
	}
	if err := file.Allocate(off, n); err != nil {
		return fmt.Errorf("allocate %s: %w", quantity.Exact(n), err)
	}
	return nil
}

// BlankIndex tells whether nothing was ever written to the index of a segment's file: this space has made it, or is to make it.
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

// IndexEnds says where what was written in the halves of an index ends, in whole pieces: who has read it knows.
func (s *Space) IndexEnds(number int64, ends [2]int64) {
	g := s.lookUp(number)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.index = indexUse{ends: ends, known: true}
}

// Discards is how often a segment's file has been discarded: what was known of the index of the one before says nothing of that of the next.
func (s *Space) Discards(number int64) int64 {
	g := s.lookUp(number)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.discards
}
