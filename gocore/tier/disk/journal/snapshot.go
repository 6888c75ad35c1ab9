package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"velocpy/gocore/base/killpoint"
)

// The parts of a snapshot fill blocks of the medium: no two of them share one, so that damage to a block costs the records of one part.
const (
	block = 4 << 10
	part  = 2 * block // bytes of a part, its head included, unless one record needs more

	// SnapshotRecord is the longest record that does not make a part longer than the others.
	SnapshotRecord = part - headBytes - RecordHead

	// SnapshotRoom bounds what a snapshot of few records takes beside them.
	SnapshotRoom = 4 * block
)

// snapshot writes what f gives out as the parts of a snapshot, syncs them, and says twice that they are complete: in the room before them, and behind them.
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
	if err != nil { // what is there of it may be all that the disk had; later, when it may have been said that it is complete, nothing is taken away any more
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

// parts gathers records until they fill a part, and parts until they are worth a write.
type parts struct {
	log     *Log
	payload []byte
	frames  []byte // not yet written, from log.offset on
	filler  int64  // bytes of empty records
}

// written is how many bytes of parts are written at once, about.
const written = 1 << 20

// end is where the next part begins.
func (p *parts) end() int64 { return p.log.offset + int64(len(p.frames)) }

// room is how many bytes of records the next part has room for.
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

// fill ends a part, filled up with empty records to the end of its last block.
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
