package segment

import (
	"errors"
	"fmt"
	"sync"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/vfs"
)

// A file grows by its allocated length, within limits: an open store takes little more than its checkpoints, and a file of the default length grows nine
// times. Growing a file blocks its other transfers in the file system.
const (
	growFirst = 2 << 20 // also the unit
	growMost  = 64 << 20
)

// growBytes is the step of growth when the disk has less room than that.
const growBytes = 16 << 20

// growth is what the files of a space share when they grow: the room of their disk.
type growth struct {
	opt   *Options
	mu    sync.Mutex // held while a file grows
	leave atomic.Int64
}

// Leave reserves free room of the disk for the catalog, which must record drops before their room can be reused.
func (w *growth) Leave(bytes int64) { w.leave.Store(bytes) }

// free is the free room of the disk.
func (w *growth) free() (int64, error) { return w.opt.FS.Free(w.opt.Dir) }

// allocate allocates a range of a whole file, if the disk has enough beyond the reserved rest. The caller holds the mu of the file's segment.
func (w *growth) allocate(file vfs.File, off, n int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	free, err := w.free()
	if err != nil {
		return err
	}
	if leave := w.leave.Load(); free-leave < n {
		return fmt.Errorf("%s were free, and %s are left to the catalog: %w", quantity.Exact(free), quantity.Exact(leave), unix.ENOSPC)
	}
	if err := file.Allocate(off, n); err != nil {
		return fmt.Errorf("allocate %s: %w", quantity.Exact(n), err)
	}
	return nil
}

// reserve allocates n bytes at off, and more: up to ahead, where the transfer continues, and for later writes. If the disk has less room, it allocates the
// n bytes and, if possible, some more. The caller holds g.mu.
func (g *segment) reserve(s *Space, off, n, ahead int64) error {
	if g.allocated >= off+n {
		return nil
	}
	s.growth.mu.Lock()
	defer s.growth.mu.Unlock()
	r := &remainder{segment: g, leave: s.growth.leave.Load()}
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

// giveBack returns the end of the file that this process has allocated, but neither it nor any earlier process has used. The file keeps its length: if it
// had to grow again, and the sync of that growth failed, the next process would not know.
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

// allocate allocates the file up to end.
func (g *segment) allocate(end int64) error {
	if err := g.file.Allocate(0, end); err != nil {
		return fmt.Errorf("allocate %s: %w", quantity.Exact(end), err)
	}
	g.allocated = end
	return nil
}

// remainder is the state of a segment's file and of its disk. One file at a time grows.
type remainder struct {
	*segment
	leave int64
	quota bool // a quota applies, and its rest is unknown
	size  int64
	free  int64
	held  int64                 // bytes of the disk that the file takes
	takes func() (int64, error) // … at the moment of the call
}

func (r *remainder) look(s *Space) (err error) {
	if r.size, err = r.file.Size(); err != nil {
		return err
	}
	if r.free, err = s.growth.free(); err != nil {
		return err
	}
	head := int64(0)
	if s.opt.Store != nil {
		head = HeadBytes
	}
	if r.bare {
		r.free -= head
	}
	before := r.index.held(s.opt.Index) + r.commitsHeld(s)      // if the index takes less than assumed, the file's room is underestimated
	r.takes = func() (int64, error) { return r.allocated, nil } // a scratch file has no name for Stat; its disk needs no reserve
	if s.opt.Named {
		r.takes = func() (int64, error) {
			info, err := s.opt.FS.Stat(s.opt.name(r.number))
			return max(info.Held-head, 0) - before, err
		}
	}
	r.held, err = r.takes()
	return err
}

// next returns the end to which the file grows so that it includes place. A file without holes keeps its size.
func (r *remainder) next(place, length int64) int64 {
	if r.held >= r.size && r.size >= place {
		return r.size
	}
	end := max(place, r.allocated+min(r.allocated, growMost))
	return min((end+growFirst-1)/growFirst*growFirst, length)
}

// missing is the largest number of disk bytes that allocating the file up to end takes.
func (r *remainder) missing(end int64) int64 { return min(end, max(end, r.size)-r.held) }

// grow allocates the file up to end. A quota may allow less than the disk has free. So grow also tries to allocate the reserve, where that takes nothing
// from the catalog.
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
	if r.held >= r.size { // the file has hardly any holes
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

// fill allocates a range inside the file, unless that takes from the reserve. A failed attempt may have allocated a part, so it punches the range out
// again.
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

// has tells whether the disk has n bytes beyond the reserve. With a quota it tries to allocate them.
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
