package segment

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// growBytes is what a file grows by where the disk does not have room for all of it.
const growBytes = 16 << 20

// Leave says how much is to be left of a disk that does not have room for whole files: to a catalog, in which it has to be said what is dropped before
// its room can be used again.
func (s *Space) Leave(bytes int64) { s.leave.Store(bytes) }

// reserve gives the file all its room, so that later writes cannot run out of space; or, where the disk does not have so much, room for n bytes at off
// and, if possible, some more. The segment's lock is held.
func (g *segment) reserve(s *Space, off, n int64) error {
	if g.allocated >= off+n {
		return nil
	}
	err := g.allocate(s.length(g))
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	s.scarce.Lock()
	defer s.scarce.Unlock()
	r := &remainder{segment: g, leave: s.leave.Load(), quota: errors.Is(err, unix.EDQUOT)}
	if err := r.look(s); err != nil {
		return err
	}
	return r.reserve(off, n, s.length(g))
}

// allocate gives the file room up to an end.
func (g *segment) allocate(end int64) error {
	if err := g.file.Allocate(0, end); err != nil {
		return fmt.Errorf("allocate %d bytes: %w", end, err)
	}
	g.allocated = end
	return nil
}

// remainder is what a segment's file finds on a disk that does not have room for all of it. One file at a time grows there.
type remainder struct {
	*segment
	leave int64
	quota bool // how much is left nobody says
	size  int64
	free  int64
	held  func() (int64, error) // what the file takes from the disk
}

func (r *remainder) look(s *Space) (err error) {
	if r.size, err = r.file.Size(); err != nil {
		return err
	}
	if r.free, err = s.opt.FS.Free(s.opt.Dir); err != nil {
		return err
	}
	r.held = func() (int64, error) { return min(r.allocated, r.size), nil } // a scratch file has no name to ask for, and what it has this process gave it
	if s.opt.Named {
		name := filepath.Join(s.opt.Dir, FileName(uint64(r.number)+1))
		r.held = func() (int64, error) {
			info, err := s.opt.FS.Stat(name)
			return info.Held, err
		}
	}
	return nil
}

func (r *remainder) reserve(off, n, length int64) error {
	end := off + n
	held, err := r.held()
	if err != nil {
		return err
	}
	if held >= r.size && r.size >= end { // from before: there are no holes in it
		return r.allocate(r.size)
	}
	if more := min((end+growBytes-1)/growBytes*growBytes, length); !r.quota && more-min(held, more) <= r.free-r.leave && r.allocate(more) == nil {
		return nil
	}
	if end <= r.size {
		return r.fill(off, n, held)
	}
	if !r.has(n) {
		return r.none()
	}
	return r.extend(off, n)
}

// fill gives room to a range in the midst of the file, unless that takes what is to be left.
func (r *remainder) fill(off, n, before int64) error {
	if err := r.file.Allocate(off, n); err != nil {
		return fmt.Errorf("allocate %d bytes: %w", n, err)
	}
	after, err := r.held()
	if err != nil {
		return err
	}
	if r.free -= after - before; after <= before || r.has(0) {
		return nil
	}
	return errors.Join(r.none(), r.file.PunchHole(off, n))
}

// has tells whether the disk has so many bytes, and leaves enough. With a quota that is tried.
func (r *remainder) has(n int64) bool {
	if !r.quota {
		return r.free-r.leave >= n
	}
	err := r.file.Allocate(r.size, n+r.leave)
	return err == nil && r.file.Truncate(r.size) == nil
}

func (r *remainder) extend(off, n int64) error {
	if err := r.file.Allocate(off, n); err != nil {
		return fmt.Errorf("allocate %d bytes: %w", n, err)
	}
	if off <= r.allocated {
		r.allocated = off + n
	}
	return nil
}

func (r *remainder) none() error {
	if r.quota {
		return fmt.Errorf("the quota has to leave %d bytes to the catalog: %w", r.leave, unix.EDQUOT)
	}
	return fmt.Errorf("%d bytes were free, and %d are left to the catalog: %w", r.free, r.leave, unix.ENOSPC)
}
