package segment

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Discard closes and removes the file of an empty segment. The next write begins a new file, without a failed sync. The caller must not run other calls on
// the segment meanwhile.
func (s *Space) Discard(number int64) error {
	g := s.lookUp(number)
	return s.holding(g, func() error { return g.discard(s) })
}

func (g *segment) discard(s *Space) error {
	if err := s.opt.FS.Remove(s.opt.name(g.number)); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if g.file != nil {
		_ = g.file.Close() // nothing in it is needed
	}
	g.had, g.top = 0, 0
	g.file, g.allocated, g.unnamed, g.suspect, g.bare, g.unproven = nil, 0, false, nil, false, nil
	g.index, g.commits, g.created, g.discards = indexUse{}, false, false, g.discards+1
	g.before, g.synced = false, g.writes // the next file's name has not been synced
	return nil
}

// Punch returns the room of an unused range to the file system. The range must be in one segment.
func (s *Space) Punch(off, n int64) error {
	g := s.segment(off)
	return s.holding(g, func() error {
		if g.file == nil {
			return nil
		}
		g.allocated = min(g.allocated, off-g.start) // later writes there allocate room first
		return g.file.PunchHole(off-g.start, n)
	})
}

// Held is the number of bytes that the file of a segment takes from the file system, without its index and its commit area.
func (s *Space) Held(number int64) (int64, error) {
	g := s.lookUp(number)
	info, err := s.opt.FS.Stat(s.opt.name(number))
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.index.ends[0] + g.index.ends[1] // an index that has not been read counts as data
	if g.commits {
		before += s.opt.Commits
	}
	return max(info.Held-before, 0), err
}
