package durable

import (
	"errors"
	"iter"
	"slices"

	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// tail is the end of the catalog, where this process appends records: to the log, or to the commit area that continues it. The committing goroutine owns it.
type tail struct {
	c       *contents
	owner   *owner
	indexes *indexQueue
	syncs   *syncs
	data    *segment.Space
	log     *journal.Log
	area    area
	bad     map[uint64]bool // data files whose commit areas could not be written
	spare   int64           // bytes that earlier batches have left unused of their share for repeated definitions
	unclear bool            // the latest batch failed, and may or may not be on the medium
	ballast ballast
}

// batchBytes bounds the records of a batch, unless one change alone is larger. It is the loss that damage to one batch can cause before the catalog is
// compacted. A sync for every batch costs a group of many small checkpoints some microseconds each.
const batchBytes = 16 << 10

// record writes the records of a group to the catalog, batch by batch. It stops at the first failed batch, unless the disk was full: a later batch with
// drops may find room.
func (t *tail) record(group []*Change) {
	var failed error
	for batch := range batches(group) {
		if failed != nil {
			refuse(batch, failed)
		} else if err := t.append(batch); t.unclear || !noSpace(err) {
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
func (t *tail) append(batch []*Change) error {
	err := t.appendWith(t.batch(batch), batch)
	if err != nil {
		for _, c := range batch {
			//mutation:uncertain-commit-not-marked
			c.Err, c.Uncertain = err, t.unclear
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
func (t *tail) batch(changes []*Change) [][]byte {
	all := make([]*catalog.Record, len(changes))
	records := make([][]byte, 1, len(changes)+1)
	size := int64(0)
	for i, c := range changes {
		all[i] = c.record
		records = append(records, c.record.Bytes())
		size += int64(len(c.record.Bytes())) + journal.RecordHead
	}
	t.spare = min(t.spare+repeatBytes+size/2, mostSpare)
	//mutation:batch-without-repeat
	if records[0] = catalog.Repeated(all, min(t.spare, journal.MostPayload-size-journal.RecordHead)); len(records[0]) == 0 {
		return records[1:]
	}
	t.spare -= int64(len(records[0]))
	return records
}

// appendWith writes records to the catalog. If changes free room, they may use the room of the ballast.
func (t *tail) appendWith(records [][]byte, changes []*Change) error {
	write := func() error { return t.appendBatch(records) }
	if !makesRoom(changes) {
		return write()
	}
	return t.ballast.spend(write)
}

// makesRoom tells whether changes free room once they are durable.
func makesRoom(changes []*Change) bool {
	for _, c := range changes {
		if c.Drop || c.Clear {
			return true
		}
	}
	return false
}

// appendBatch writes records to the catalog, after those of the commit area.
func (t *tail) appendBatch(records [][]byte) error {
	if len(t.area.records) > 0 && t.area.bytes+bytesOf(records) > batchBytes {
		if err := t.appendAhead(nil); err != nil {
			return err
		}
	}
	return t.appendAhead(records)
}

// appendAhead writes a batch: the records of the commit area, then records, and the number of the area that continues the batch.
func (t *tail) appendAhead(records [][]byte) error {
	//mutation:commit-area-overwritten
	all := slices.Concat(t.area.records, records)
	if t.area.next > 0 {
		all = append(all, catalog.CommitsIn(t.area.next))
	}
	if err := t.log.AppendAll(all, nil); err != nil {
		t.unclear = t.unclear || !errors.Is(err, journal.ErrNowhere)
		return err
	}
	t.unclear = false // a failed batch before a complete one never counts
	said := len(t.area.records) > 0
	t.area = area{file: t.area.next, next: t.area.next}
	if said {
		t.indexes.write() // before the area is overwritten
	}
	return nil
}

// flush writes the records of the commit area to the catalog.
func (t *tail) flush() error {
	if len(t.area.records) == 0 {
		return nil
	}
	if err := t.owner.owns(); err != nil {
		return err
	}
	return t.appendAhead(nil)
}

// bytesOf returns the size of records in a batch.
func bytesOf(records [][]byte) (n int) {
	for _, r := range records {
		n += len(r) + journal.RecordHead
	}
	return n
}
