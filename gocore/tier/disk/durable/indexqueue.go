package durable

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/tier/disk/segment"
)

// Index entries of small checkpoints that are committed one by one are deferred, as a write for each would make such a commit a quarter slower. They are
// written when they have accumulated, when no commit has come for idleDelay, or when the directory is closed. Meanwhile the records are in the commit area.
// In a store without commit areas, or for checkpoints without checksums, only the catalog has them. If the process dies, the next writer adds the entries:
// see catchUp.
const (
	putOffRows  = 128
	putOffBytes = 64 << 20 // of the space
	idleDelay   = 100 * time.Millisecond
)

// indexQueue holds the deferred index entries. The committing goroutine owns it.
type indexQueue struct {
	rows    map[uint64][]described // by data file
	count   int
	bytes   int64
	written map[int64]bool // segments whose indexes were written since their last sync
	suspect []int64        // segments whose sync failed, and that no Land call has reported yet
	idle    *time.Timer
}

func newIndexQueue() indexQueue {
	return indexQueue{rows: map[uint64][]described{}, written: map[int64]bool{}}
}

// enqueue queues index entries for a group, and writes them if enough have accumulated. A checkpoint whose entry cannot be written is durable all the same.
func (d *Dir) enqueue(group []*Change) {
	if !d.identity.index {
		return
	}
	for _, c := range group {
		if c.Put == nil || c.Err != nil {
			continue
		}
		row := *c.Put
		d.identity.locate(&row, c.Off)
		for _, x := range row.Extents {
			said := describe(c.History, &row, x.File)
			said.change = c
			d.rows[x.File] = append(d.rows[x.File], said)
		}
		d.count++
		d.bytes += c.Put.Bytes()
	}
	rows := putOffRows
	if d.o.prompt {
		rows = 1
	}
	if d.count >= rows || d.bytes >= putOffBytes {
		d.writeIndexes()
	}
}

// sayAtOnce writes the deferred entries, including those of this group, if checkpoints of the group have checksums and their records are not in a commit
// area.
func (d *Dir) sayAtOnce(group []*Change) {
	summed := func(c *Change) bool { return c.Put != nil && c.Put.Sums != nil }
	if d.identity.commits && slices.ContainsFunc(group, summed) {
		d.writeIndexes()
	}
}

// writeIndexes writes the deferred entries.
func (d *Dir) writeIndexes() {
	for _, number := range slices.Sorted(maps.Keys(d.rows)) {
		rows := slices.DeleteFunc(d.rows[number], func(r described) bool { return r.change.Err != nil }) // it failed after it was deferred
		if len(rows) == 0 {
			continue
		}
		switch err := d.indexes.add(number, rows); {
		case err == nil:
			d.written[int64(number)-1] = true
		case errors.Is(err, segment.ErrSuspect):
			d.suspect = append(d.suspect, int64(number)-1)
		} // indexes.failed logs other errors
	}
	clear(d.rows)
	d.count, d.bytes = 0, 0
	killpoint.Pass(killpoint.IndexWritten)
}

// unsynced returns the given segments and those whose indexes were written since their last sync.
func (d *Dir) unsynced(segments []int64) []int64 {
	segments = slices.AppendSeq(segments, maps.Keys(d.written))
	clear(d.written)
	slices.Sort(segments)
	return slices.Compact(segments)
}

// drainIndexes writes and syncs deferred entries without a commit. The next group reports segments whose sync fails here.
func (d *Dir) drainIndexes() {
	if d.count > 0 && d.owns() == nil {
		d.writeIndexes()
	}
	for number := range d.syncAll(d.unsynced(nil)) {
		d.suspect = append(d.suspect, number)
	}
}

// awaitIdle schedules the deferred work for when no commit has come for idleDelay. The timer may have fired while the last commit ran.
func (d *Dir) awaitIdle() {
	if d.count+len(d.written)+len(d.area.records) > 0 {
		d.restartIdleTimer(cmp.Or(d.o.idle, idleDelay))
	}
}

// restartIdleTimer wakes run after delay without a commit.
func (d *Dir) restartIdleTimer(delay time.Duration) {
	if d.idle == nil {
		d.idle = time.AfterFunc(delay, d.becameIdle)
	} else {
		d.idle.Reset(delay)
	}
}

// becameIdle is called by the timer.
func (d *Dir) becameIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idled = true
	d.work.Signal()
}
