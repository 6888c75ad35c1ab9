package durable

import (
	"slices"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// compaction writes the catalog anew, with its live content alone, when it has become long. It reserves the room that this takes. The committing goroutine owns
// it.
type compaction struct {
	c       *contents
	tail    *tail
	data    *segment.Space
	refused int64 // excess of the catalog when the last compaction failed; 0: it did not
}

// slack is the default of Options.Slack.
const slack = 4 << 20

// mostFiles is the number of log files whose count alone uses up the slack. Each open for writing begins a file. Without this limit, a process that opens a
// store for each step would leave thousands of small files, and a reader opens every one of them.
const mostFiles = 64

// startAnew compacts the catalog when it has become much longer than its live content.
func (p *compaction) startAnew() {
	if p.provide() > 0 {
		return
	}
	p.refused = 0
	if err := p.compact(); err != nil {
		// The catalog continues as it was, in a new file. The next attempt comes when it has grown further.
		p.refused = p.excess()
		logring.Add(logring.Warning, "the catalog in "+p.c.o.Dir+" could not be written anew: "+err.Error())
	}
	p.provide()
}

// spareBytes covers batches of some thousand changes, and the growth of the catalog while a disk stays full.
const spareBytes = 1 << 20

// mostShare is the largest part of the data's capacity, as a divisor, that is reserved for the catalog: it limits the reserve of a small store on a small
// disk.
const mostShare = 8

// provide reserves disk space for the catalog, so that data cannot take the room that it needs on a full disk: to grow until its compaction, and for the
// compaction itself. It returns the growth in bytes that is left until then.
func (p *compaction) provide() (before int64) {
	p.c.o.Guard.Lock()
	live := p.c.state.LiveBytes()
	p.c.o.Guard.Unlock()
	before = p.refused + 2*live + p.allowed() - p.excess() + 1
	needed := max(before-p.tail.log.Ahead(), 0) + 2*live + journal.SnapshotRoom + spareBytes // a snapshot has definitions twice
	p.data.Leave(min(needed, p.data.Capacity()/mostShare))
	return before
}

// allowed is the number of bytes by which the log may exceed twice its live content.
func (p *compaction) allowed() int64 {
	if p.c.o.Slack == 0 {
		return slack
	}
	return p.c.o.Slack
}

// excess is the length of the log, plus a share of the slack for each file but the first.
func (p *compaction) excess() int64 {
	return p.tail.log.Said() + int64(max(p.tail.log.Files()-1, 0))*p.allowed()/mostFiles
}

// A record of a catalog snapshot has exactly the size that the log reserves for one: the unsigned constants overflow otherwise.
const _ = uint(journal.SnapshotRecord-catalog.SnapshotRecord) + uint(catalog.SnapshotRecord-journal.SnapshotRecord)

// compact rewrites the catalog. It copies the state first, so that no caller waits for the medium under Guard.
func (p *compaction) compact() error {
	if err := p.tail.flush(); err != nil {
		return err
	}
	var records [][]byte
	p.c.o.Guard.Lock()
	err := p.c.state.Snapshot(func(record []byte) error {
		records = append(records, slices.Clone(record))
		return nil
	})
	p.c.o.Guard.Unlock()
	if err != nil {
		return err
	}
	p.tail.area.file = 0 // a snapshot names no commit area, and it may count even if Compact fails
	return p.tail.log.Compact(func(give func(record []byte) error) error {
		for _, record := range records {
			if err := give(record); err != nil {
				return err
			}
		}
		return nil
	})
}
