package journal

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

// Kinds of frames.
const (
	kindBegin    = 1 // the first of a file
	kindSnapshot = 2 // a part of the state from which the file starts
	kindComplete = 3 // all parts of it are on the medium: written twice, before them and after them
	kindBatch    = 4 // records, in order
	kindClosed   = 5 // the log was closed: nothing follows
)

const (
	frameMagic = 0x314a4656 // "VFJ1"
	headBytes  = 40
	grain      = 8 // alignment of frames

	// MostPayload bounds a frame, so that a damaged length cannot claim much memory.
	MostPayload = 64 << 20

	// RecordHead is the size of a record's length field in a payload.
	RecordHead = 4

	// mostNumber bounds the numbers of batches and files, so that there is always a next one.
	mostNumber = 1 << 62
)

// head precedes a payload: magic, kind, sequence, length, the checksum of the payload, and the checksum of these fields and the frame's place.
type head struct {
	kind     uint32
	sequence uint64
	length   uint64
	sum      uint64
	payload  uint64 // its checksum
}

// place is the position of a frame. A frame that was moved, or belongs to another store, is invalid.
type place struct {
	store  [16]byte
	file   uint64
	offset int64
}

func (h *head) seal(at place) uint64 {
	var text [16 + 6*8]byte
	//mutation:frame-of-another-store
	p := append(text[:0], at.store[:]...)
	for _, n := range []uint64{at.file, uint64(at.offset), uint64(h.kind), h.sequence, h.length, h.payload} {
		p = binary.LittleEndian.AppendUint64(p, n)
	}
	return xxh3.Hash(p)
}

// appendFrame appends a frame for a place, padded to the alignment of frames.
func appendFrame(to []byte, at place, kind uint32, sequence uint64, payload []byte) []byte {
	h := head{kind: kind, sequence: sequence, length: uint64(len(payload)), payload: xxh3.Hash(payload)}
	to = binary.LittleEndian.AppendUint32(to, frameMagic)
	to = binary.LittleEndian.AppendUint32(to, h.kind)
	for _, n := range []uint64{h.sequence, h.length, h.payload, h.seal(at)} {
		to = binary.LittleEndian.AppendUint64(to, n)
	}
	to = append(to, payload...)
	return append(to, make([]byte, padding(len(payload)))...)
}

func padding(n int) int { return (grain - n%grain) % grain }

// parseHead parses a head at a place; false if it is invalid.
func parseHead(p []byte, at place) (h head, ok bool) {
	if len(p) < headBytes || binary.LittleEndian.Uint32(p) != frameMagic {
		return h, false
	}
	h.kind = binary.LittleEndian.Uint32(p[4:])
	h.sequence, h.length = binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[16:])
	h.payload, h.sum = binary.LittleEndian.Uint64(p[24:]), binary.LittleEndian.Uint64(p[32:])
	known := h.kind >= kindBegin && h.kind <= kindClosed && (h.kind != kindBatch || h.sequence > 0)
	return h, known && h.sequence <= mostNumber && h.length <= MostPayload && h.sum == h.seal(at)
}

// frameBytes is the length of a frame with its padding.
func frameBytes(payload uint64) int64 {
	return headBytes + int64(payload) + int64(padding(int(payload)))
}

// begin is the payload of a file's first frame.
type begin struct {
	behind   uint64 // last batch that counts in older files
	snapshot bool   // the file starts from a snapshot, and needs no older files
}

const beginBytes = 16

// Offsets in a file that starts from a snapshot: the first complete frame, and the parts.
const (
	completeAt = headBytes + beginBytes
	partsAt    = completeAt + completeBytes
)

// completeBytes is the length of a complete frame. Its payload is the end of the parts. Older writers wrote it once, after the parts, with an empty
// payload.
const completeBytes = headBytes + 8

func parseComplete(p []byte) (end int64, ok bool) {
	if len(p) != completeBytes-headBytes {
		return 0, false
	}
	n := binary.LittleEndian.Uint64(p)
	return int64(n), n >= partsAt && n <= math.MaxInt64
}

func (b begin) bytes() []byte {
	p := binary.LittleEndian.AppendUint64(nil, b.behind)
	var flags uint64
	if b.snapshot {
		flags = 1
	}
	return binary.LittleEndian.AppendUint64(p, flags)
}

func parseBegin(p []byte) (begin, bool) {
	if len(p) != beginBytes {
		return begin{}, false
	}
	flags := binary.LittleEndian.Uint64(p[8:])
	b := begin{behind: binary.LittleEndian.Uint64(p), snapshot: flags == 1}
	return b, flags <= 1 && b.behind <= mostNumber
}

// appendRecord appends a record to the payload of a batch or of a part of a snapshot.
func appendRecord(to, record []byte) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(len(record)))
	return append(to, record...)
}

// eachRecord calls f for the records of a payload; false if it does not consist of records.
func eachRecord(p []byte, f func(record []byte) error) (ok bool, err error) {
	for len(p) > 0 {
		if len(p) < 4 {
			return false, nil
		}
		n := uint64(binary.LittleEndian.Uint32(p))
		if p = p[RecordHead:]; n > uint64(len(p)) {
			return false, nil
		}
		if err := f(p[:n:n]); err != nil {
			return true, err
		}
		p = p[n:]
	}
	return true, nil
}

const filePrefix = "catalog-"

func fileName(number uint64) string { return fmt.Sprintf("%s%016x", filePrefix, number) }

// fileNumber is the inverse of fileName; false if name is not a log file's.
func fileNumber(name string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(name, filePrefix), 16, 64)
	if err != nil {
		return 0, false
	}
	return number, name == fileName(number) && number > 0 && number <= mostNumber
}
