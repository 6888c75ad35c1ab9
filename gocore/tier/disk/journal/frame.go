package journal

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/zeebo/xxh3"
)

// Kinds of frames.
const (
	kindBegin    = 1 // the first of a file
	kindSnapshot = 2 // a part of the state from which the file starts
	kindComplete = 3 // all parts of it are on the medium: said twice, before them and behind
	kindBatch    = 4 // records, in their order
	kindClosed   = 5 // nothing follows: the log was closed
)

const (
	frameMagic = 0x314a4656 // "VFJ1"
	headBytes  = 40
	grain      = 8 // frames begin at multiples of it

	// MostPayload bounds a frame, so that a damaged length does not take memory.
	MostPayload = 64 << 20

	// RecordHead is what a record takes in it beside its bytes: their number.
	RecordHead = 4

	// mostNumber bounds the numbers of batches and files, so that there is always a next one.
	mostNumber = 1 << 62
)

// head is what stands before a payload: magic, kind, sequence, length, the checksum of all that and of where it stands, and of the payload.
type head struct {
	kind     uint32
	sequence uint64
	length   uint64
	sum      uint64
	payload  uint64 // its checksum
}

// place is where a frame stands. A frame that was moved, or is of another store, is none.
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

// appendFrame appends a frame that will stand at a place, padded to the next frame's.
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

// parseHead reads a head that stands at a place; false if there is none.
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

// frameBytes is how much room a frame takes.
func frameBytes(payload uint64) int64 {
	return headBytes + int64(payload) + int64(padding(int(payload)))
}

// begin is the payload of a file's first frame.
type begin struct {
	behind   uint64 // batches up to this one count of older files
	snapshot bool   // the file starts from a snapshot, and needs no older ones
}

const beginBytes = 16

// Places in a file that starts from a snapshot: the first complete, and the parts.
const (
	completeAt = headBytes + beginBytes
	partsAt    = completeAt + completeBytes
)

// completeBytes is how much room a complete takes. Its payload is where the parts end; that of older writers, who said it once, behind the parts, is empty.
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

// appendRecord appends one to the payload of a batch or of a part of a snapshot.
func appendRecord(to, record []byte) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(len(record)))
	return append(to, record...)
}

// eachRecord calls f for the records of a payload; false when it does not consist of records.
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

// fileNumber is that of a file of the log; false if the name is another's.
func fileNumber(name string) (number uint64, ok bool) {
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, filePrefix), "%016x", &number); err != nil {
		return 0, false
	}
	return number, name == fileName(number) && number > 0 && number <= mostNumber
}
