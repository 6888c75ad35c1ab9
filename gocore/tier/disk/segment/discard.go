package segment

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SegmentBytes is how long a segment is.
func (s *Space) SegmentBytes() int64 { return s.opt.SegmentBytes }

// Limit makes a segment's file take no room behind an offset in it; there is none at first. What lies behind already stays.
func (s *Space) Limit(number, bytes int64) {
	s.files.Lock()
	defer s.files.Unlock()
	s.numbered(number).limit.Store(bytes)
}

// Discard removes the file of a segment in which nothing lies, and closes it. The next write begins another file, of which no sync has failed. No other call
// may concern the segment meanwhile.
func (s *Space) Discard(number int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	g := s.lookUp(number)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := s.opt.FS.Remove(s.name(g)); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if g.file != nil {
		_ = g.file.Close() // nothing in it counts
	}
	g.had, g.top = 0, 0
	g.file, g.allocated, g.unnamed, g.suspect, g.bare, g.unproven = nil, 0, false, nil, false, nil
	g.index, g.commits, g.created, g.discards = indexUse{}, false, false, g.discards+1
	g.before, g.synced = false, g.writes // the next file is another one: its name has not been synced
	return nil
}

// Punch gives the file system the room of a range back that lies in one segment, and that nothing counts on.
func (s *Space) Punch(off, n int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	g := s.segment(off)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return nil
	}
	g.allocated = min(g.allocated, off-g.start) // what is written there later is given room first
	return g.file.PunchHole(off-g.start, n)
}

// Held is how many bytes the file of a segment takes from the file system, but for its index and its commit area.
func (s *Space) Held(number int64) (int64, error) {
	g := s.lookUp(number)
	info, err := s.opt.FS.Stat(s.name(g))
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.index.ends[0] + g.index.ends[1] // where nobody has looked yet, as if all were data
	if g.commits {
		before += s.opt.Commits
	}
	return max(info.Held-before, 0), err
}

// name is that of a named segment's file.
func (s *Space) name(g *segment) string {
	return filepath.Join(s.opt.Dir, FileName(uint64(g.number)+1))
}
