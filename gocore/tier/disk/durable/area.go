package durable

import (
	"slices"
	"time"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/logring"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// A batch of the catalog costs a sync in addition to that of the data. So the records of a few checkpoints are written to the commit area of the data file
// that has their bytes, and one sync makes both durable. The catalog gets these records later, in one batch: when they fill a batch, when no commit has
// come for idleDelay, with the next batch that is written for another reason, or when the directory is closed.
//
// Each batch of the catalog names the area that may continue it. A frame in the area names the batch that it continues: the next batch makes all these
// frames obsolete, and they are overwritten. Only the last frame may be unacknowledged, so the bytes of its checkpoints may be missing: their checksums
// tell.

// mostAheadBytes bounds the bytes of checkpoints that a reader verifies before the last frame counts.
const mostAheadBytes = 16 << 20

// checkedBytes is the number of bytes that a reader has to read, or to decode, in order to verify a row.
func checkedBytes(row *catalog.Row) int64 {
	//mutation:long-decoding-in-a-commit-area
	return max(row.Bytes(), blocks(row.Layout.Slot))
}

// blocks is a length in whole blocks, at least one.
func blocks(n int64) int64 { return max(segment.Blocks(n), segment.Block) }

// area is the commit area that is in use. The committing goroutine owns it.
type area struct {
	file    uint64   // number of the data file, as named by the catalog's last batch; 0: none
	next    uint64   // number of the data file that the next batch names; 0: none
	end     int64    // of the frames that continue the last batch
	records [][]byte // of these frames; the catalog does not have them yet
	bytes   int      // size of these records in a batch
	in      uint64   // number of the data file that has these frames
	late    int      // consecutive failures to write the records to the catalog
	doubt   bool     // a frame whose write failed may be on the medium, until the catalog has its next batch
}

// commitInArea commits a group with one sync, if possible. If done is false, nothing was committed.
func (t *tail) commitInArea(group []*Change) (failed map[int64]error, done bool) {
	var changes []*Change
	for _, c := range group {
		if c.Err == nil && !c.Clarify {
			changes = append(changes, c)
		}
	}
	if !t.suitsArea(changes) {
		return nil, false
	}
	spare := t.spare
	records := t.batch(changes)
	bytes := bytesOf(records)
	frame := t.c.commitArea(t.area.file).Append(nil, t.log.Last(), t.area.end, slices.Concat(records...))
	frame = append(frame, make([]byte, segment.Blocks(int64(len(frame)))-int64(len(frame)))...)
	if t.area.bytes+bytes > batchBytes || t.area.end+int64(len(frame)) > t.c.identity.commitBytes() {
		t.spare = spare
		return nil, false
	}
	number := int64(t.area.file) - 1
	if err := t.data.WriteCommits(number, t.area.end, frame); err != nil {
		logring.Add(logring.Warning, t.c.o.Dir+": what is committed in "+segment.FileName(t.area.file)+" takes two syncs from now on: "+err.Error())
		t.bad[t.area.file], t.spare = true, spare
		t.area.file, t.area.next, t.area.doubt = 0, 0, true
		return nil, false
	}
	killpoint.Pass(killpoint.CommitWritten)
	t.syncs.written[number] = true
	failed = t.syncs.sync(group)
	killpoint.Pass(killpoint.BatchSynced)
	if err := failed[number]; err != nil {
		t.area.file, t.area.next, t.area.doubt = 0, 0, true
		refuse(changes, err)
		_ = t.appendWith([][]byte{nil}, changes) // after another batch the frame is obsolete
		t.markUncertain(changes)
		return failed, true
	}
	t.area.end += int64(len(frame))
	t.area.records, t.area.bytes, t.area.in = append(t.area.records, records...), t.area.bytes+bytes, t.area.file
	return failed, true
}

// markUncertain marks failed changes whose records a frame may have, as that frame may count.
func (t *tail) markUncertain(changes []*Change) {
	if !t.area.doubt {
		return
	}
	t.unclear = true
	for _, c := range changes {
		c.Uncertain = c.Uncertain || c.Err != nil
	}
}

// suitsArea tells whether one sync of the area's data file covers all bytes of the changes, and their checksums would reveal missing bytes. A difference is
// never committed there: to verify it, a reader has to decode bytes of any number of other objects, in other data files.
func (t *tail) suitsArea(changes []*Change) bool {
	touched := t.syncs.touched(changes)
	if t.area.file == 0 || t.unclear || len(touched) == 0 { // without data, a batch of the catalog takes one sync too
		return false
	}
	bytes := int64(0)
	for _, c := range changes {
		if c.Put != nil {
			if bytes += checkedBytes(c.Put); c.Put.Sums == nil || c.Put.Difference != nil {
				return false
			}
		}
	}
	elsewhere := func(number int64) bool { return number != int64(t.area.file)-1 }
	return bytes <= mostAheadBytes && !slices.ContainsFunc(touched, elsewhere)
}

// chooseArea chooses the area that continues the batches of a group: that of the file with the group's last checkpoint.
func (t *tail) chooseArea(group []*Change) {
	touched := t.syncs.touched(group)
	if !t.c.identity.commits || len(touched) == 0 {
		return
	}
	number := touched[len(touched)-1]
	if t.area.next = uint64(number) + 1; t.bad[t.area.next] || t.data.MakeCommits(number) != nil {
		t.area.next = 0 // for example on a full disk; commits take two syncs then
	}
}

// flushIdleArea writes the records of the commit area to the catalog while no commit runs. After a failure it retries with the next commit, or after
// lateDelay. It returns true when it succeeds after a failure, as data files may be removable then.
func (d *Dir) flushIdleArea() (after bool) {
	late := d.tail.area.late
	err := d.tail.flush()
	if err == nil || d.owner.lost != nil {
		return late > 0 && err == nil
	}
	if late == 0 {
		logring.Add(logring.Warning, d.o.Dir+": the latest commits stand in a data file, and not in the catalog: "+err.Error())
	}
	d.tail.area.late++
	d.wakeAfter(lateDelay << min(late, mostLate))
	return false
}

// lateDelay is the pause after the first failure of flushIdleArea. It doubles with each failure, up to mostLate times, as each attempt may leave a file.
const (
	lateDelay = time.Second
	mostLate  = 6
)

// Discard removes the file of an empty segment, like segment.Space.Discard. Only Landed may call it. It fails while the records in the file's commit area
// cannot be written to the catalog.
func (d *Dir) Discard(number int64) error {
	if err := d.tail.leave(uint64(number) + 1); err != nil {
		return err
	}
	return d.data.Discard(number)
}

// leave stops using the commit area of a data file that is to be removed.
func (t *tail) leave(file uint64) error {
	if t.area.in == file {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if t.area.file == file {
		t.area.file = 0
	}
	if t.area.next == file {
		t.area.next = 0
	}
	delete(t.bad, file)
	return nil
}
