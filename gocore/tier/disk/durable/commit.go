package durable

import (
	"fmt"
	"slices"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// Change is one step of the store's state: a checkpoint that was written, or one that is dropped. The caller sets exactly one of Put, Drop, Clear,
// Retention and Clarify.
type Change struct {
	History string
	Key     model.Key // Drop
	Serial  uint64    // Drop, Clear: the newest version that is affected
	// Put is a checkpoint. Dir sets its Extents, and those of its Sources from the Offsets in its Difference: the bytes of sources have been written before.
	Put       *catalog.Row
	Off       int64 // Put: offset in the space of its bytes, containers, or own object, which are written in whole blocks
	Drop      bool
	Clear     bool
	Retention *model.Retention
	Clarify   bool // no change: a batch that resolves the uncertainty about earlier changes
	// Together puts the change into the batch of the one before it: of changes that are handed over by one call, all of these count, or none does. A batch
	// has at most journal.MostPayload bytes. If one of them fails, so do the others of the batch.
	Together bool
	Tag      any     // for the caller's use
	Watcher  Watcher // nil: none

	// Err is why the change is not durable. Uncertain: the change may or may not be durable. It turns out not to be as soon as a later change is durable.
	// Until then the caller must keep the written bytes in place.
	Err       error
	Uncertain bool
	record    *catalog.Record
}

// Watcher is told when a change has landed, after Land or Apply. No lock is held.
type Watcher interface{ Landed(c *Change) }

// run commits groups of changes until the directory is closed and the queue is empty.
func (d *Dir) run() {
	defer close(d.ended)
	for {
		group, nudged, idle, closed := d.take()
		switch {
		case len(group) > 0:
			d.commit(group)
			d.awaitIdle()
		case idle:
			nudged = d.flushIdleArea() || nudged
			fallthrough
		default:
			//mutation:deferred-indexes-when-idle
			d.drainIndexes()
		}
		if len(group) == 0 && !nudged {
			if closed {
				if d.owner.owns() == nil {
					d.indexQueue.renewStale()
				}
				return
			}
			continue
		}
		if d.o.Landed != nil {
			d.o.Landed()
		}
	}
}

func (d *Dir) commit(group []*Change) {
	if err := d.owner.owns(); err != nil {
		refuse(group, err)
		d.land(group, nil)
		return
	}
	slices.SortStableFunc(group, clarifiesFirst)
	if d.tail.unclear {
		group = d.clarify(group)
	}
	var failed map[int64]error
	if !d.tail.unclear {
		failed = d.write(group)
	}
	d.land(group, d.syncs.suspects(failed))
	if d.o.prompt {
		d.flushIdleArea()
	}
	d.compaction.startAnew()
	d.tail.ballast.keep(d.data.Capacity())
}

// clarifiesFirst sorts Clarify changes first: they do not resolve an uncertainty that arises in their own group.
func clarifiesFirst(a, b *Change) int {
	switch {
	case a.Clarify == b.Clarify:
		return 0
	case a.Clarify:
		return -1
	}
	return 1
}

// write makes a group durable, and returns the segments whose sync failed.
func (d *Dir) write(group []*Change) map[int64]error {
	d.refuseSources(group)
	//mutation:file-of-an-empty-checkpoint
	d.createFiles(group)
	d.indexQueue.enqueue(group)
	d.encode(group)
	failTogether(group)
	failed, done := d.tail.commitInArea(group)
	if !done {
		d.indexQueue.writeAtOnce(group)
		//mutation:catalog-before-data
		failed = d.syncs.sync(group)
		killpoint.Pass(killpoint.DataSynced)
		failTogether(group)
		d.tail.chooseArea(group)
		d.tail.record(group)
		d.tail.markUncertain(group)
	}
	d.confirm(group)
	return failed
}

// refuseSources refuses checkpoints of which a source lies where nothing can have been written.
func (d *Dir) refuseSources(group []*Change) {
	for _, c := range group {
		if c.Put == nil || c.Put.Difference == nil || c.Err != nil {
			continue
		}
		if c.Err = c.Put.Difference.Check(); c.Err != nil {
			continue
		}
		capacity := d.data.Capacity()
		for _, s := range c.Put.Difference.Sources {
			if n := blocks(s.Bytes()); s.Offset < 0 || s.Offset%segment.Block != 0 || s.Offset > capacity || n > capacity-s.Offset {
				c.Err = fmt.Errorf("a source of %d bytes at byte %d of the space: %w", s.Bytes(), s.Offset, segment.ErrRange)
				break
			}
		}
	}
}

// createFiles creates the data files of checkpoints without bytes, which no write has created: a row refers only to files that are there, with their heads.
func (d *Dir) createFiles(group []*Change) {
	for _, c := range group {
		if c.Put != nil && c.Err == nil && c.Put.Stored() == 0 {
			first, _ := d.data.Segments(c.Off, catalog.Block)
			c.Err = d.data.Create(first)
		}
	}
}

// confirm verifies ownership again before a group is acknowledged. A process that took the directory over since the batch was begun may not have seen the
// batch. If ownership cannot be confirmed, Dir writes nothing more. The batch is on the medium, but the changes are reported as uncertain.
func (d *Dir) confirm(group []*Change) {
	err := d.owner.owns()
	if err == nil {
		return
	}
	if d.owner.lost == nil {
		err = d.owner.lose(err)
	}
	for _, c := range group {
		if c.Err == nil {
			c.Err, c.Uncertain = err, true
		}
	}
}

// refuse sets the error of those changes of a group that have none yet.
func refuse(group []*Change, err error) {
	for _, c := range group {
		if c.Err == nil {
			c.Err = err
		}
	}
}

// failTogether fails the changes that go together with one that has failed.
func failTogether(group []*Change) {
	for len(group) > 0 {
		n := 1
		for n < len(group) && group[n].Together {
			n++
		}
		for _, c := range group[:n] {
			if c.Err != nil {
				refuse(group[:n], c.Err)
				break
			}
		}
		group = group[n:]
	}
}

// clarify resolves the uncertainty about earlier changes with an empty batch. No other batch is attempted before that one is on the medium. That limits the
// uncertain changes, however long writes keep failing.
func (d *Dir) clarify(group []*Change) []*Change {
	if err := d.tail.appendWith([][]byte{nil}, group); err != nil {
		for _, c := range group {
			c.Err = err
		}
		return group
	}
	return append([]*Change{{Clarify: true}}, group...)
}

func (d *Dir) land(group []*Change, suspect []int64) {
	if d.o.Land != nil {
		d.o.Land(group, suspect)
	} else {
		d.applyAll(group)
	}
	for _, c := range group {
		if c.Watcher != nil {
			c.Watcher.Landed(c)
		}
	}
}

func (d *Dir) applyAll(group []*Change) {
	d.o.Guard.Lock()
	defer d.o.Guard.Unlock()
	for _, c := range group {
		d.Apply(c)
	}
}

// Apply applies a durable change to State. The caller calls it once for each landed change, in order, under Guard.
func (d *Dir) Apply(c *Change) {
	if c.record == nil {
		return
	}
	if c.Err != nil {
		d.writer.Abandoned(c.record)
		return
	}
	if err := d.writer.Acknowledged(c.record); err != nil {
		panic("durable: what was written to the catalog does not fit what it says: " + err.Error())
	}
}

func (d *Dir) encode(group []*Change) {
	d.o.Guard.Lock()
	defer d.o.Guard.Unlock()
	for _, c := range group {
		if c.Err == nil && !c.Clarify {
			c.record = d.writer.Record()
			c.Err = d.say(c)
		}
	}
}

// say encodes a change into its record.
func (d *Dir) say(c *Change) error {
	switch {
	case c.Put != nil:
		d.identity.locate(c.Put, c.Off)
		return c.record.Put(c.History, c.Put)
	case c.Drop:
		return c.record.Drop(c.History, c.Key, c.Serial)
	case c.Clear:
		return c.record.Clear(c.History, c.Serial)
	}
	return c.record.Retain(c.History, c.Retention)
}
