package catalog

import (
	"encoding/binary"
	"math"
	"slices"

	"velocpy/gocore/model"
)

// Flags of a put.
const (
	flagSums   = 1
	flagLeaves = 2
	flagTime   = 4
)

const extentBytes = 24

// Offsets of fields in a put's item that are accessed directly.
const (
	putHistory = itemHead
	putLayout  = itemHead + 4
	putSerial  = itemHead + 8
	putContent = itemHead + 16
	putFlags   = itemHead + 17
	putKey     = itemHead + 18
)

// put is the front of a row's item: the fields that all contents have, and the time of a readable one. The other fields follow.
type put struct {
	history, layout uint32
	serial          uint64
	content         Content
	flags           uint8
	key             rawKey
	time            int64
	rest            []byte
}

// parsePut decodes the front of a put's item.
func parsePut(i item) (p put, err error) {
	if len(i) < putKey {
		return p, malformed("the body is too short")
	}
	p = put{history: le32(i[putHistory:]), layout: le32(i[putLayout:]), serial: le64(i[putSerial:]), content: Content(i[putContent]), flags: i[putFlags]}
	f := fields{p: i[putKey:]}
	p.key, err = f.key()
	if err == nil && p.content.Readable() && p.flags&flagTime != 0 {
		p.time, err = f.time()
	}
	p.rest = f.p
	return p, err
}

// time decodes nanoseconds since 1970.
func (f *fields) time() (int64, error) {
	t := f.u64()
	if t == 0 || t > math.MaxInt64 { // zero also if the body is too short
		return 0, malformed("%d is no time", t)
	}
	return int64(t), nil
}

// rest is the part of a readable put after the key and the time.
type rest struct {
	align                                uint32
	part                                 uint64 // of an encoded put, as are lengths
	extents, sums, leaves, lengths, meta []byte
	difference                           difference // of a put with content Difference
}

// parseRest decodes and validates the part of a readable put after the key and the time.
func (p *put) parseRest(l *layout) (r rest, err error) {
	if r, err = p.split(l); err != nil {
		return r, err
	}
	need := l.Slot
	switch {
	case p.content.isDifference():
		if err := r.difference.check(p.content); err != nil {
			return r, err
		}
		need = int64(r.difference.data + r.difference.meta)
	case p.content.isEncoded():
		e := r.encoding(p.content)
		if err := e.Check(l.filled); err != nil {
			return r, malformed("%v", err)
		}
		need = e.Bytes()
	}
	return r, checkExtents(r.extents, extentsBytes(need))
}

// split finds the fields in the part of a readable put after the key and the time.
func (p *put) split(l *layout) (r rest, err error) {
	if p.flags&^(flagSums|flagLeaves|flagTime) != 0 {
		return r, later("a put has flags %#x", p.flags)
	}
	f := fields{p: p.rest}
	r.align = f.u32()
	count := f.u32()
	r.extents = f.many(uint64(count), extentBytes)
	if p.flags&flagSums != 0 {
		r.sums = f.many(uint64(len(l.Spans)), 8)
	}
	if p.flags&flagLeaves != 0 {
		r.leaves = f.many(l.leaves, 8)
	}
	switch {
	case p.content.isEncoded():
		r.part = f.u64()
		r.lengths = f.many(uint64(f.u32()), 4)
	case p.content.isDifference():
		r.difference = f.difference()
	}
	n := f.u32()
	if n > MostText {
		return r, malformed("the meta has %d bytes", n)
	}
	r.meta = f.take(uint64(n))
	return r, f.end()
}

// encoding decodes the encoding of an encoded put.
func (r *rest) encoding(c Content) *model.Encoding {
	e := &model.Encoding{Part: int64(r.part), Lengths: make([]uint32, len(r.lengths)/4), Sections: c == EncodedSections}
	for i := range e.Lengths {
		e.Lengths[i] = le32(r.lengths[4*i:])
	}
	return e
}

// checkExtents returns an error unless the extents are whole blocks of a total length.
func checkExtents(extents []byte, need uint64) error {
	have := uint64(0)
	for at := 0; at < len(extents); at += extentBytes {
		file, offset, bytes := le64(extents[at:]), le64(extents[at+8:]), le64(extents[at+16:])
		switch {
		case file == 0:
			return malformed("an extent is in file 0")
		case (offset|bytes)%Block != 0 || bytes == 0:
			return malformed("an extent of %d bytes at %d is not one of whole blocks", bytes, offset)
		case offset > math.MaxInt64 || bytes > math.MaxInt64-offset:
			return malformed("an extent of %d bytes at %d is beyond any file", bytes, offset)
		case bytes > need-have:
			return malformed("the extents have more than %d bytes", need)
		}
		have += bytes
	}
	if have != need {
		return malformed("the extents have %d bytes, not %d", have, need)
	}
	return nil
}

// extentsBytes is the total length of the extents for so many bytes: at least one block, so that every checkpoint has a location.
func extentsBytes(n int64) uint64 {
	return max(Block, (uint64(n)+Block-1)/Block*Block)
}

// extents calls f for the extents of a readable put that was validated, not those of its sources, in sequence, until f returns false.
func (p *put) extents(f func(e Extent) bool) bool {
	all := p.rest[8:]
	for range le32(p.rest[4:]) {
		if !f(extentAt(all)) {
			return false
		}
		all = all[extentBytes:]
	}
	return true
}

// bytes is the length of the extents of a readable put that was validated.
func (p *put) bytes() (n uint64) {
	p.extents(func(e Extent) bool {
		n += uint64(e.Bytes)
		return true
	})
	return n
}

func extentAt(p []byte) Extent { return Extent{le64(p), int64(le64(p[8:])), int64(le64(p[16:]))} }

// decode decodes a row that was validated when it was put.
func decode(i item, l *layout) Row {
	p, _ := parsePut(i)
	row := Row{History: p.history, Key: p.key.key(), Serial: p.serial, Layout: &l.Layout, Content: p.content}
	if !row.Readable() {
		return row
	}
	r, _ := p.split(l)
	row.Time, row.Align, row.Meta = p.time, int64(r.align), string(r.meta)
	row.Extents = readExtents(r.extents)
	if p.flags&flagSums != 0 {
		row.Sums = readNumbers(r.sums)
	}
	if p.flags&flagLeaves != 0 {
		row.Leaves = readNumbers(r.leaves)
	}
	switch {
	case p.content.isEncoded():
		row.Encoding = r.encoding(p.content)
	case p.content.isDifference():
		row.Difference, row.Sources = r.difference.decoded(p.content), r.difference.places()
	}
	return row
}

// appendPut appends a row's item. It does not validate it: the caller has it parsed before it counts.
func appendPut(to []byte, history, layout uint32, r *Row) []byte {
	var flags uint8
	if r.Sums != nil {
		flags |= flagSums
	}
	if r.Leaves != nil {
		flags |= flagLeaves
	}
	if r.Time > 0 {
		flags |= flagTime
	}
	more := 0
	switch {
	case r.Encoding != nil:
		more = 4 * len(r.Encoding.Lengths)
	case r.Difference != nil:
		more = 2 * extentBytes * len(r.Sources)
	}
	to = slices.Grow(to, 140+len(r.Key.Text)+len(r.Extents)*extentBytes+8*(len(r.Sums)+len(r.Leaves))+more+len(r.Meta))
	to, start := beginItem(to, kindPut)
	to = binary.LittleEndian.AppendUint32(to, history)
	to = binary.LittleEndian.AppendUint32(to, layout)
	to = append(appendNumbers(to, r.Serial), byte(r.Content), flags)
	to = appendKey(to, r.Key)
	if r.Time > 0 {
		to = appendNumbers(to, r.Time)
	}
	to = binary.LittleEndian.AppendUint32(to, uint32(r.Align))
	to = appendExtents(to, r.Extents)
	to = appendNumbers(appendNumbers(to, r.Sums...), r.Leaves...)
	switch {
	case r.Encoding != nil:
		to = appendEncoding(to, r.Encoding)
	case r.Difference != nil:
		to = appendDifference(to, r.Difference, r.Sources)
	}
	to = binary.LittleEndian.AppendUint32(to, uint32(len(r.Meta)))
	return endItem(append(to, r.Meta...), start)
}

func appendEncoding(to []byte, e *model.Encoding) []byte {
	to = appendNumbers(to, e.Part)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(e.Lengths)))
	for _, n := range e.Lengths {
		to = binary.LittleEndian.AppendUint32(to, n)
	}
	return to
}
