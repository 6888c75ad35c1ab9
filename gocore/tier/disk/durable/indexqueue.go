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
	indexes
	syncs *syncs
	rows  map[uint64][]described // by data file
	count int
	bytes int64
}

// enqueue queues index entries for a group, and writes them if enough have accumulated. A checkpoint whose entry cannot be written is durable all the same.
func (q *indexQueue) enqueue(group []*Change) {
	if !q.c.identity.index {
		return
	}
	for _, c := range group {
		if c.Put == nil || c.Err != nil {
			continue
		}
		row := *c.Put
		q.c.identity.locate(&row, c.Off)
		for _, x := range row.Extents {
			said := describe(c.History, &row, x.File)
			said.change = c
			q.rows[x.File] = append(q.rows[x.File], said)
		}
		q.count++
		q.bytes += c.Put.Bytes()
	}
	rows := putOffRows
	if q.c.o.prompt {
		rows = 1
	}
	if q.count >= rows || q.bytes >= putOffBytes {
		q.write()
	}
}

// writeAtOnce writes the deferred entries, including those of this group, if checkpoints of the group have checksums and their records are not in a commit
// area.
func (q *indexQueue) writeAtOnce(group []*Change) {
	summed := func(c *Change) bool { return c.Put != nil && c.Put.Sums != nil }
	if q.c.identity.commits && slices.ContainsFunc(group, summed) {
		q.write()
	}
}

// write writes the deferred entries.
func (q *indexQueue) write() {
	for _, number := range slices.Sorted(maps.Keys(q.rows)) {
		rows := slices.DeleteFunc(q.rows[number], func(r described) bool { return r.change.Err != nil }) // it failed after it was deferred
		if len(rows) == 0 {
			continue
		}
		switch err := q.add(number, rows); {
		case err == nil:
			q.syncs.written[int64(number)-1] = true
		case errors.Is(err, segment.ErrSuspect):
			q.syncs.suspect = append(q.syncs.suspect, int64(number)-1)
		} // indexes.failed logs other errors
	}
	clear(q.rows)
	q.count, q.bytes = 0, 0
	killpoint.Pass(killpoint.IndexWritten)
}

// drainIndexes writes and syncs deferred entries without a commit. The next group reports segments whose sync fails here.
func (d *Dir) drainIndexes() {
	if d.indexQueue.count > 0 && d.owner.owns() == nil {
		d.indexQueue.write()
	}
	d.syncs.syncWritten()
}

// awaitIdle schedules the deferred work for when no commit has come for idleDelay. The timer may have fired while the last commit ran.
func (d *Dir) awaitIdle() {
	if d.indexQueue.count+len(d.syncs.written)+len(d.tail.area.records) > 0 {
		d.wakeAfter(cmp.Or(d.o.idle, idleDelay))
	}
}
