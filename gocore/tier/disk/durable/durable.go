// Package durable implements the durable tier: the directory of a store, how a checkpoint is committed to it, and how the next process finds it again.
//
// The directory has an identity (velocpy.store, and a copy in velocpy.copy), a lock, a catalog and data files. Package journal stores the catalog as
// batches of records, package catalog encodes the records, and package segment manages the data files. A checkpoint is committed in these steps. It
// survives a crash from the end of the last step on:
//
//  1. its bytes are written to a range that no committed record refers to;
//  2. the data files are synced, and the directory too if a file is new;
//  3. a batch of the catalog that gives the location of the bytes is written and synced; a large group takes several batches, one after the other.
//
// A small commit writes its records to the commit area of the data file instead, before step 2. The catalog gets them later: see area.go.
//
// A dropped or replaced checkpoint is gone from the batch, or the commit-area frame, that records it. Its range is reused only after that. Committed bytes
// are never overwritten, so a crash at any moment leaves the committed state intact. Many changes share the syncs of step 2, and the changes of a batch
// share the sync of step 3.
//
// One process at a time has a directory open for writing; any number of processes may read it meanwhile. docs/format.md describes the bytes,
// docs/durable.md the reasons.
package durable

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"

	"golang.org/x/sys/unix"
)

var (
	// ErrNoStore: the directory holds no store.
	ErrNoStore = errors.New("no store")
	// ErrLocked: another process, or another Dir of this one, has the store open for writing.
	ErrLocked = errors.New("the store is open for writing elsewhere")
	// ErrVersion: a later version wrote the store, with content that this version does not understand.
	ErrVersion = errors.New("the store is of a later version")
	// ErrDamaged: acknowledged content is missing. Reading works as far as the remaining content allows; writing needs a repair first.
	ErrDamaged = errors.New("the store is damaged")
	// ErrLost: this process does not own the directory, or the lock on it, any more. It writes nothing more to it; acknowledged content stays where it was.
	ErrLost = errors.New("the store was lost")
	// ErrClosed: the directory is closed.
	ErrClosed = errors.New("the store is closed")
)

// Options configure where a store is and how it is opened.
type Options struct {
	FS           vfs.FS
	Dir          string
	Capacity     int64 // bytes for checkpoints; those that are there already count, even when they exceed it
	SegmentBytes int64 // length of the data files of a store that is created now; 0: segment.DefaultSegmentBytes
	Direct       bool  // I/O past the page cache, where the file system allows it
	AtOnce       int64 // bytes that a copy reads at once, from a place that answers late; 0: those of a disk
	Repair       bool  // open a store with a damaged catalog, with the records that are left
	// Slack is the number of bytes by which the catalog may exceed its live content before it is compacted; 0: a few MiB.
	Slack int64
	// Describes and Annotates validate a row: Describes whether the text of a layout describes it, Annotates whether a meta fits that layout; see package
	// description. nil: Check skips them.
	Describes func(*model.Layout) error
	Annotates func(l *model.Layout, meta string) error
	// Land is called with every group of changes, in order, once their outcome is known. It takes Guard and calls Apply for each change. suspect lists
	// segments whose sync has just failed: nothing may be written to them any more. nil: Dir calls Apply itself.
	Land func(group []*Change, suspect []int64)
	// Landed is called after Land, while no sync runs: it may free ranges of data files that no committed record refers to. nil: it is not called.
	Landed func()
	// Guard is the caller's lock for State; nil: Dir uses a lock of its own.
	Guard sync.Locker

	held  vfs.HeldDir // the open directory; FS equals it from then on
	above vfs.FS      // FS before hold

	made     made          // layout of the data files when a store is created; tests create older layouts
	prompt   bool          // indexes and catalog are written at once, not deferred
	idle     time.Duration // delay of deferred writes; 0: idleDelay
	rebuilds bool          // a missing catalog is recorded as a loss rather than returned as an error
}

// made is the layout of the data files of a new store.
type made int

const (
	madeWhole   made = iota // heads, indexes and commit areas
	madeIndexed             // heads and indexes, as some existing stores have them
	madeHeads               // heads alone, as some existing stores have them
	madeBare                // only segments, as in version 0.1
)

// identity returns the identity of a new store without its random id.
func (m made) identity(segment int64) identity {
	return identity{segment: segment, heads: m <= madeHeads, index: m <= madeIndexed, commits: m <= madeWhole}
}

// hold opens the directory. All later file operations go through this handle, so that they reach the same directory even if its name changes.
func (o *Options) hold() error {
	if o.held != nil {
		return nil
	}
	held, err := o.FS.HoldDir(o.Dir)
	for _, reason := range []error{unix.ENOENT, unix.ENOTDIR} {
		if errors.Is(err, reason) {
			return fmt.Errorf("%s: %w: %w", o.Dir, ErrNoStore, reason)
		}
	}
	if err != nil {
		return err
	}
	o.above, o.FS, o.held = o.FS, held, held
	return nil
}

// release closes the directory.
func (o *Options) release() error { return o.held.Close() }

func (o *Options) path(name string) string { return filepath.Join(o.Dir, name) }

// contents is the metadata of a store: everything except the bytes of checkpoints. read fills its parts from the innermost one outwards, and each knows only
// those inside it: files has the identity, records what the catalog says, committed what commit areas say further, and contents the ranges in use.
type contents struct {
	committed
	runs []run
}

// run is a range of the space that committed records refer to.
type run struct{ from, end int64 }

// read loads the metadata of a directory.
func read(o Options) (*contents, error) {
	c := &contents{}
	c.o = o
	others, err := stored(&o) // before the identity, which a maker completes before it creates any other file
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
		return nil, err
	}
	f, err := readIdentity(&o)
	c.identity, c.bad = f.identity, f.bad
	if errors.Is(err, ErrDamaged) && !others {
		return nil, fmt.Errorf("%s: %w: one is being made, or was, until its maker died", o.Dir, ErrNoStore)
	}
	if err != nil {
		return nil, err
	}
	if err = c.readLog(); err == nil {
		err = c.readAhead()
	}
	switch {
	case errors.Is(err, catalog.ErrVersion), errors.Is(err, journal.ErrVersion):
		return nil, fmt.Errorf("%w: %w", ErrVersion, err)
	case err != nil:
		return nil, err
	}
	if c.runs, err = c.survey(); errors.Is(err, ErrDamaged) {
		if err = c.untangle(); err == nil {
			c.runs, err = c.survey()
		}
	}
	return c, err
}

// space opens the data files.
func (c *contents) space(readOnly bool) (*segment.Space, error) {
	capacity := c.o.Capacity
	if n := len(c.runs); n > 0 {
		capacity = max(capacity, c.runs[n-1].end)
	}
	reads := int64(0)
	if far, ok := c.o.FS.(vfs.Distant); ok {
		reads = far.PieceBytes()
	}
	return segment.Open(segment.Options{
		ReadBytes: reads,
		FS:        c.o.FS, Dir: c.o.Dir, Capacity: capacity, SegmentBytes: c.identity.segment, Direct: c.o.Direct, Named: true, ReadOnly: readOnly,
		Store: c.identity.owner(), Index: c.identity.indexBytes(), Commits: c.identity.commitBytes(),
		Occupied: c.Occupied(),
	})
}
