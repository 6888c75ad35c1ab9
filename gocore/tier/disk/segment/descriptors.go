package segment

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
)

// DefaultOpenFiles is how many named files are open at most, but for those in use and those with writes that no sync has followed: a store of some
// terabytes has thousands of them, and a process may have no more than 1024 descriptors.
const DefaultOpenFiles = 64

// shelf is the set of named files that are open. Of a lock of a segment and its lock, that of the segment is taken first.
type shelf struct {
	mu   sync.Mutex
	open map[*segment]struct{}
	uses atomic.Int64
}

// handling is what a segment knows of the use of its file. The segment's lock guards it, but for used.
type handling struct {
	pins   int          // transfers and syncs under way
	writes int64        // begun and ended
	synced int64        // the writes that a sync has followed
	before bool         // the file was open before: its name has been looked after
	used   atomic.Int64 // when, by the shelf's count
}

// hold counts a use of the file, which is open. The segment's lock is held.
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
		g.writes++ // a sync since it began may not have seen all of it
	}
}

// shelve notes that a file was opened, and closes those that were not used for the longest time when there are too many. The segment's lock is held.
func (s *Space) shelve(g *segment) {
	if !s.opt.Named {
		return // a scratch file goes with its descriptor
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

// putDown closes the file if nothing needs it. A file with writes stays open until they are synced: the descriptor is told of a write that fails.
func (g *segment) putDown() bool {
	if !g.mu.TryLock() { // another lock of the same kind is held
		return false
	}
	defer g.mu.Unlock()
	if g.pins > 0 || g.writes != g.synced || g.suspect != nil {
		return false
	}
	if g.file != nil {
		_ = g.file.Close() // nothing is lost with it: what was written has been synced
		g.file, g.before = nil, true
	}
	return true
}
