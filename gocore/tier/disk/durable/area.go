package durable

import (
	"errors"
	"slices"
	"time"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/logring"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
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
func (d *Dir) commitInArea(group []*Change) (failed map[int64]error, done bool) {
	var changes []*Change
	for _, c := range group {
		if c.Err == nil && !c.Clarify {
			changes = append(changes, c)
		}
	}
	if !d.suitsArea(changes) {
		return nil, false
	}
	spare := d.spare
	records := d.batch(changes)
	bytes := bytesOf(records)
	frame := d.commitArea(d.area.file).Append(nil, d.log.Last(), d.area.end, slices.Concat(records...))
	frame = append(frame, make([]byte, segment.Blocks(int64(len(frame)))-int64(len(frame)))...)
	if d.area.bytes+bytes > batchBytes || d.area.end+int64(len(frame)) > d.identity.commitBytes() {
		d.spare = spare
		return nil, false
	}
	number := int64(d.area.file) - 1
	if err := d.data.WriteCommits(number, d.area.end, frame); err != nil {
		logring.Add(logring.Warning, d.o.Dir+": what is committed in "+segment.FileName(d.area.file)+" takes two syncs from now on: "+err.Error())
		d.bad[d.area.file], d.spare = true, spare
		d.area.file, d.area.next, d.area.doubt = 0, 0, true
		return nil, false
	}
	killpoint.Pass(killpoint.CommitWritten)
	d.written[number] = true
	failed = d.sync(group)
	killpoint.Pass(killpoint.BatchSynced)
	if err := failed[number]; err != nil {
		d.area.file, d.area.next, d.area.doubt = 0, 0, true
		refuse(changes, err)
		_ = d.appendWith([][]byte{nil}, changes) // after another batch the frame is obsolete
		d.markUncertain(changes)
		return failed, true
	}
	d.area.end += int64(len(frame))
	d.area.records, d.area.bytes, d.area.in = append(d.area.records, records...), d.area.bytes+bytes, d.area.file
	return failed, true
}

// markUncertain marks failed changes whose records a frame may have, as that frame may count.
func (d *Dir) markUncertain(changes []*Change) {
	if !d.area.doubt {
		return
	}
	d.unclear = true
	for _, c := range changes {
		c.Uncertain = c.Uncertain || c.Err != nil
	}
}

// suitsArea tells whether one sync of the area's data file covers all bytes of the changes, and their checksums would reveal missing bytes. A difference is
// never committed there: to verify it, a reader has to decode bytes of any number of other objects, in other data files.
func (d *Dir) suitsArea(changes []*Change) bool {
	touched := d.touched(changes)
	if d.area.file == 0 || d.unclear || len(touched) == 0 { // without data, a batch of the catalog takes one sync too
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
	elsewhere := func(number int64) bool { return number != int64(d.area.file)-1 }
	return bytes <= mostAheadBytes && !slices.ContainsFunc(touched, elsewhere)
}

// chooseArea chooses the area that continues the batches of a group: that of the file with the group's last checkpoint.
func (d *Dir) chooseArea(group []*Change) {
	touched := d.touched(group)
	if !d.identity.commits || len(touched) == 0 {
		return
	}
	number := touched[len(touched)-1]
	if d.area.next = uint64(number) + 1; d.bad[d.area.next] || d.data.MakeCommits(number) != nil {
		d.area.next = 0 // for example on a full disk; commits take two syncs then
	}
}

// bytesOf returns the size of records in a batch.
func bytesOf(records [][]byte) (n int) {
	for _, r := range records {
		n += len(r) + journal.RecordHead
	}
	return n
}

// appendBatch writes records to the catalog, after those of the commit area.
func (d *Dir) appendBatch(records [][]byte) error {
	if len(d.area.records) > 0 && d.area.bytes+bytesOf(records) > batchBytes {
		if err := d.appendAhead(nil); err != nil {
			return err
		}
	}
	return d.appendAhead(records)
}

// appendAhead writes a batch: the records of the commit area, then records, and the number of the area that continues the batch.
func (d *Dir) appendAhead(records [][]byte) error {
	//mutation:commit-area-overwritten
	all := slices.Concat(d.area.records, records)
	if d.area.next > 0 {
		all = append(all, catalog.CommitsIn(d.area.next))
	}
	if err := d.log.AppendAll(all, nil); err != nil {
		d.unclear = d.unclear || !errors.Is(err, journal.ErrNowhere)
		return err
	}
	d.unclear = false // a failed batch before a complete one never counts
	said := len(d.area.records) > 0
	d.area = area{file: d.area.next, next: d.area.next}
	if said {
		d.writeIndexes() // before the area is overwritten
	}
	return nil
}

// flushArea writes the records of the commit area to the catalog.
func (d *Dir) flushArea() error {
	if len(d.area.records) == 0 {
		return nil
	}
	if err := d.owns(); err != nil {
		return err
	}
	return d.appendAhead(nil)
}

// flushIdleArea calls flushArea while no commit runs. After a failure it retries with the next commit, or after lateDelay. It returns true when it succeeds
// after a failure, as data files may be removable then.
func (d *Dir) flushIdleArea() (after bool) {
	late := d.area.late
	err := d.flushArea()
	if err == nil || d.lost != nil {
		return late > 0 && err == nil
	}
	if late == 0 {
		logring.Add(logring.Warning, d.o.Dir+": the latest commits stand in a data file, and not in the catalog: "+err.Error())
	}
	d.area.late++
	d.restartIdleTimer(lateDelay << min(late, mostLate))
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
	file := uint64(number) + 1
	if d.area.in == file {
		if err := d.flushArea(); err != nil {
			return err
		}
	}
	if d.area.file == file {
		d.area.file = 0
	}
	if d.area.next == file {
		d.area.next = 0
	}
	delete(d.bad, file)
	return d.data.Discard(number)
}
