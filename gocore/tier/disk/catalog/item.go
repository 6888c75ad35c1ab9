package catalog

import "encoding/binary"

// kind is the kind of an item. A reader skips unknown kinds from kindOptional on, and refuses other unknown kinds.
type kind uint8

const (
	kindGone      kind = 0 // in memory only: a row that was dropped
	kindHistory   kind = 1
	kindLayout    kind = 2
	kindPut       kind = 3
	kindDrop      kind = 4
	kindClear     kind = 5
	kindRetention kind = 6
	kindSerial    kind = 7
	kindCommits   kind = 8
	kindOptional  kind = 0x80
)

// itemHead is the length of an item's head: kind, three zero bytes, the body's length.
const itemHead = 8

// item is an item of a record, with its head.
type item []byte

func (i item) kind() kind   { return kind(i[0]) }
func (i item) body() []byte { return i[itemHead:] }

// nextItem splits the first item off a nonempty record.
func nextItem(p []byte) (first item, rest []byte, err error) {
	if len(p) < itemHead {
		return nil, nil, malformed("%d bytes are no item", len(p))
	}
	if p[1]|p[2]|p[3] != 0 {
		return nil, nil, malformed("reserved bytes are %x", p[1:4])
	}
	n := uint64(binary.LittleEndian.Uint32(p[4:]))
	if n > uint64(len(p)-itemHead) {
		return nil, nil, malformed("%d bytes of %d are there", len(p)-itemHead, n)
	}
	end := itemHead + int(n)
	return item(p[:end:end]), p[end:], nil
}

// beginItem appends a head; endItem sets the length of the body in the head at start.
func beginItem(to []byte, k kind) (p []byte, start int) {
	return append(to, byte(k), 0, 0, 0, 0, 0, 0, 0), len(to)
}

func endItem(p []byte, start int) []byte {
	binary.LittleEndian.PutUint32(p[start+4:], uint32(len(p)-start-itemHead))
	return p
}

// fields reads numbers from the front of a body. A read beyond the end sets short and returns zeros.
type fields struct {
	p     []byte
	short bool
}

func (f *fields) take(n uint64) []byte {
	if n > uint64(len(f.p)) {
		f.short, f.p = true, nil
		return nil
	}
	p := f.p[:n:n]
	f.p = f.p[n:]
	return p
}

func (f *fields) u8() uint8 {
	if p := f.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (f *fields) u32() uint32 {
	if p := f.take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if p := f.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// many takes count entries of a size. The product cannot overflow: both are below 2^32, or the caller bounds count.
func (f *fields) many(count uint64, size uint64) []byte { return f.take(count * size) }

// end returns an error unless the body was read to its end.
func (f *fields) end() error {
	if f.short {
		return malformed("the body is too short")
	}
	if len(f.p) > 0 {
		return malformed("%d bytes are left over", len(f.p))
	}
	return nil
}

func le32(p []byte) uint32 { return binary.LittleEndian.Uint32(p) }
func le64(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }

func appendNumbers[N uint64 | int64](to []byte, numbers ...N) []byte {
	for _, n := range numbers {
		to = binary.LittleEndian.AppendUint64(to, uint64(n))
	}
	return to
}

func readNumbers(p []byte) []uint64 {
	all := make([]uint64, len(p)/8)
	for i := range all {
		all[i] = le64(p[i*8:])
	}
	return all
}
