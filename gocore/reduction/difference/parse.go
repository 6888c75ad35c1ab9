package difference

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/reduction/digest"
)

// Parse reads a serialised difference. Data, Changed and nothing else of the result refer to p. Any bytes are safe: those that break a rule of the format
// give ErrFormat or ErrLimit, and no more memory is allocated than a small multiple of len(p).
func Parse(p []byte) (*Difference, error) {
	h, err := parseHeader(p)
	if err != nil {
		return nil, err
	}
	if uint64(len(p))-h.metadata != h.data {
		return nil, fmt.Errorf("%w: first occurrences are missing or superfluous", ErrFormat)
	}
	d, err := parseMetadata(p[:h.metadata], h)
	if err != nil {
		return nil, err
	}
	d.Data = p[h.metadata:]
	return d, nil
}

// ParseMetadata is Parse for the metadata alone: p may end anywhere behind it, and Data is nil. The result can be resolved, but not appended. It also returns
// the number of bytes of first occurrences.
func ParseMetadata(p []byte) (*Difference, uint64, error) {
	h, err := parseHeader(p)
	if err != nil {
		return nil, 0, err
	}
	d, err := parseMetadata(p[:h.metadata], h)
	return d, h.data, err
}

// header is the part of a difference's header that its lists' lengths come from.
type header struct {
	d                     Difference
	regions, references   uint64
	first, shifted        uint64
	data, metadata, names uint64
	bitmap                uint64
}

func parseHeader(p []byte) (*header, error) {
	le := binary.LittleEndian
	if len(p) < headerBytes+sumBytes || string(p[:8]) != magic || le.Uint32(p[8:]) != version {
		return nil, fmt.Errorf("%w: no difference of version %d", ErrFormat, version)
	}
	h := &header{
		regions: uint64(le.Uint32(p[24:])), references: uint64(le.Uint32(p[28:])), first: le.Uint64(p[32:]), shifted: le.Uint64(p[40:]),
		data: le.Uint64(p[48:]), metadata: le.Uint64(p[56:]), names: le.Uint64(p[72:]),
	}
	limit := uint64(len(p))
	if h.metadata > limit || h.metadata < headerBytes+sumBytes || h.metadata%8 != 0 {
		return nil, fmt.Errorf("%w: the metadata ends at %d", ErrFormat, h.metadata)
	}
	// Each of these counts bytes of the metadata, so the sums below cannot overflow.
	for _, n := range []uint64{h.regions, h.references, h.first, h.shifted, h.names} {
		if n > h.metadata {
			return nil, fmt.Errorf("%w: %d items in metadata that ends at %d", ErrFormat, n, h.metadata)
		}
	}
	sum := h.metadata - sumBytes
	if le.Uint64(p[sum:]) != xxh3.Hash(p[:sum]) {
		return nil, fmt.Errorf("%w: the checksum of the metadata differs", ErrFormat)
	}
	if p[14] >= 16 || p[15]&^flagBase != 0 {
		return nil, fmt.Errorf("%w: unknown chunk length or flags", ErrFormat)
	}
	h.d = Difference{
		Method: Method(p[12]), Kind: digest.Kind(p[13]), Chunk: 1 << p[14], HasBase: p[15]&flagBase != 0,
		Checkpoint: le.Uint32(p[16:]), Base: le.Uint32(p[20:]), Seed: le.Uint64(p[64:]), dataBytes: h.data,
	}
	if !ValidChunk(h.d.Chunk) || !h.d.Method.Valid() || !h.d.Kind.Valid() {
		return nil, fmt.Errorf("%w: unknown method, function or chunk length", ErrFormat)
	}
	fixedBytes := headerBytes + h.regions*regionBytes + padded(h.names) + padded(4*h.references) + h.first*firstBytes + h.shifted*shiftBytes + sumBytes
	if fixedBytes > h.metadata || h.d.Method != Basic && fixedBytes != h.metadata {
		return nil, fmt.Errorf("%w: the metadata, which ends at %d, does not have the length of its lists", ErrFormat, h.metadata)
	}
	h.bitmap = h.metadata - fixedBytes
	return h, nil
}

func parseMetadata(p []byte, h *header) (*Difference, error) {
	d := &h.d
	rest := p[headerBytes:]
	take := func(n uint64) []byte {
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	table := take(h.regions * regionBytes)
	names := take(padded(h.names))
	if err := d.parseRegions(table, names, h.names); err != nil {
		return nil, err
	}
	list := take(padded(4 * h.references))
	for i := range h.references {
		d.References = append(d.References, binary.LittleEndian.Uint32(list[4*i:]))
	}
	if !zero(list[4*h.references:]) {
		return nil, fmt.Errorf("%w: padding that is not zero", ErrFormat)
	}
	if err := d.parseBitmap(take(h.bitmap)); err != nil {
		return nil, err
	}
	d.First = parseFirst(take(h.first*firstBytes), h.first)
	shifted, err := d.parseShifted(take(h.shifted*shiftBytes), h.shifted)
	if err != nil {
		return nil, err
	}
	d.Shifted = shifted
	return d, d.check(h.data)
}

func zero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

func (d *Difference) parseRegions(table, names []byte, length uint64) error {
	if !zero(names[length:]) {
		return fmt.Errorf("%w: padding that is not zero", ErrFormat)
	}
	names = names[:length]
	d.Regions = make([]Region, len(table)/regionBytes)
	for i := range d.Regions {
		row := table[i*regionBytes:]
		n := binary.LittleEndian.Uint64(row[16:])
		if n > uint64(len(names)) {
			return fmt.Errorf("%w: the name of region %d is too long", ErrFormat, i)
		}
		d.Regions[i] = Region{Name: string(names[:n]), Size: binary.LittleEndian.Uint64(row), Checksum: binary.LittleEndian.Uint64(row[8:])}
		names = names[n:]
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: a name without a region", ErrFormat)
	}
	return nil
}

// parseBitmap takes the bitmap of Basic, whose length follows from the regions.
func (d *Difference) parseBitmap(p []byte) error {
	chunks, err := d.checkRegions()
	if err != nil || d.Method != Basic {
		return err
	}
	n := (chunks + 7) / 8
	if padded(n) != uint64(len(p)) || !zero(p[n:]) {
		return fmt.Errorf("%w: the length of the bitmap", ErrFormat)
	}
	d.Changed = p[:n:n]
	return nil
}

func parseFirst(p []byte, n uint64) []Entry {
	if n == 0 {
		return nil
	}
	list := make([]Entry, n)
	for i := range list {
		list[i] = parseEntry(p[i*firstBytes:])
	}
	return list
}

func parseEntry(p []byte) Entry {
	v := binary.LittleEndian.Uint64(p)
	return Entry{Position: v >> extentBits, Extent: uint32(v & MaxRun)}
}

func (d *Difference) parseShifted(p []byte, n uint64) ([]Shift, error) {
	if n == 0 {
		return nil, nil
	}
	list := make([]Shift, n)
	for i := range list {
		row := p[i*shiftBytes:]
		v := binary.LittleEndian.Uint64(row[8:])
		list[i] = Shift{Entry: parseEntry(row), Checkpoint: d.Checkpoint, Offset: v & MaxBytes, Repeat: v>>63 == 1}
		if index := v >> offsetBits &^ repeatBit; index > uint64(len(d.References)) {
			return nil, fmt.Errorf("%w: a source in reference number %d", ErrFormat, index)
		} else if index > 0 {
			list[i].Checkpoint = d.References[index-1]
		}
	}
	return list, nil
}
