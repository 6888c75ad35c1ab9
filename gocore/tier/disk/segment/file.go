package segment

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

const filePrefix = "data-"

// FileName is the name of a named file. Numbers begin at 1: the file with the byte at offset off has the number off/SegmentBytes + 1.
func FileName(number uint64) string { return fmt.Sprintf("%s%016x", filePrefix, number) }

// FileNumber is the inverse of FileName; false if name is not a data file's.
func FileNumber(name string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(name, filePrefix), 16, 64)
	if err != nil {
		return 0, false
	}
	return number, name == FileName(number) && number > 0
}

// segment is one file of the space.
type segment struct {
	number int64
	start  int64

	mu        sync.Mutex
	handling           // of the file
	file      vfs.File // nil until its first use
	allocated int64    // end of the room that this process has allocated
	had       int64    // end of the used part when the space was opened
	top       int64    // end of the part that this process has written
	unnamed   bool     // the directory has not been synced since the file was created
	suspect   error    // a sync failed: it is unknown which writes since the last successful one are on the medium
	bare      bool     // this space has created the file, and must write its head before anything else
	index     indexUse
	commits   bool  // this space has allocated the commit area
	created   bool  // this space has created the file
	discards  int64 // number of discarded files
	unproven  error // why the head does not prove that the file is the store's; nil: it does, or files have no heads

	limit atomic.Int64 // no room is allocated beyond this offset
}

// open returns the file for a transfer, which must release it. For a write, it creates a missing file and allocates room. The transfer writes up to ahead
// in this segment.
func (g *segment) open(s *Space, dir direction, off, n, ahead int64) (vfs.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.ready(s, dir); err != nil {
		return nil, err
	}
	if dir == read {
		return g.hold(s, dir), nil
	}
	if err := g.reserve(s, off, Blocks(off+n)-off, Blocks(ahead)); err != nil {
		if !s.opt.Named && g.allocated == 0 {
			err = errors.Join(err, g.file.Close())
			g.file = nil
		}
		return nil, err
	}
	if err := g.writeHead(s); err != nil {
		return nil, err
	}
	g.top = max(g.top, Blocks(off+n))
	return g.hold(s, dir), nil
}

// ready opens the file. For a write, it also creates a missing file, and verifies that writes are allowed. The caller holds g.mu.
func (g *segment) ready(s *Space, dir direction) error {
	if dir == write && s.opt.ReadOnly {
		return fmt.Errorf("the space is open for reading only: %w", unix.EROFS)
	}
	if err := s.barred.Load(); dir == write && err != nil {
		return err
	}
	if g.file != nil {
		return nil
	}
	unnamed := g.unnamed
	if err := g.find(s, dir == write); err != nil {
		return err
	}
	g.unnamed = unnamed || g.unnamed && !g.before
	s.shelve(g)
	return nil
}

// find opens the file, or creates it.
func (g *segment) find(s *Space, create bool) (err error) {
	o := &s.opt
	if !o.Named {
		if !create {
			return ErrUnwritten
		}
		g.file, err = o.FS.OpenScratch(o.Dir, o.Direct)
		return err
	}
	name := o.name(g.number)
	file, err := o.FS.Open(name, !o.ReadOnly, o.Direct)
	switch {
	case err == nil:
		g.unnamed = !o.ReadOnly // its creator may have died before it synced the directory
		return g.own(s, file)
	case !errors.Is(err, unix.ENOENT):
		return err
	case !create:
		return fmt.Errorf("%w: %w", ErrUnwritten, err)
	}
	if file, err = o.FS.Create(name, o.Direct); err != nil {
		return err
	}
	g.file, g.unnamed, g.bare, g.created = o.behindFront(file), true, s.opt.Store != nil, true
	g.index = indexUse{known: true}
	return nil
}

// name is the path of a named segment's file.
func (o *Options) name(number int64) string {
	return filepath.Join(o.Dir, FileName(uint64(number)+1))
}

// Sync returns when all earlier writes to a segment of named files, and the file's name, are on the medium. After an error it is unknown which of them are,
// and later calls fail as well. The caller must then write the bytes again, to another segment, or to this one after Discard. Calls for one segment must
// not overlap.
func (s *Space) Sync(number int64) error {
	if err := s.SyncBytes(number); err != nil {
		return err
	}
	return s.SyncNames(number)
}

// SyncBytes is Sync without the file's name, which the caller brings to the medium by SyncNames. Names of many files need one sync of their directory.
func (s *Space) SyncBytes(number int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	g := s.lookUp(number)
	g.mu.Lock()
	file, suspect, writes := g.file, g.suspect, g.writes
	if suspect == nil && file != nil {
		g.hold(s, read)
		defer g.release(read)
	}
	g.mu.Unlock()
	if suspect != nil {
		return suspect
	}
	if file == nil {
		return nil // no writes since the last sync
	}
	//mutation:data-sync-retried
	err := file.Sync()
	s.answers[write].Inc()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		return g.suspected(s, err)
	}
	g.synced = writes
	return nil
}

// SyncNames returns when the names of the files of segments are on the medium. After an error, syncs of these segments fail as Sync says.
func (s *Space) SyncNames(numbers ...int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	var unnamed []*segment
	for _, number := range numbers {
		g := s.lookUp(number)
		g.mu.Lock()
		if g.suspect == nil && g.unnamed {
			unnamed = append(unnamed, g)
		}
		g.mu.Unlock()
	}
	var err error
	//mutation:data-file-name-unsynced
	if len(unnamed) > 0 {
		err = s.opt.FS.SyncDir(s.opt.Dir)
	}
	var first error
	for _, g := range unnamed {
		g.mu.Lock()
		if g.unnamed = err != nil; err != nil {
			first = cmp.Or(first, g.suspected(s, err))
		}
		g.mu.Unlock()
	}
	return first
}

// suspected notes that a sync has failed, and returns the error of it and of later ones. The caller holds g.mu.
func (g *segment) suspected(s *Space, err error) error {
	g.suspect = fmt.Errorf("segment file %d in %s: %w: %w", g.number, s.opt.Dir, ErrSuspect, err)
	return g.suspect
}

func (g *segment) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return nil
	}
	return g.file.Close()
}

// Make creates the file of a segment, with its head, unless it exists: another process is to write into it.
func (s *Space) Make(number int64) error {
	g := s.lookUp(number)
	return s.holding(g, func() error {
		if err := g.ready(s, write); err != nil {
			return err
		}
		return g.writeHead(s)
	})
}

// holding calls f while no transfer opens the file of a segment, and the space stays open.
func (s *Space) holding(g *segment, f func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return f()
}

// Wrote notes that another process has written a range, in one segment, that this one has given to it: Close keeps its room.
func (s *Space) Wrote(off, n int64) {
	g := s.segment(off)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.top = max(g.top, Blocks(off+n-g.start))
}
