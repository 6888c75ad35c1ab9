package object

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
)

// Layout of the metadata (docs/deduplication-format.md).
const (
	magic       = "VELOCOBJ"
	version     = 1
	headerBytes = 64

	atVersion = 8
	atNumber  = 12
	atLineage = 16
	atForm    = 24 // 1 byte
	atRefers  = 25 // 1 byte: 1 if the containers have a reference
	atPart    = 26 // 1 byte: how many times model.PartGrain a part has, minus 1
	atZero    = 27 // 1 byte
	atRegions = 28
	atTable   = 32 // length of the table
	atBody    = 40 // length of the body, and of its plain bytes: 4 bytes each
	atPlain   = 44
	atBodySum = 48
	atSum     = 56 // of the header before it, and of the table
)

// MostPart bounds the plain bytes of an object's container, and with them the memory of a reader.
const MostPart = 64 * model.PartGrain

// form is how the body of the metadata says where the checkpoint's bytes lie.
type form uint8

const (
	formDifference form = 1 // metadata of package difference: the map of the base is needed to resolve it
	formMap        form = 2 // the resolved map
)

// head is what the metadata of an object says beside its body: the lengths of the regions' first occurrences, and of their containers.
type head struct {
	number      uint32
	lineage     uint64
	form        form
	refers      bool           // some of the containers may have been encoded with those of another object, which has as many first occurrences of each region
	reference   uint32         // number of that object
	firsts      []model.Span   // first occurrences of each region, behind one another
	encoding    model.Encoding // its part is known when the header is
	table, body int64          // lengths
	plain       int64          // length of the body before it was compressed; that of the body if it was not
	bodySum     uint64
}

// stored is the length of all first occurrences.
func (h *head) stored() int64 {
	if len(h.firsts) == 0 {
		return 0
	}
	return h.firsts[len(h.firsts)-1].End()
}

// metadata returns the metadata of an object. Form and lengths of the body are those of b, not the head's.
func (h *head) metadata(b *body) []byte {
	p := make([]byte, headerBytes, headerBytes+2*len(h.firsts)+3*len(h.encoding.Lengths)+len(b.stored))
	if h.refers {
		p[atRefers] = 1
		p = binary.AppendUvarint(p, uint64(h.reference))
	}
	for _, s := range h.firsts {
		p = binary.AppendUvarint(p, uint64(s.Bytes))
	}
	for _, n := range h.encoding.Lengths {
		p = binary.AppendUvarint(p, uint64(n/model.ContainerAlign))
	}
	le := binary.LittleEndian
	copy(p, magic)
	le.PutUint32(p[atVersion:], version)
	le.PutUint32(p[atNumber:], h.number)
	le.PutUint64(p[atLineage:], h.lineage)
	p[atForm] = byte(b.form)
	p[atPart] = byte(h.encoding.Part/model.PartGrain - 1)
	le.PutUint32(p[atRegions:], uint32(len(h.firsts)))
	le.PutUint64(p[atTable:], uint64(len(p)-headerBytes))
	le.PutUint32(p[atBody:], uint32(len(b.stored)))
	le.PutUint32(p[atPlain:], uint32(b.plain))
	le.PutUint64(p[atBodySum:], xxh3.Hash(b.stored))
	le.PutUint64(p[atSum:], headSum(p))
	return append(p, b.stored...)
}

// metadataBound bounds the bytes of the metadata with a body of so many, whatever the lengths of the containers are.
func metadataBound(firsts []model.Span, part, body int64) int64 {
	containers := int64(0)
	for _, s := range firsts {
		containers += model.Containers(s.Bytes, part)
	}
	return headerBytes + 5 + 7*int64(len(firsts)) + 3*containers + body
}

// headSum is the checksum of header and table.
func headSum(p []byte) uint64 {
	h := xxh3.New()
	_, _ = h.Write(p[:atSum]) // it never fails
	_, _ = h.Write(p[headerBytes:])
	return h.Sum64()
}

// parseHeader reads the header of metadata of so many bytes. The lengths of its parts add up to these.
func parseHeader(p []byte, meta int64) (*head, error) {
	le := binary.LittleEndian
	if len(p) < headerBytes || string(p[:atVersion]) != magic || le.Uint32(p[atVersion:]) != version {
		return nil, fmt.Errorf("%w: no metadata of version %d", ErrFormat, version)
	}
	h := &head{
		number: le.Uint32(p[atNumber:]), lineage: le.Uint64(p[atLineage:]), form: form(p[atForm]),
		table: int64(le.Uint64(p[atTable:])), body: int64(le.Uint32(p[atBody:])), plain: int64(le.Uint32(p[atPlain:])),
		bodySum: le.Uint64(p[atBodySum:]),
	}
	if h.table < 0 || h.table > meta || h.body > meta || headerBytes+h.table+h.body != meta {
		return nil, fmt.Errorf("%w: the parts of the metadata do not have its length of %s", ErrFormat, quantity.Exact(meta))
	}
	if h.plain < h.body || h.plain > model.MostMeta || h.plain > h.body*mostRatio {
		return nil, fmt.Errorf("%w: a body of %s, compressed from %s", ErrFormat, quantity.Exact(h.body), quantity.Exact(h.plain))
	}
	h.encoding.Part = (1 + int64(p[atPart])) * model.PartGrain
	if h.form != formDifference && h.form != formMap || p[atRefers] > 1 || h.encoding.Part > MostPart || p[atZero] != 0 {
		return nil, fmt.Errorf("%w: unknown form %d, or parts of %s", ErrFormat, h.form, quantity.Exact(h.encoding.Part))
	}
	h.refers = p[atRefers] == 1
	return h, nil
}

// parseTable reads the table behind the header: p has both and no more. data is the length of the containers.
func (h *head) parseTable(p []byte, data int64) error {
	if headSum(p) != binary.LittleEndian.Uint64(p[atSum:]) {
		return fmt.Errorf("%w: the checksum of header and table differs", ErrFormat)
	}
	count := binary.LittleEndian.Uint32(p[atRegions:])
	in := numbers{p[headerBytes:]}
	if int64(count) > h.table {
		return fmt.Errorf("%w: %d regions", ErrFormat, count)
	}
	if h.refers {
		number, ok := in.next(uint64(h.number) - 1)
		if !ok || h.number == 0 {
			return fmt.Errorf("%w: number of the reference", ErrFormat)
		}
		h.reference = uint32(number)
	}
	h.firsts = make([]model.Span, count)
	at, containers := int64(0), int64(0)
	for i := range h.firsts {
		n, ok := in.next(difference.MaxBytes)
		if !ok || at+int64(n) > difference.MaxBytes {
			return fmt.Errorf("%w: first occurrences of region %d", ErrFormat, i)
		}
		h.firsts[i] = model.Span{Offset: at, Bytes: int64(n)}
		at += int64(n)
		containers += model.Containers(int64(n), h.encoding.Part)
	}
	if containers > int64(len(in.rest)) { // each takes a byte at least
		return fmt.Errorf("%w: %d containers", ErrFormat, containers)
	}
	h.encoding.Lengths = make([]uint32, containers)
	for i := range h.encoding.Lengths {
		n, ok := in.next(model.MostPart / model.ContainerAlign)
		if !ok {
			return fmt.Errorf("%w: length of container %d", ErrFormat, i)
		}
		h.encoding.Lengths[i] = uint32(n) * model.ContainerAlign
	}
	if len(in.rest) > 0 {
		return fmt.Errorf("%w: superfluous bytes in the table", ErrFormat)
	}
	if err := h.encoding.Check(h.firsts); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if n := h.encoding.Bytes(); n != data {
		return fmt.Errorf("%w: the containers have %s, not %s", ErrOther, quantity.Exact(n), quantity.Exact(data))
	}
	return nil
}

// checkBody verifies the checksum of a body.
func (h *head) checkBody(body []byte) error {
	if int64(len(body)) != h.body || xxh3.Hash(body) != h.bodySum {
		return fmt.Errorf("%w: the checksum of the body differs", ErrFormat)
	}
	return nil
}

// numbers reads integers of variable length.
type numbers struct{ rest []byte }

// next returns the next integer; false if there is none of at most so much.
func (n *numbers) next(most uint64) (uint64, bool) {
	v, length := binary.Uvarint(n.rest)
	if length <= 0 || v > most {
		return 0, false
	}
	n.rest = n.rest[length:]
	return v, true
}

// take returns the next bytes; false if there are fewer.
func (n *numbers) take(bytes uint64) ([]byte, bool) {
	if bytes > uint64(len(n.rest)) {
		return nil, false
	}
	p := n.rest[:bytes]
	n.rest = n.rest[bytes:]
	return p, true
}
