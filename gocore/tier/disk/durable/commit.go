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
)

// Change is a step from one state of the store to the next: a checkpoint that has been written, or one that is no more. Exactly one of Put, Drop,
// Clear, Retention and Clarify is asked for.
type Change struct {
	History   string
	Key       model.Key // Drop
	Serial    uint64    // Drop, Clear: of the newest version that is meant
	Put       *catalog.Row
	Off       int64 // Put: where in the space its bytes have been written, in whole blocks
	Drop      bool
	Clear     bool
	Retention *catalog.Retention
	Clarify   bool // nothing: it ends the uncertainty about others
	Tag       any  // the caller's

	// Err is why the change is not durable. Uncertain tells that nobody knows whether it is, until a later one is: then it is not. So long, what was
	// written must stay where it is.
	Err       error
	Uncertain bool
	record    *catalog.Record
}

// Commit takes changes over, in this order; Land is told what has become of them. It waits for nothing. Changes that come together share their syncs.
func (d *Dir) Commit(changes ...*Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append(d.queue, changes...)
	d.work.Signal()
}

// Nudge has Landed called soon, be there changes or not.
func (d *Dir) Nudge() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nudged = true
	d.work.Signal()
}

// run commits groups of changes until the directory is closed and none is left.
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

// clarifiesFirst puts changes that end uncertainty before others: of what becomes uncertain in the same group they say nothing.
func clarifiesFirst(a, b *Change) int {
	switch {
	case a.Clarify == b.Clarify:
		return 0
	case a.Clarify:
		return -1
	}
	return 1
}

// write makes a group durable, and returns the segments a sync of which has failed.
func (d *Dir) write(group []*Change) map[int64]error {
	d.enqueue(group)
	d.encode(group)
	failed, done := d.commitInArea(group)
	if !done {
		d.sayAtOnce(group)
		//mutation:catalog-before-data
		failed = d.sync(group)
		killpoint.Pass(killpoint.DataSynced)
		d.chooseArea(group)
		d.record(group)
		d.markUncertain(group)
	}
	d.confirm(group)
	return failed
}

// confirm asks once more whose the directory is, before anything is acknowledged: a process that has taken it over since the batch was begun may not have
// found the batch. Where that cannot be told nothing is written any more: the batch is there, and those who gave it are told that it may not be.
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

// refuse gives the changes of a group that have no error yet one.
func refuse(group []*Change, err error) {
	for _, c := range group {
		if c.Err == nil {
			c.Err = err
		}
	}
}

// clarify ends the uncertainty about earlier changes with a batch that says nothing. Before it is on the medium no other batch is tried: so few changes are
// uncertain at a time, however long nothing can be written.
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
		return
	}
	d.o.Guard.Lock()
	defer d.o.Guard.Unlock()
	for _, c := range group {
		d.Apply(c)
	}
}

// Apply makes State what it is with a change, if that is durable. It is called once for each change that has landed, in their order, under Guard.
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

// sync brings the data of a group down, and returns the segments where that failed.
func (d *Dir) sync(group []*Change) (failed map[int64]error) {
	failed = d.syncAll(d.unsynced(d.touched(group)))
	for _, c := range group {
		if c.Put == nil {
			continue
		}
		first, end := d.data.Segments(c.Off, length(c.Put))
		for ; first < end && c.Err == nil; first++ {
			//mutation:data-sync-error-ignored
			c.Err = failed[first]
		}
	}
	return failed
}

// suspects are the segments of which a sync has failed, also of those of which nobody has been told yet.
func (d *Dir) suspects(failed map[int64]error) []int64 {
	all := slices.AppendSeq(d.suspect, maps.Keys(failed))
	d.suspect = nil
	slices.Sort(all)
	return slices.Compact(all)
}

// touched are the segments that a group has been written to.
func (d *Dir) touched(group []*Change) []int64 {
	var all []int64
	for _, c := range group {
		if c.Put != nil && c.Err == nil {
			first, end := d.data.Segments(c.Off, length(c.Put))
			for ; first < end; first++ {
				all = append(all, first)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// errUnsynced: the goroutine that was to sync a segment has panicked.
var errUnsynced = fmt.Errorf("the data was not synced: %w", safego.ErrPoisoned)

// syncAll syncs segments, beside each other, and returns the errors of those where that failed.
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

// length is how many bytes of the space a row takes.
func length(row *catalog.Row) int64 { return rooms(row.Layout.Slot) }

// rooms is how many bytes of the space a slot takes.
func rooms(slot int64) int64 { return max((slot+catalog.Block-1)/catalog.Block, 1) * catalog.Block }

// batchBytes bounds what the changes of a batch say, unless one alone says more: it is what damage to the catalog costs before that is written anew. A sync
// for every batch costs a group of many small checkpoints some microseconds each.
const batchBytes = 16 << 10

// record writes what is to be said of a group to the catalog, batch by batch. Behind a batch that failed no other is tried, unless there was no room for it:
// one with drops may find some.
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

// batches are the changes of a group that have records, in batches of at most batchBytes unless one change alone has more.
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
			if len(batch) > 0 && size+n > batchBytes {
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

// A batch may use so many bytes, and half as many as its records have, to say again what these rely on: so damage to another batch does not cost them, and
// the log does not become much longer. What it leaves over the next ones may use, for what is longer, up to a limit.
const (
	repeatBytes = 256
	mostSpare   = 1 << 20
)

// batch is the records of changes, and before them what they rely on.
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

// encode makes the records of a group.
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

// say puts into the record of a change what it says.
func (d *Dir) say(c *Change) error {
	switch {
	case c.Put != nil:
		c.Put.Extents = d.identity.extents(c.Off, length(c.Put))
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

// mostFiles is how many files of the log take up the slack. Each opening that writes begins one: without this limit, a process that opens a store for each
// step would leave thousands of small files, and a reader opens every one of them.
const mostFiles = 64

// startAnew writes the catalog anew when it has become much longer than what it says.
func (d *Dir) startAnew() {
	if d.provide() > 0 {
		return
	}
	d.refused = 0
	if err := d.compact(); err != nil {
		// It goes on as it was, in a new file, and is tried again when there is more of it.
		d.refused = d.excess()
		logring.Add(logring.Warning, "the catalog in "+d.o.Dir+" could not be written anew: "+err.Error())
	}
	d.provide()
}

// spareBytes is for batches of some thousand changes, and for what the catalog says grows by while a disk stays full.
const spareBytes = 1 << 20

// mostShare is the part of what the data may take, as a divisor, that is left to the catalog at the most: a small store on a small disk has to do with less.
const mostShare = 8

// provide sees to it that data does not take what the catalog will need of a disk that becomes full: until it is written anew, and for that. It returns how
// much longer the catalog may become before.
func (d *Dir) provide() (before int64) {
	d.o.Guard.Lock()
	live := d.state.LiveBytes()
	d.o.Guard.Unlock()
	before = d.refused + 2*live + d.allowed() - d.excess() + 1
	needed := max(before-d.log.Ahead(), 0) + 2*live + journal.SnapshotRoom + spareBytes // a snapshot says definitions twice
	d.data.Leave(min(needed, d.data.Capacity()/mostShare))
	return before
}

// allowed is how much longer than twice what it says the log may become.
func (d *Dir) allowed() int64 {
	if d.o.Slack == 0 {
		return slack
	}
	return d.o.Slack
}

// excess is the length of the log, with a share of the slack for each file but the first.
func (d *Dir) excess() int64 {
	return d.log.Said() + int64(max(d.log.Files()-1, 0))*d.allowed()/mostFiles
}

// A record of a snapshot fills a part of it in the log.
const _ = uint(journal.SnapshotRecord-catalog.SnapshotRecord) + uint(catalog.SnapshotRecord-journal.SnapshotRecord)

// compact writes the catalog anew. What it says is copied first, so that nobody has to wait for the medium.
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
	d.area.file = 0 // a snapshot does not say in which area it is gone on, and it may count also where it fails
	return d.log.Compact(func(give func(record []byte) error) error {
		for _, record := range records {
			if err := give(record); err != nil {
				return err
			}
		}
		return nil
	})
}
