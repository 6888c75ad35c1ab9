package segment

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/quantity"
)

// A file grows by as much as it has, within limits: an open store takes little more than its checkpoints, and a file of the usual length grows nine times. A file system
// holds up the file's other transfers while it grows.
const (
	growFirst = 2 << 20 // the unit, too
	growMost  = 64 << 20
)

// growBytes is what a file grows by where the disk has less than that.
const growBytes = 16 << 20

// Leave says how much is to be left of the disk: to a catalog, in which it has to be said what is dropped before its room can be used again.
func (s *Space) Leave(bytes int64) { s.leave.Store(bytes) }

// reserve gives the file room for n bytes at off, and more: up to ahead, as a transfer goes on to there, and for later writes. Where the disk does not have so
// much, it has room for the n bytes and, if possible, some more. The segment's lock is held.
func (g *segment) reserve(s *Space, off, n, ahead int64) error {
	if g.allocated >= off+n {
		return nil
	}
	s.growth.Lock()
	defer s.growth.Unlock()
	r := &remainder{segment: g, leave: s.leave.Load()}
	if err := r.look(s); err != nil {
		return err
	}
	length := s.length(g)
	if end := r.next(max(off+n, ahead), length); r.has(r.missing(end)) {
		err := r.grow(end)
		if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
			return err
		}
		r.quota = errors.Is(err, unix.EDQUOT)
	}
	return r.reserve(off, n, length)
}

// giveBack gives the file system the end of the file back that this process has given room, behind what counted and what it has written. The file stays as long as
// it is: if it had to grow again, and the sync failed that was to bring that down, the next process would not know.
func (g *segment) giveBack(s *Space) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	end := max(g.had, g.top)
	known := g.created || s.opt.Occupied != nil
	if !s.opt.Named || !known || g.allocated <= end || g.suspect != nil || s.barred.Load() != nil {
		return nil
	}
	if g.file == nil {
		if err := g.find(s, false); err != nil {
			return err
		}
	}
	return g.file.PunchHole(end, g.allocated-end)
}

// allocate gives the file room up to an end.
func (g *segment) allocate(end int64) error {
	if err := g.file.Allocate(0, end); err != nil {
		return fmt.Errorf("allocate %s: %w", quantity.Exact(end), err)
	}
	g.allocated = end
	return nil
}

// remainder is what a segment's file finds on its disk. One file at a time grows there.
type remainder struct {
	*segment
	leave int64
	quota bool // how much is left nobody says
	size  int64
	free  int64
	held  int64                 // what the file takes from the disk
	takes func() (int64, error) // … now
}

func (r *remainder) look(s *Space) (err error) {
	if r.size, err = r.file.Size(); err != nil {
		return err
	}
	if r.free, err = s.opt.FS.Free(s.opt.Dir); err != nil {
		return err
	}
	head := int64(0)
	if s.opt.Store != nil {
		head = HeadBytes
	}
	if r.bare {
		r.free -= head
	}
	before := r.index.held(s.opt.Index) + r.commitsHeld(s)      // where that is less than it may be, the file's room is taken for less than it is
	r.takes = func() (int64, error) { return r.allocated, nil } // a scratch file has no name to ask for; nothing is left of its disk to anybody
	if s.opt.Named {
		r.takes = func() (int64, error) {
			info, err := s.opt.FS.Stat(s.name(r.segment))
			return max(info.Held-head, 0) - before, err
		}
	}
	r.held, err = r.takes()
	return err
}

// next is where the file's room is to end so that it reaches a place. A file that has no holes keeps all that it has.
func (r *remainder) next(place, length int64) int64 {
	if r.held >= r.size && r.size >= place {
		return r.size
	}
	end := max(place, r.allocated+min(r.allocated, growMost))
	return min((end+growFirst-1)/growFirst*growFirst, length)
}

// missing is how many bytes of the disk it takes, at most, to give the file room up to an end.
func (r *remainder) missing(end int64) int64 { return min(end, max(end, r.size)-r.held) }

// grow gives the file room up to an end. A quota may allow less than is free: then what is to be left is tried too, where that takes nothing from the catalog.
func (r *remainder) grow(end int64) error {
	rest := r.leave
	if rest == 0 || end < r.size || !r.has(r.missing(end)+rest) {
		return r.allocate(end)
	}
	if err := r.allocate(end + rest); err != nil {
		return err
	}
	r.allocated = end
	return r.file.Truncate(end)
}

func (r *remainder) reserve(off, n, length int64) error {
	end := off + n
	if r.held >= r.size { // there are hardly any holes in it
		if r.size >= end && r.allocate(r.size) == nil {
			return nil
		}
		if more := min((end+growBytes-1)/growBytes*growBytes, length); !r.quota && r.has(more-r.size) && r.allocate(more) == nil {
			return nil
		}
	}
	if end <= r.size {
		return r.fill(off, n)
	}
	if !r.has(n) {
		return r.none()
	}
	return r.extend(off, n)
}

// fill gives room to a range in the midst of the file, unless that takes what is to be left. An attempt that fails may have taken it too.
func (r *remainder) fill(off, n int64) error {
	if err := r.file.Allocate(off, n); err != nil {
		return errors.Join(fmt.Errorf("allocate %s: %w", quantity.Exact(n), err), r.file.PunchHole(off, n))
	}
	after, err := r.takes()
	if err != nil {
		return err
	}
	if r.free -= after - r.held; after <= r.held || r.has(0) {
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
		return fmt.Errorf("allocate %s: %w", quantity.Exact(n), err)
	}
	if off <= r.allocated {
		r.allocated = off + n
	}
	return nil
}

func (r *remainder) none() error {
	if r.quota {
		return fmt.Errorf("the quota has to leave %s to the catalog: %w", quantity.Exact(r.leave), unix.EDQUOT)
	}
	return fmt.Errorf("%s were free, and %s are left to the catalog: %w", quantity.Exact(r.free), quantity.Exact(r.leave), unix.ENOSPC)
}
