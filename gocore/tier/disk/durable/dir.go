package durable

import (
	"errors"
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// Dir is a directory that is open for writing. Its methods are safe for concurrent use, except Apply and readers of State: the caller serializes those with
// Guard.
type Dir struct {
	*contents
	data   *segment.Space
	log    *journal.Log
	writer *catalog.Writer

	queue
	owner      owner
	syncs      syncs
	indexQueue indexQueue
	tail       tail
	compaction compaction
}

// Open opens a directory for writing; it creates the directory and the store if there are none. It removes files that an interrupted process has left and
// no committed record refers to.
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

func open(c *contents, lock vfs.Lock) (*Dir, error) {
	if c.damage() != nil {
		if err := c.numberBehind(); err != nil {
			return nil, err
		}
	}
	o := c.journal()
	d := &Dir{contents: c, writer: catalog.NewWriter(c.state), owner: owner{o: &c.o, lock: lock}}
	o.Owns = func() error { return d.owner.lock.Held() }
	d.log = journal.Open(o, c.log)
	d.owner.log = d.log
	d.syncs.written = map[int64]bool{}
	d.indexQueue = indexQueue{syncs: &d.syncs, rows: map[uint64][]described{}}
	d.tail = tail{
		c: c, owner: &d.owner, indexes: &d.indexQueue, syncs: &d.syncs, log: d.log, bad: map[uint64]bool{}, ballast: ballast{o: &c.o},
	}
	d.compaction = compaction{c: c, tail: &d.tail}
	d.queue.open()
	if err := d.settle(); err != nil {
		if noSpace(err) {
			d.o.makeBallast(d.o.Capacity) // the attempt has used up the old one
		}
		return nil, errors.Join(err, d.log.Close())
	}
	safego.Go("catalog", d.run)
	return d, nil
}

// settle makes the recovered state durable. Nothing may be removed or overwritten before that.
func (d *Dir) settle() (err error) {
	if err := d.o.withBallast(d.begin); err != nil {
		return err
	}
	if _, err := d.sweep(); err != nil {
		return err
	}
	if d.data, err = d.space(false); err == nil {
		d.owner.data, d.syncs.data, d.tail.data, d.compaction.data = d.data, d.data, d.data, d.data
		d.indexQueue.indexes = newIndexes(d.contents, d.data)
		d.compaction.provide()
		d.tail.ballast.keep(d.data.Capacity())
		//mutation:deferred-indexes-of-dead-writer
		if !d.contents.log.Closed {
			d.indexQueue.catchUp()
		}
	}
	return err
}

// begin makes the recovered catalog durable.
func (d *Dir) begin() error {
	if err := d.syncAhead(); err != nil {
		return err
	}
	switch {
	//mutation:unsynced-snapshot-trusted
	case d.damage() != nil || d.contents.log.Shadowed:
		return d.compaction.compact()
	case d.contents.log.Files == 0:
		return d.log.Begin() // before data files exist: see withoutCatalog
	}
	if err := d.log.Resume(); err != nil {
		return err
	}
	return d.settleAhead(d.log)
}

// Store is the identity of the store.
func (d *Dir) Store() [16]byte { return d.identity.store }

// Space returns the space that has the bytes of checkpoints.
func (d *Dir) Space() *segment.Space { return d.data }

// Close commits the changes that were handed over, and releases the directory for the next opener.
func (d *Dir) Close() error {
	if err := d.queue.close(); err != nil {
		return err
	}
	end := d.log.Close
	if len(d.tail.area.records) > 0 {
		end = d.log.Leave
	}
	ended := end()
	if err := errors.Join(ended, d.owner.owns()); err != nil {
		d.data.Bar(err) // another process may own the data files by now
	}
	return errors.Join(ended, d.data.Close(), d.owner.lock.Close(), d.o.release())
}
