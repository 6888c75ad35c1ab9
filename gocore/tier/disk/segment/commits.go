package segment

import "velocpy/gocore/base/vfs"

// After the index, a named file may have a commit area. The caller writes the records of checkpoints in the file there, so that one sync makes both
// durable. The area takes no room on the disk before MakeCommits.

func (o *Options) commits() front {
	return front{"commit area", HeadBytes + o.Index, o.Commits}
}

// MakeCommits allocates the commit area of a segment's file, so that WriteCommits cannot run out of space. It fails with ENOSPC before it takes reserved
// room of the disk.
func (s *Space) MakeCommits(number int64) error {
	area := s.opt.commits()
	return s.withFront(area, number, 0, area.bytes, write, func(g *segment, file vfs.File, _ []byte) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.commits {
			return nil
		}
		err := s.growth.allocate(file, area.from, area.bytes)
		g.commits = err == nil
		return err
	})
}

// WriteCommits stores p, whole blocks, at off in the commit area of a segment's file. The next Sync of the segment makes it durable.
func (s *Space) WriteCommits(number, off int64, p []byte) error {
	area := s.opt.commits()
	return s.withFront(area, number, off, int64(len(p)), write, func(_ *segment, file vfs.File, buf []byte) error {
		return writeThrough(file, buf, p, area.from+off)
	})
}

// commitsHeld is the number of bytes of the disk that the commit area may take.
func (g *segment) commitsHeld(s *Space) int64 {
	if g.created && !g.commits {
		return 0
	}
	return s.opt.Commits
}
