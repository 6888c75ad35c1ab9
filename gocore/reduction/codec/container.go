package codec

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Version is the version of the format in which containers have chunks. Those with sections have SectionVersion.
const Version = 1

// Container is a container whose header and tables were verified. It refers to the bytes that Open got, which must not change while it is used.
type Container struct {
	kind      Kind
	plain     int
	reference bool
	hashes    []byte
	lengths   []byte
	modes     []byte
	payloads  []byte // of chunks; if there are sections, the whole container
	sections  []section
}

// The header. The hash covers everything between itself and the payloads.
const (
	atHash    = 8
	atVersion = 16
	atWord    = 20
	atExp     = 21
	atFlags   = 22
	atPlain   = 24
	atChunks  = 32
	atTotal   = 40
	atZero    = 48 // 16 bytes

	headerBytes = 64
)

const magic = "VELOCFC\x00"

// flagReference is set if a chunk needs the reference.
const flagReference = 1

// payloadAlign is the unit in which payloads begin: the longest load of a GPU thread.
const payloadAlign = 16

// entryBytes is the length of a chunk's part of the tables: hash, length, mode.
const entryBytes = 8 + 2 + 1

// Chunks is the number of chunks of a region of so many bytes.
func Chunks(plain int) int {
	if plain <= 0 {
		return 0
	}
	return (plain-1)/ChunkBytes + 1
}

// payloadsAt is where the payloads of so many chunks begin.
func payloadsAt(chunks int) int { return roundUp(headerBytes+entryBytes*chunks, payloadAlign) }

// Bound is the largest length of a container for so many plain bytes: 11 bytes a chunk, and up to 94 in all, more than those.
func Bound(plain int) int { return payloadsAt(Chunks(plain)) + roundUp(max(plain, 0), payloadAlign) }

// PayloadsAt is the offset of the first payload in a container for so many plain bytes. Each further payload begins at the next multiple of 16.
func PayloadsAt(plain int) int { return payloadsAt(Chunks(plain)) }

// Seal writes the header and the tables in front of payloads that are in place, from PayloadsAt on. It clears the bytes between payloads, and returns the
// container's length. There is one entry a chunk.
func Seal(container []byte, k Kind, plain int, entries []Entry) (int, error) {
	if err := k.check(); err != nil {
		return 0, err
	}
	if plain < 0 || len(entries) != Chunks(plain) || len(container) < payloadsAt(len(entries)) {
		return 0, fmt.Errorf("%w: %d entries for %d chunks, in a container of %d B", ErrLength, len(entries), Chunks(plain), len(container))
	}
	at := payloadsAt(len(entries))
	flags := 0
	for i, e := range entries {
		if e.Mode >= modes || e.Bytes < 0 || e.Bytes > chunkLength(plain, i) || roundUp(e.Bytes, payloadAlign) > len(container)-at {
			return 0, fmt.Errorf("%w: chunk %d has mode %d, payload %d B at %d", ErrLength, i, e.Mode, e.Bytes, at)
		}
		end := at + roundUp(e.Bytes, payloadAlign)
		clear(container[at+e.Bytes : end])
		at = end
		if e.Mode.referenced() {
			flags = flagReference
		}
	}
	writeTables(container, entries)
	writeHeader(container, header{Version, k, plain, len(entries), flags, at, payloadsAt(len(entries))})
	return at, nil
}

// chunkLength is the length of the plain bytes of chunk i.
func chunkLength(plain, i int) int { return min(ChunkBytes, plain-i*ChunkBytes) }

func writeTables(container []byte, entries []Entry) {
	hashes, lengths, modes := tables(container, len(entries))
	for i, e := range entries {
		binary.LittleEndian.PutUint64(hashes[8*i:], e.Hash)
		binary.LittleEndian.PutUint16(lengths[2*i:], uint16(e.Bytes))
		modes[i] = byte(e.Mode)
	}
	clear(container[headerBytes+entryBytes*len(entries) : payloadsAt(len(entries))])
}

// tables are the parts of the tables in a container.
func tables(container []byte, chunks int) (hashes, lengths, modes []byte) {
	t := container[headerBytes : headerBytes+entryBytes*chunks]
	return t[:8*chunks], t[8*chunks : 10*chunks], t[10*chunks:]
}

// header is what a container says of itself. The tables end with the byte before tables, where the first payload begins.
type header struct {
	version        uint32
	kind           Kind
	plain, entries int
	flags          int
	total, tables  int
}

func writeHeader(container []byte, x header) {
	h := container[:headerBytes]
	copy(h, magic)
	binary.LittleEndian.PutUint32(h[atVersion:], x.version)
	h[atWord], h[atExp] = x.kind.Word, x.kind.Exponent
	binary.LittleEndian.PutUint16(h[atFlags:], uint16(x.flags))
	binary.LittleEndian.PutUint64(h[atPlain:], uint64(x.plain))
	binary.LittleEndian.PutUint64(h[atChunks:], uint64(x.entries))
	binary.LittleEndian.PutUint64(h[atTotal:], uint64(x.total))
	clear(h[atZero:])
	binary.LittleEndian.PutUint64(h[atHash:], xxh3.Hash(container[atVersion:x.tables]))
}

// Open verifies the header and the tables of a container, which must end where its last payload ends. plain is the length of the region that the
// caller expects; another one is ErrLength. Everything else that is wrong is ErrCorrupt. It allocates nothing but the result.
func Open(container []byte, plain int) (*Container, error) {
	if len(container) < headerBytes || string(container[:atHash]) != magic {
		return nil, fmt.Errorf("%w: no header", ErrCorrupt)
	}
	h := container[:headerBytes]
	version, entries := binary.LittleEndian.Uint32(h[atVersion:]), binary.LittleEndian.Uint64(h[atChunks:])
	entry, begin, need := entryBytes, payloadsAt, Chunks(plain)
	if version == SectionVersion {
		entry, begin, need = sectionEntry, sectionsAt, sectionsOf(plain)
	}
	if entries > uint64(len(container)-headerBytes)/uint64(entry) || begin(int(entries)) > len(container) {
		return nil, fmt.Errorf("%w: the tables are not complete", ErrCorrupt)
	}
	at := begin(int(entries))
	if xxh3.Hash(container[atVersion:at]) != binary.LittleEndian.Uint64(h[atHash:]) {
		return nil, fmt.Errorf("%w: wrong hash of header and tables", ErrCorrupt)
	}
	if version != Version && version != SectionVersion {
		return nil, fmt.Errorf("%w: version %d of the format, not %d or %d", ErrCorrupt, version, Version, SectionVersion)
	}
	length := binary.LittleEndian.Uint64(h[atPlain:])
	if plain < 0 || length != uint64(plain) {
		return nil, fmt.Errorf("%w: the container has a region of %d B, not %d B", ErrLength, length, plain)
	}
	kind, flags, total := Kind{h[atWord], h[atExp]}, binary.LittleEndian.Uint16(h[atFlags:]), binary.LittleEndian.Uint64(h[atTotal:])
	if entries != uint64(need) || total != uint64(len(container)) || flags&^flagReference != 0 || version == SectionVersion && flags != 0 {
		return nil, fmt.Errorf("%w: %d entries, %d B, flags %#x do not fit", ErrCorrupt, entries, total, flags)
	}
	if kind.check() != nil {
		return nil, fmt.Errorf("%w: unknown kind of elements", ErrCorrupt)
	}
	if version == SectionVersion {
		return openSections(container, kind, plain, need)
	}
	c := &Container{kind: kind, plain: plain, payloads: container[at:], reference: flags&flagReference != 0}
	c.hashes, c.lengths, c.modes = tables(container, need)
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// check compares the tables with the region and the payloads.
func (c *Container) check() error {
	total, referenced := 0, false
	for i, m := range c.modes {
		if Mode(m) >= modes || c.length(i) > chunkLength(c.plain, i) {
			return fmt.Errorf("%w: chunk %d has mode %d, payload %d B", ErrCorrupt, i, m, c.length(i))
		}
		total += roundUp(c.length(i), payloadAlign)
		referenced = referenced || Mode(m).referenced()
	}
	if total != len(c.payloads) || referenced != c.reference {
		return fmt.Errorf("%w: the tables do not fit the payloads", ErrCorrupt)
	}
	return nil
}

// length is the length of chunk i's payload.
func (c *Container) length(i int) int { return int(binary.LittleEndian.Uint16(c.lengths[2*i:])) }

// Payload is where the payload that has chunk i begins in the container. O(i).
func (c *Container) Payload(i int) int {
	if c.sections != nil {
		return c.sections[i/chunksOfSection].at
	}
	return payloadsAt(c.Chunks()) + c.offset(i)
}

// offset is where chunk i's payload begins. O(i).
func (c *Container) offset(i int) (at int) {
	for j := range i {
		at += roundUp(c.length(j), payloadAlign)
	}
	return at
}

// Kind is the kind of the elements.
func (c *Container) Kind() Kind { return c.kind }

// Plain is the length of the region.
func (c *Container) Plain() int { return c.plain }

// Chunks is the number of chunks, also of a container that has sections.
func (c *Container) Chunks() int { return Chunks(c.plain) }

// Together is how many neighbouring chunks, counted from the first one, can only be decoded together.
func (c *Container) Together() int {
	if c.sections != nil {
		return chunksOfSection
	}
	return 1
}

// NeedsReference tells whether some chunk needs the reference.
func (c *Container) NeedsReference() bool { return c.reference }

// Entry is the tables' entry of chunk i, of a container that has no sections.
func (c *Container) Entry(i int) Entry {
	return Entry{Mode: Mode(c.modes[i]), Bytes: c.length(i), Hash: binary.LittleEndian.Uint64(c.hashes[8*i:])}
}
