package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"velocpy/gocore/base/killpoint"
)

// The parts of a snapshot fill whole blocks of the medium. No two parts share a block, so damage to a block costs the records of one part.
const (
	block = 4 << 10
	part  = 2 * block // bytes of a part with its head, unless one record needs more

	// SnapshotRecord is the longest record that fits a part of the usual length.
	SnapshotRecord = part - headBytes - RecordHead

	// SnapshotRoom bounds the overhead of a snapshot of few records.
	SnapshotRoom = 4 * block
)

// snapshot writes the records of f as parts, syncs them, and writes both complete frames: in the reserved room before the parts, and after them.
func (l *Log) snapshot(p *parts, f func(give func(record []byte) error) error) error {
	l.offset = partsAt
	err := f(p.give)
	if err == nil {
		err = errors.Join(p.fill(), p.flush())
	}
	//mutation:snapshot-parts-unsynced
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil { // the parts may have filled the disk; once a complete frame may be written, the file is never truncated
		return errors.Join(err, l.file.Truncate(0))
	}
	end := binary.LittleEndian.AppendUint64(nil, uint64(l.offset))
	//mutation:snapshot-complete-once
	_, err = l.writeAt(completeAt, kindComplete, l.last, end)
	if err == nil {
		err = l.write(kindComplete, l.last, end)
	}
	return err
}

// parts collects records into parts, and parts into large writes.
type parts struct {
	log     *Log
	payload []byte
	frames  []byte // not yet written; they begin at log.offset
	filler  int64  // bytes of empty records
}

// written is the approximate size of a write of parts.
const written = 1 << 20

// end is the offset of the next part.
func (p *parts) end() int64 { return p.log.offset + int64(len(p.frames)) }

// room is the number of bytes for records in the next part.
func (p *parts) room() int { return int(part - p.end()%block - headBytes) }

func (p *parts) give(record []byte) error {
	switch {
	case record == nil:
		return p.fill()
	case len(record) == 0:
		return nil
	case len(record)+RecordHead > MostPayload:
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(record))
	}
	//mutation:snapshot-part-too-long
	if len(p.payload)+RecordHead+len(record) > p.room() {
		if err := p.fill(); err != nil {
			return err
		}
	}
	p.payload = appendRecord(p.payload, record)
	return nil
}

// fill ends a part, padded with empty records to the end of its last block.
func (p *parts) fill() error {
	if len(p.payload) == 0 {
		return nil
	}
	unused := -(p.end() + headBytes + int64(len(p.payload))) & (block - 1)
	if int64(len(p.payload))+unused <= MostPayload {
		p.payload = append(p.payload, make([]byte, unused/RecordHead*RecordHead)...)
		p.filler += unused / RecordHead * RecordHead
	}
	p.frames = appendFrame(p.frames, place{p.log.o.Store, p.log.number, p.end()}, kindSnapshot, p.log.last, p.payload)
	if p.payload = p.payload[:0]; len(p.frames) < written {
		return nil
	}
	return p.flush()
}

func (p *parts) flush() error {
	_, err := p.log.file.WriteAt(p.frames, p.log.offset)
	p.log.offset = p.end()
	p.frames = p.frames[:0]
	killpoint.Pass(killpoint.SnapshotHalf)
	return err
}
