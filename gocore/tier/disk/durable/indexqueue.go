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

// What the indexes are to say of small checkpoints that are committed one by one is put off, until there is more of it, no commit has come for idleDelay, or the
// directory is closed: a write for each would make such a commit a quarter slower. Meanwhile the commit area says it, or, where a store has none or checkpoints
// have no checksums, the catalog alone; a process that dies leaves it to the next writer to say it, in catchUp.
const (
	putOffRows  = 128
	putOffBytes = 64 << 20 // of the space
	idleDelay   = 100 * time.Millisecond
)

// indexQueue is what the indexes are still to say. The goroutine that commits has it.
type indexQueue struct {
	rows    map[uint64][]described // by data file
	count   int
	bytes   int64
	written map[int64]bool // segments with indexes that were written since they were synced
	suspect []int64        // segments a sync of which has failed, and nobody was told
	idle    *time.Timer
}

func newIndexQueue() indexQueue {
	return indexQueue{rows: map[uint64][]described{}, written: map[int64]bool{}}
}

// enqueue has the indexes say what lies in the data files from now on, at once or later. What cannot be said there is durable all the same.
func (d *Dir) enqueue(group []*Change) {
	if !d.identity.index {
		return
	}
	for _, c := range group {
		if c.Put == nil || c.Err != nil {
			continue
		}
		row := *c.Put
		row.Extents = d.identity.extents(c.Off, length(c.Put))
		for _, x := range row.Extents {
			said := describe(c.History, &row, x.File)
			said.change = c
			d.rows[x.File] = append(d.rows[x.File], said)
		}
		d.count++
		d.bytes += length(c.Put)
	}
	rows := putOffRows
	if d.o.prompt {
		rows = 1
	}
	if d.count >= rows || d.bytes >= putOffBytes {
		d.writeIndexes()
	}
}

// sayAtOnce writes what was put off, and what indexes are to say of a group, if that has checksums and is not said in a commit area.
func (d *Dir) sayAtOnce(group []*Change) {
	summed := func(c *Change) bool { return c.Put != nil && c.Put.Sums != nil }
	if d.identity.commits && slices.ContainsFunc(group, summed) {
		d.writeIndexes()
	}
}

// writeIndexes writes what was put off.
func (d *Dir) writeIndexes() {
	for _, number := range slices.Sorted(maps.Keys(d.rows)) {
		rows := slices.DeleteFunc(d.rows[number], func(r described) bool { return r.change.Err != nil }) // since it was put off
		if len(rows) == 0 {
			continue
		}
		switch err := d.indexes.add(number, rows); {
		case err == nil:
			d.written[int64(number)-1] = true
		case errors.Is(err, segment.ErrSuspect):
			d.suspect = append(d.suspect, int64(number)-1)
		} // of other errors the log tells
	}
	clear(d.rows)
	d.count, d.bytes = 0, 0
	killpoint.Pass(killpoint.IndexWritten)
}

// unsynced are these segments, and those whose indexes have been written since they were synced.
func (d *Dir) unsynced(segments []int64) []int64 {
	segments = slices.AppendSeq(segments, maps.Keys(d.written))
	clear(d.written)
	slices.Sort(segments)
	return slices.Compact(segments)
}

// drainIndexes writes and syncs what no commit does. Of segments where a sync fails the next group is told.
func (d *Dir) drainIndexes() {
	if d.count > 0 && d.owns() == nil {
		d.writeIndexes()
	}
	for number := range d.syncAll(d.unsynced(nil)) {
		d.suspect = append(d.suspect, number)
	}
}

// awaitIdle has what was put off done when no commit has come for idleDelay. The timer may have fired while the last one was on its way.
func (d *Dir) awaitIdle() {
	if d.count+len(d.written)+len(d.area.records) > 0 {
		d.restartIdleTimer(cmp.Or(d.o.idle, idleDelay))
	}
}

// restartIdleTimer has run go on when no commit has come for so long.
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
