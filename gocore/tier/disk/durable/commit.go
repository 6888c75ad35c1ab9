package durable

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
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

// Commit hands changes over, in this order, without waiting; Land is called with their outcome. Changes that arrive together share their syncs.
func (d *Dir) Commit(changes ...*Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, changes...)
	d.work.Signal()
}

// Ended is closed when nothing is committed any more: the directory was closed, or the goroutine that commits has panicked.
func (d *Dir) Ended() <-chan struct{} { return d.ended }

// Sync waits until all changes that were handed over before have landed.
func (d *Dir) Sync() error { return d.await(&Change{Clarify: true}) }

// await hands a change over, and waits until it has landed.
func (d *Dir) await(c *Change) error {
	landed := make(landing)
	c.Watcher = landed
	d.Commit(c)
	select {
	case <-landed:
		return c.Err
	case <-d.ended:
	}
	select {
	case <-landed: // with the last changes before the end
		return c.Err
	default:
		return ErrClosed
	}
}

// landing is closed when a change has landed.
type landing chan struct{}

// Landed implements Watcher.
func (l landing) Landed(*Change) { close(l) }

// Nudge causes a call of Landed soon, whether there are changes or not.
func (d *Dir) Nudge() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nudged = true
	d.work.Signal()
}

// run commits groups of changes until the directory is closed and the queue is empty.
func (d *Dir) run() {
	defer close(d.ended)
	for {
		d.mu.Lock()
		for len(d.queue) == 0 && !d.nudged && !d.idled && !d.closed {
			d.work.Wait()
		}
		group, nudged, closed, idle := d.queue, d.nudged, d.closed, d.idled || d.closed
		d.queue, d.nudged, d.idled = nil, false, false
		d.mu.Unlock()
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
				if d.owns() == nil {
					d.indexes.renewStale()
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
	if err := d.owns(); err != nil {
		refuse(group, err)
		d.land(group, nil)
		return
	}
	slices.SortStableFunc(group, clarifiesFirst)
	if d.unclear {
		group = d.clarify(group)
	}
	var failed map[int64]error
	if !d.unclear {
		failed = d.write(group)
	}
	d.land(group, d.suspects(failed))
	if d.o.prompt {
		d.flushIdleArea()
	}
	d.startAnew()
	d.keepBallast()
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
	d.enqueue(group)
	d.encode(group)
	failTogether(group)
	failed, done := d.commitInArea(group)
	if !done {
		d.sayAtOnce(group)
		//mutation:catalog-before-data
		failed = d.sync(group)
		killpoint.Pass(killpoint.DataSynced)
		failTogether(group)
		d.chooseArea(group)
		d.record(group)
		d.markUncertain(group)
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
	err := d.owns()
	if err == nil {
		return
	}
	if d.lost == nil {
		err = d.lose(err)
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
	if err := d.appendWith([][]byte{nil}, group); err != nil {
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

// sync syncs the data of a group, and returns the segments whose sync failed.
func (d *Dir) sync(group []*Change) (failed map[int64]error) {
	failed = d.syncAll(d.unsynced(d.needed(group)))
	for _, c := range group {
		if c.Put == nil || c.Err != nil {
			continue
		}
		for number := range d.segmentsOf(c) {
			//mutation:data-sync-error-ignored
			if c.Err = failed[number]; c.Err != nil {
				break
			}
		}
	}
	return failed
}

// segmentsOf yields the segments that have the bytes of a put, and those of its sources. The bytes of a source may be unsynced, as the row of the checkpoint
// that wrote them may come later, or never.
func (d *Dir) segmentsOf(c *Change) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		goes := true
		each := func(off, n int64) {
			for first, end := d.data.Segments(off, n); first < end && goes; first++ {
				goes = yield(first)
			}
		}
		each(c.Off, c.Put.Bytes())
		if c.Put.Difference != nil {
			for _, s := range c.Put.Difference.Sources {
				each(s.Offset, blocks(s.Bytes()))
			}
		}
	}
}

// needed returns the segments that have bytes of a group, or of its sources.
func (d *Dir) needed(group []*Change) (all []int64) {
	for _, c := range group {
		if c.Put != nil && c.Err == nil {
			all = slices.AppendSeq(all, d.segmentsOf(c))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// suspects returns the segments whose sync failed, including earlier ones that have not been reported yet.
func (d *Dir) suspects(failed map[int64]error) []int64 {
	all := slices.AppendSeq(d.suspect, maps.Keys(failed))
	d.suspect = nil
	slices.Sort(all)
	return slices.Compact(all)
}

// touched returns the segments that have bytes of a group, but for those of its sources.
func (d *Dir) touched(group []*Change) []int64 {
	var all []int64
	for _, c := range group {
		if c.Put != nil && c.Err == nil {
			first, end := d.data.Segments(c.Off, c.Put.Bytes())
			for ; first < end; first++ {
				all = append(all, first)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// errUnsynced: the goroutine that was to sync a segment panicked.
var errUnsynced = fmt.Errorf("the data was not synced: %w", safego.ErrPoisoned)

// syncAll syncs segments concurrently, and returns the errors of those that failed.
func (d *Dir) syncAll(segments []int64) map[int64]error {
	failed := map[int64]error{}
	if len(segments) == 1 {
		if err := d.data.Sync(segments[0]); err != nil {
			failed[segments[0]] = err
		}
		return failed
	}
	for _, number := range segments {
		failed[number] = errUnsynced
	}
	var mu sync.Mutex
	var busy sync.WaitGroup
	for _, number := range segments {
		busy.Add(1)
		safego.Go("data sync", func() {
			defer busy.Done()
			err := d.data.Sync(number)
			mu.Lock()
			defer mu.Unlock()
			if failed[number] = err; err == nil {
				delete(failed, number)
			}
		})
	}
	busy.Wait()
	return failed
}

// batchBytes bounds the records of a batch, unless one change alone is larger. It is the loss that damage to one batch can cause before the catalog is
// compacted. A sync for every batch costs a group of many small checkpoints some microseconds each.
const batchBytes = 16 << 10

// record writes the records of a group to the catalog, batch by batch. It stops at the first failed batch, unless the disk was full: a later batch with
// drops may find room.
func (d *Dir) record(group []*Change) {
	var failed error
	for batch := range batches(group) {
		if failed != nil {
			refuse(batch, failed)
		} else if err := d.append(batch); d.unclear || !noSpace(err) {
			failed = err
		}
	}
}

// batches splits the changes of a group that have records into batches of at most batchBytes, unless one change alone has more, or those that go together.
func batches(group []*Change) iter.Seq[[]*Change] {
	return func(yield func([]*Change) bool) {
		var batch []*Change
		size := 0
		for _, c := range group {
			if c.Err != nil || c.Clarify {
				continue
			}
			n := len(c.record.Bytes()) + journal.RecordHead
			//mutation:batch-too-long
			if len(batch) > 0 && size+n > batchBytes && !c.Together {
				if !yield(batch) {
					return
				}
				batch, size = nil, 0
			}
			batch, size = append(batch, c), size+n
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// append writes a batch.
func (d *Dir) append(batch []*Change) error {
	err := d.appendWith(d.batch(batch), batch)
	if err != nil {
		for _, c := range batch {
			//mutation:uncertain-commit-not-marked
			c.Err, c.Uncertain = err, d.unclear
		}
	}
	return err
}

// A batch may spend repeatBytes, plus half the size of its records, to repeat definitions that its records rely on. Then damage to another batch does not
// lose them, and the log grows little. Later batches may spend the unused rest on longer definitions, up to mostSpare bytes.
const (
	repeatBytes = 256
	mostSpare   = 1 << 20
)

// batch returns the records of changes, preceded by the definitions that they rely on.
func (d *Dir) batch(changes []*Change) [][]byte {
	all := make([]*catalog.Record, len(changes))
	records := make([][]byte, 1, len(changes)+1)
	size := int64(0)
	for i, c := range changes {
		all[i] = c.record
		records = append(records, c.record.Bytes())
		size += int64(len(c.record.Bytes())) + journal.RecordHead
	}
	d.spare = min(d.spare+repeatBytes+size/2, mostSpare)
	//mutation:batch-without-repeat
	if records[0] = catalog.Repeated(all, min(d.spare, journal.MostPayload-size-journal.RecordHead)); len(records[0]) == 0 {
		return records[1:]
	}
	d.spare -= int64(len(records[0]))
	return records
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

// slack is the default of Options.Slack.
const slack = 4 << 20

// mostFiles is the number of log files whose count alone uses up the slack. Each open for writing begins a file. Without this limit, a process that opens a
// store for each step would leave thousands of small files, and a reader opens every one of them.
const mostFiles = 64

// startAnew compacts the catalog when it has become much longer than its live content.
func (d *Dir) startAnew() {
	if d.provide() > 0 {
		return
	}
	d.refused = 0
	if err := d.compact(); err != nil {
		// The catalog continues as it was, in a new file. The next attempt comes when it has grown further.
		d.refused = d.excess()
		logring.Add(logring.Warning, "the catalog in "+d.o.Dir+" could not be written anew: "+err.Error())
	}
	d.provide()
}

// spareBytes covers batches of some thousand changes, and the growth of the catalog while a disk stays full.
const spareBytes = 1 << 20

// mostShare is the largest part of the data's capacity, as a divisor, that is reserved for the catalog: it limits the reserve of a small store on a small
// disk.
const mostShare = 8

// provide reserves disk space for the catalog, so that data cannot take the room that it needs on a full disk: to grow until its compaction, and for the
// compaction itself. It returns the growth in bytes that is left until then.
func (d *Dir) provide() (before int64) {
	d.o.Guard.Lock()
	live := d.state.LiveBytes()
	d.o.Guard.Unlock()
	before = d.refused + 2*live + d.allowed() - d.excess() + 1
	needed := max(before-d.log.Ahead(), 0) + 2*live + journal.SnapshotRoom + spareBytes // a snapshot has definitions twice
	d.data.Leave(min(needed, d.data.Capacity()/mostShare))
	return before
}

// allowed is the number of bytes by which the log may exceed twice its live content.
func (d *Dir) allowed() int64 {
	if d.o.Slack == 0 {
		return slack
	}
	return d.o.Slack
}

// excess is the length of the log, plus a share of the slack for each file but the first.
func (d *Dir) excess() int64 {
	return d.log.Said() + int64(max(d.log.Files()-1, 0))*d.allowed()/mostFiles
}

// A record of a catalog snapshot has exactly the size that the log reserves for one: the unsigned constants overflow otherwise.
const _ = uint(journal.SnapshotRecord-catalog.SnapshotRecord) + uint(catalog.SnapshotRecord-journal.SnapshotRecord)

// compact rewrites the catalog. It copies the state first, so that no caller waits for the medium under Guard.
func (d *Dir) compact() error {
	if err := d.flushArea(); err != nil {
		return err
	}
	var records [][]byte
	d.o.Guard.Lock()
	err := d.state.Snapshot(func(record []byte) error {
		records = append(records, slices.Clone(record))
		return nil
	})
	d.o.Guard.Unlock()
	if err != nil {
		return err
	}
	d.area.file = 0 // a snapshot names no commit area, and it may count even if Compact fails
	return d.log.Compact(func(give func(record []byte) error) error {
		for _, record := range records {
			if err := give(record); err != nil {
				return err
			}
		}
		return nil
	})
}
