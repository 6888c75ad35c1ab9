// Package durable is a store's directory: what it holds, how checkpoints get into it, and how they are found again.
//
// The directory has an identity (velocpy.store, and a copy in velocpy.copy), a lock, a catalog (package journal, in records of package catalog) and data files (package segment). A
// checkpoint is committed in this order, and is there, whatever happens, from the end of the last step on:
//
//  1. its bytes are written to a place that nothing in the catalog counts on;
//  2. the data files, and the directory if a file is new, are synced;
//  3. a batch of the catalog that says where they lie is written and synced; of many changes, several batches, one after the other.
//
// What a commit of little says is written to the data file instead, before step 2, and the catalog gets it later: see area.go.
//
// A checkpoint that is dropped or replaced is so from the batch, or the frame of a commit area, on that says it, and its place is written to after that. Nothing
// is written over that counts, so that a crash at any moment leaves what was there. Many changes share the syncs of step 2, and those in a batch that of step 3.
//
// One process at a time has a directory open for writing; any number read it meanwhile. docs/format.md describes the bytes, docs/durable.md why it is so.
package durable

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	// ErrLocked: somebody else has the store open for writing.
	ErrLocked = errors.New("the store is open for writing elsewhere")
	// ErrVersion: the store was written by a later version, which says more than this one understands.
	ErrVersion = errors.New("the store is of a later version")
	// ErrDamaged: something that was acknowledged is not there any more. Reading is possible as far as it goes; writing is not before a repair.
	ErrDamaged = errors.New("the store is damaged")
	// ErrLost: the directory, or the lock on it, is not this process's any more. Nothing is written to it; what was acknowledged is where it was.
	ErrLost = errors.New("the store was lost")
	// ErrClosed: the directory is closed.
	ErrClosed = errors.New("the store is closed")
)

// Options say where a store lies and how it is opened.
type Options struct {
	FS           vfs.FS
	Dir          string
	Capacity     int64 // bytes for checkpoints; what lies there already counts, and is never too much
	SegmentBytes int64 // length of the data files of a store that is made now; 0: segment.DefaultSegmentBytes
	Direct       bool  // I/O past the page cache, where the file system allows it
	Repair       bool  // goes on with what is left of a damaged catalog
	// Slack is by how much the catalog may be longer than what it says, in bytes; 0: a few MiB. It is written anew then.
	Slack int64
	// Describes and Annotates tell whether the text of a layout describes it, and whether a meta is one of that layout; see package description. nil: Check does not look.
	Describes func(*model.Layout) error
	Annotates func(l *model.Layout, meta string) error
	// Land is told of every group of changes, in their order, when its fate is known; it takes Guard and calls Apply for each. suspect are segments a
	// sync of which has failed just now: nothing may be put there any more. nil: nobody is told.
	Land func(group []*Change, suspect []int64)
	// Landed is called behind Land, while nothing is synced: it may give room of data files back that nothing counts on. nil: nobody does.
	Landed func()
	// Guard is the caller's lock for State; nil: nobody else looks at it.
	Guard sync.Locker

	held  vfs.HeldDir // the directory, once it is open; FS is this then
	above vfs.FS      // what FS was before

	made     made          // how a store is made that is made now
	prompt   bool          // what indexes and catalog are to say is not put off
	idle     time.Duration // it is put off for so long; 0: idleDelay
	rebuilds bool          // that there is no catalog is no error, but a loss
}

// made says what the data files of a new store have.
type made int

const (
	madeWhole   made = iota // heads, indexes and commit areas
	madeIndexed             // heads and indexes, as in some stores
	madeHeads               // heads alone, as in some stores
	madeBare                // nothing but segments, as in version 0.1
)

// identity is that of a new store, but for what tells it from others.
func (m made) identity(segment int64) identity {
	return identity{segment: segment, heads: m <= madeHeads, index: m <= madeIndexed, commits: m <= madeWhole}
}

// hold opens the directory. From then on all files in it are reached through it, whatever its name stands for.
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

// contents is what there is to know of a store without reading checkpoints.
type contents struct {
	o        Options
	identity identity
	bad      []badCopy // copies of the identity that are not what they should be
	state    *catalog.State
	log      *journal.State
	runs     []run
	lost     []error // what was acknowledged and contradicts the rest, as when something before it is missing
	ahead    ahead   // what was found in the commit area behind the catalog
}

// run is a range of the space that the catalog counts on.
type run struct{ from, end int64 }

// read finds out what a directory holds.
func read(o Options) (*contents, error) {
	c := &contents{o: o}
	others, err := stored(&o) // before the identity, which is whole before there is anything else
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

// readLog reads the catalog.
func (c *contents) readLog() (err error) {
	c.state, c.lost = catalog.New(), nil
	c.log, err = journal.Read(c.journal(), c.apply)
	//mutation:late-definitions-ignored
	if err == nil && len(c.log.Damage) > 0 && len(c.lost) > 0 {
		err = c.readTwice()
	}
	if err == nil && c.log.Files == 0 {
		err = c.withoutCatalog()
	}
	return err
}

// readTwice reads a damaged catalog anew, the definitions first: rows whose definitions are damaged are found by those that stand elsewhere.
func (c *contents) readTwice() (err error) {
	c.state, c.lost = catalog.New(), nil
	define := func(record []byte) error {
		c.state.Define(record)
		return nil
	}
	if _, err := journal.Read(c.journal(), define); err != nil {
		return err
	}
	c.log, err = journal.Read(c.journal(), c.apply)
	return err
}

// withoutCatalog tells whether that there is none is a loss. A catalog is begun before data files are made.
func (c *contents) withoutCatalog() error {
	names, err := c.o.FS.List(c.o.Dir)
	if err != nil || !slices.ContainsFunc(names, isData) {
		return err
	}
	c.log, err = journal.Read(c.journal(), c.apply) // it may have been begun since, by whoever writes to the store
	if err == nil && c.log.Files == 0 {
		err = fmt.Errorf("%s: %w: there are data files, and no catalog that says what is in them; `velocpy check --repair --rebuild` takes that from the data files", c.o.Dir, ErrDamaged)
		if c.o.rebuilds {
			c.lose(err)
			return nil
		}
	}
	return err
}

func isData(name string) bool {
	_, ok := segment.FileNumber(name)
	return ok
}

// apply leaves records out that rely on what is missing.
func (c *contents) apply(record []byte) error {
	err := c.state.Apply(record)
	if errors.Is(err, catalog.ErrMalformed) {
		c.lose(err)
		return nil
	}
	return err
}

// mostLost is how many losses are told one by one.
const mostLost = 100

func (c *contents) lose(err error) {
	if len(c.lost) < mostLost {
		c.lost = append(c.lost, err)
	}
}

func (c *contents) journal() journal.Options {
	return journal.Options{FS: c.o.FS, Dir: c.o.Dir, Store: c.identity.store}
}

// damage is what of the catalog was acknowledged and is missing; nil: nothing.
func (c *contents) damage() error {
	var errs []error
	for _, d := range c.log.Damage {
		if !d.Harmless {
			errs = append(errs, errors.New(d.String()))
		}
	}
	errs = append(errs, c.lost...)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrDamaged, errors.Join(errs...))
}

// space opens the data files.
func (c *contents) space(readOnly bool) (*segment.Space, error) {
	capacity := c.o.Capacity
	if n := len(c.runs); n > 0 {
		capacity = max(capacity, c.runs[n-1].end)
	}
	return segment.Open(segment.Options{
		FS: c.o.FS, Dir: c.o.Dir, Capacity: capacity, SegmentBytes: c.identity.segment, Direct: c.o.Direct, Named: true, ReadOnly: readOnly,
		Store: c.identity.owner(), Index: c.identity.indexBytes(), Commits: c.identity.commitBytes(),
		Occupied: c.Occupied(),
	})
}
