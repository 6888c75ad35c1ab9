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

// A batch that the catalog gets costs a sync behind that of the data. So what says of a few checkpoints where they lie is written to the commit area of the data
// file that they lie in, and comes down in the sync that brings their bytes down. The catalog gets it later, in one batch with others: when there is as much
// of it as a batch has, when no commit has come for idleDelay, with the next batch for another reason, or when the directory is closed.
//
// Each batch of the catalog says in which area it may be gone on. The frames there say behind which batch they are: with the next batch all of them are out of
// date, and are written over. Only the last one may not have been acknowledged, so that the bytes of its checkpoints may be missing: their checksums tell.

// mostAheadBytes bounds the bytes of checkpoints that a reader has to compare before the last frame counts.
const mostAheadBytes = 16 << 20

// area is the commit area that is in use. The goroutine that commits has it.
type area struct {
	file    uint64   // the data file that it is of; the catalog's last batch says so. 0: none does
	next    uint64   // the data file that the next batch is to say; 0: none
	end     int64    // of the frames behind the last batch
	records [][]byte // in these frames, which the catalog does not have yet
	bytes   int      // that they take in a batch
	in      uint64   // the data file that these frames stand in
	late    int      // how often in a row the catalog could not be given them in time
	doubt   bool     // a frame that could not be written may be there, until the catalog has its next batch
}

// commitInArea commits a group with one sync, if that is possible. Else nothing has been done.
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
		_ = d.appendWith([][]byte{nil}, changes) // behind another batch the frame does not count
		d.markUncertain(changes)
		return failed, true
	}
	d.area.end += int64(len(frame))
	d.area.records, d.area.bytes, d.area.in = append(d.area.records, records...), d.area.bytes+bytes, d.area.file
	return failed, true
}

// markUncertain marks changes that failed and that a frame may say, so that they may count.
func (d *Dir) markUncertain(changes []*Change) {
	if !d.area.doubt {
		return
	}
	d.unclear = true
	for _, c := range changes {
		c.Uncertain = c.Uncertain || c.Err != nil
	}
}

// suitsArea tells whether all that changes write to comes down with the area, and their checksums would tell if it has not.
func (d *Dir) suitsArea(changes []*Change) bool {
	touched := d.touched(changes)
	if d.area.file == 0 || d.unclear || len(touched) == 0 { // without data, a batch of the catalog takes one sync too
		return false
	}
	bytes := int64(0)
	for _, c := range changes {
		if c.Put != nil {
			if bytes += length(c.Put); c.Put.Sums == nil {
				return false
			}
		}
	}
	elsewhere := func(number int64) bool { return number != int64(d.area.file)-1 }
	return bytes <= mostAheadBytes && !slices.ContainsFunc(touched, elsewhere)
}

// chooseArea says in which area commits go on behind the batches of a group: in that of the file that its last checkpoint lies in.
func (d *Dir) chooseArea(group []*Change) {
	touched := d.touched(group)
	if !d.identity.commits || len(touched) == 0 {
		return
	}
	number := touched[len(touched)-1]
	if d.area.next = uint64(number) + 1; d.bad[d.area.next] || d.data.MakeCommits(number) != nil {
		d.area.next = 0 // as on a full disk; it goes on with two syncs
	}
}

// bytesOf is what records take in a batch.
func bytesOf(records [][]byte) (n int) {
	for _, r := range records {
		n += len(r) + journal.RecordHead
	}
	return n
}

// appendBatch writes records to the catalog, behind those of the commit area.
func (d *Dir) appendBatch(records [][]byte) error {
	if len(d.area.records) > 0 && d.area.bytes+bytesOf(records) > batchBytes {
		if err := d.appendAhead(nil); err != nil {
			return err
		}
	}
	return d.appendAhead(records)
}

// appendAhead writes a batch: the records of the commit area, others, and in which area it goes on.
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
	d.unclear = false // what does not stand before a whole batch never counts
	said := len(d.area.records) > 0
	d.area = area{file: d.area.next, next: d.area.next}
	if said {
		d.writeIndexes() // before the area is written over
	}
	return nil
}

// flushArea gives the catalog what the commit area says.
func (d *Dir) flushArea() error {
	if len(d.area.records) == 0 {
		return nil
	}
	if err := d.owns(); err != nil {
		return err
	}
	return d.appendAhead(nil)
}

// flushIdleArea calls flushArea while nothing is committed. What fails is tried again with the next commit, or after lateDelay. It tells whether it has
// succeeded where it had failed before, so that files can be removed that could not be.
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

// lateDelay is how long flushIdleArea rests when it has failed for the first time. It rests twice as long each time, mostLate times: each attempt may leave a file.
const (
	lateDelay = time.Second
	mostLate  = 6
)

// Discard removes the file of a segment in which nothing lies, as segment.Space does. It may be called in Landed alone. It fails while the catalog cannot be
// given what the commit area of the file says.
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
