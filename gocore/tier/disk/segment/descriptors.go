package segment

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
)

// DefaultOpenFiles limits the open named files, apart from those in use and those with unsynced writes. A store of some terabytes has thousands of files,
// and a process may have no more than 1024 descriptors.
const DefaultOpenFiles = 64

// shelf is the set of open named files. Lock order: the mu of a segment before that of the shelf.
type shelf struct {
	mu   sync.Mutex
	open map[*segment]struct{}
	uses atomic.Int64
}

// handling tracks the use of a segment's file. The segment's mu guards it, except for used.
type handling struct {
	pins   int          // transfers and syncs in flight
	writes int64        // begun and ended writes
	synced int64        // value of writes at the last successful sync
	before bool         // the file was open before: the sync of its name is already tracked
	used   atomic.Int64 // time of the last use, by the shelf's counter
}

// hold counts a use of the open file. The caller holds g.mu.
func (g *segment) hold(s *Space, dir direction) vfs.File {
	g.pins++
	if dir == write {
		g.writes++
	}
	g.used.Store(s.shelf.uses.Inc())
	return g.file
}

// release ends a use of the file.
func (g *segment) release(dir direction) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pins--
	if dir == write {
		g.writes++ // a sync that began before may have missed a part of it
	}
}

// shelve records that a file was opened, and closes the least recently used ones if too many are open. The caller holds g.mu.
func (s *Space) shelve(g *segment) {
	if !s.opt.Named {
		return // a scratch file vanishes with its descriptor
	}
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	if s.shelf.open == nil {
		s.shelf.open = map[*segment]struct{}{}
	}
	s.shelf.open[g] = struct{}{}
	if len(s.shelf.open) <= s.opt.OpenFiles {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(s.shelf.open), func(a, b *segment) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	for _, old := range oldest {
		if len(s.shelf.open) <= s.opt.OpenFiles {
			return
		}
		if old != g && old.putDown() {
			delete(s.shelf.open, old)
		}
	}
}

// putDown closes the file if it is not needed. A file with unsynced writes stays open, as its descriptor reports a failed write-back.
func (g *segment) putDown() bool {
	if !g.mu.TryLock() { // the caller holds another segment's mu
		return false
	}
	defer g.mu.Unlock()
	if g.pins > 0 || g.writes != g.synced || g.suspect != nil {
		return false
	}
	if g.file != nil {
		_ = g.file.Close() // all its writes have been synced
		g.file, g.before = nil, true
	}
	return true
}
