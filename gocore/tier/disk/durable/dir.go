package durable

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

const lockName = "lock"

// Dir is a directory that is open for writing. Its methods may be called from any goroutine, but for Apply and what reads State: those take turns by the
// caller's lock.
type Dir struct {
	*contents
	lock    vfs.Lock
	data    *segment.Space
	log     *journal.Log
	writer  *catalog.Writer
	indexes indexes
	indexQueue
	area    area
	bad     map[uint64]bool // data files to whose commit areas nothing could be written
	refused int64           // how long the catalog was when it could not be written anew
	spare   int64           // bytes that batches have left of what they may say again
	moved   bool            // the log was told that the directory has another name
	lost    error           // why the directory is not this process's any more; nil: it is
	unclear bool            // nobody knows whether the latest batch, which failed, is there

	ballast   bool // there is one, of its full size
	ballasted time.Time

	mu     sync.Mutex
	work   *sync.Cond
	queue  []*Change
	nudged bool
	idled  bool // no commit has come for idleDelay
	closed bool
	ended  chan struct{}
}

// Open opens a directory for writing; it is made, and made a store, if it is none yet. What an interrupted process has left, and nothing counts on, is removed.
func Open(o Options) (_ *Dir, err error) {
	if o.Guard == nil {
		o.Guard = &sync.Mutex{}
	}
	if err := segment.MakeDir(o.FS, o.Dir); err != nil {
		return nil, err
	}
	if err := o.hold(); err != nil {
		return nil, err
	}
	lock, err := o.lock()
	if err != nil {
		return nil, errors.Join(err, o.release())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close(), o.release())
		}
	}()
	if err := makeIdentity(&o); err != nil {
		return nil, err
	}
	c, err := read(o)
	if err != nil {
		return nil, err
	}
	foreign := c.foreign()
	if err := errors.Join(c.damage(), foreign); err != nil && (!o.Repair || foreign != nil && !errors.Is(foreign, ErrDamaged)) {
		return nil, err
	}
	if err := c.writable(); err != nil {
		return nil, err
	}
	return open(c, lock)
}

// lock takes the lock on the directory, or fails with ErrLocked.
func (o *Options) lock() (vfs.Lock, error) {
	lock, err := o.FS.Lock(o.path(lockName))
	if errors.Is(err, vfs.ErrTaken) {
		//mutation:taken-lock-accepted
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrLocked)
	}
	return lock, err
}

func open(c *contents, lock vfs.Lock) (*Dir, error) {
	if c.damage() != nil {
		if err := c.numberBehind(); err != nil {
			return nil, err
		}
	}
	d := &Dir{contents: c, lock: lock, writer: catalog.NewWriter(c.state), bad: map[uint64]bool{}, ended: make(chan struct{})}
	d.work = sync.NewCond(&d.mu)
	o := c.journal()
	o.Owns = func() error { return d.lock.Held() }
	d.log = journal.Open(o, c.log)
	if err := d.settle(); err != nil {
		if noSpace(err) {
			d.o.makeBallast(d.o.Capacity) // the attempt has used up what there was
		}
		return nil, errors.Join(err, d.log.Close())
	}
	safego.Go("catalog", d.run)
	return d, nil
}

// settle makes what was found what is there, whatever happens: only then may anything be removed or written over.
func (d *Dir) settle() (err error) {
	if err := d.o.withBallast(d.begin); err != nil {
		return err
	}
	if _, err := d.sweep(); err != nil {
		return err
	}
	if d.data, err = d.space(false); err == nil {
		d.indexes, d.indexQueue = newIndexes(d.contents, d.data), newIndexQueue()
		d.provide()
		d.keepBallast()
		//mutation:deferred-indexes-of-dead-writer
		if !d.contents.log.Closed {
			d.indexes.catchUp()
		}
	}
	return err
}

// begin makes what was found of the catalog durable.
func (d *Dir) begin() error {
	if err := d.syncAhead(); err != nil {
		return err
	}
	switch {
	//mutation:unsynced-snapshot-trusted
	case d.damage() != nil || d.contents.log.Shadowed:
		return d.compact()
	case d.contents.log.Files == 0:
		return d.log.Begin() // before there are data files: see withoutCatalog
	}
	if err := d.log.Resume(); err != nil {
		return err
	}
	return d.settleAhead(d.log)
}

// writable refuses a store with checkpoints of which nobody here knows where they lie.
func (c *contents) writable() error {
	if n := c.state.Unreadable(); n > 0 {
		return fmt.Errorf("%s: %w: %d of its checkpoints are stored in a way that this one does not know", c.o.Dir, ErrVersion, n)
	}
	return nil
}

// Space is where the bytes of checkpoints go.
func (d *Dir) Space() *segment.Space { return d.data }

// State is what is durable.
func (c *contents) State() *catalog.State { return c.state }

// Occupied are the ranges of the space, ascending, that the catalog counted on when the directory was opened.
func (c *contents) Occupied() iter.Seq2[int64, int64] {
	return func(yield func(from, end int64) bool) {
		for _, r := range c.runs {
			if !yield(r.from, r.end) {
				return
			}
		}
	}
}

// Place is where in the space a row's bytes lie.
func (c *contents) Place(row *catalog.Row) (off, n int64, err error) {
	r, ok := c.identity.place(row.Extents)
	if !ok {
		return 0, 0, fmt.Errorf("%w: checkpoint %s lies nowhere", ErrDamaged, row.Key)
	}
	return r.from, r.end - r.from, nil
}

// Close ends with the changes that were given, and gives the directory to whoever opens it next.
func (d *Dir) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return ErrClosed
	}
	d.closed = true
	d.work.Signal()
	d.mu.Unlock()
	<-d.ended
	if d.idle != nil {
		d.idle.Stop()
	}
	end := d.log.Close
	if len(d.area.records) > 0 {
		end = d.log.Leave
	}
	ended := end()
	if err := errors.Join(ended, d.owns()); err != nil {
		d.data.Bar(err) // the data files may be another process's by now
	}
	return errors.Join(ended, d.data.Close(), d.lock.Close(), d.o.release())
}
