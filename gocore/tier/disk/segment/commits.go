package segment

import "velocpy/gocore/base/vfs"

// Behind the index of a named file there may be a commit area: for whoever says there, in the sync that brings checkpoints in the file down, that these count.
// It takes no room on the disk before MakeCommits.

func (s *Space) commits() front {
	return front{"commit area", HeadBytes + s.opt.Index, s.opt.Commits}
}

// MakeCommits gives the commit area of a segment's file its room: then WriteCommits cannot run out of space. It fails with ENOSPC rather than take what is to be
// left of the disk.
func (s *Space) MakeCommits(number int64) error {
	area := s.commits()
	return s.withFront(area, number, 0, area.bytes, write, func(g *segment, file vfs.File, _ []byte) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.commits {
			return nil
		}
		err := s.allocateFront(file, area.from, area.bytes)
		g.commits = err == nil
		return err
	})
}

// WriteCommits stores p, whole blocks, at off in the commit area of a segment's file. The next Sync of the segment brings it down.
func (s *Space) WriteCommits(number, off int64, p []byte) error {
	area := s.commits()
	return s.withFront(area, number, off, int64(len(p)), write, func(_ *segment, file vfs.File, buf []byte) error {
		return writeThrough(file, buf, p, area.from+off)
	})
}

// commitsHeld is how many bytes of the disk the commit area may take.
func (g *segment) commitsHeld(s *Space) int64 {
	if g.created && !g.commits {
		return 0
	}
	return s.opt.Commits
}
