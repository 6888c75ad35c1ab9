package codec

import (
	"encoding/binary"
	"fmt"
	"sync"

	"velocpy/gocore/base/checksum"
)

// decoders are decoders not in use.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// Decode writes the region of a container to dst, which has exactly its length. reference is the one of the encoding; nil if there was none. So many
// goroutines decode. After an error dst may hold anything.
func Decode(dst, container, reference []byte, goroutines int) error {
	c, err := Open(container, len(dst))
	if err != nil {
		return err
	}
	return c.Decode(dst, reference, goroutines)
}

// Decode writes the whole region to dst; see the function Decode.
func (c *Container) Decode(dst, reference []byte, goroutines int) error {
	return c.DecodeChunks(dst, reference, 0, c.Chunks(), goroutines)
}

// DecodeChunks writes the chunks from, ..., to-1 to dst, which has exactly the length of their plain bytes. reference, if the container needs it, is
// the same part of the reference.
func (c *Container) DecodeChunks(dst, reference []byte, from, to, goroutines int) error {
	if from < 0 || from > to || to > c.Chunks() {
		return fmt.Errorf("%w: chunks %d to %d of %d", ErrLength, from, to, c.Chunks())
	}
	if n := min(to*ChunkBytes, c.plain) - min(from*ChunkBytes, c.plain); n != len(dst) {
		return fmt.Errorf("%w: a destination of %d B for %d B", ErrLength, len(dst), n)
	}
	if reference != nil && len(reference) != len(dst) {
		return fmt.Errorf("%w: it has %d B, and the destination %d B", ErrReference, len(reference), len(dst))
	}
	if c.sections != nil {
		return c.decodeSections(dst, from, to)
	}
	return each(divide(to-from, goroutines), func(_ int, r run) error { return c.decodeRun(dst, reference, from, r) })
}

// decodeRun decodes a run of chunks, counted from chunk first on, which begins dst and reference.
func (c *Container) decodeRun(dst, reference []byte, first int, r run) error {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	at := c.offset(first + r.from)
	for i := r.from; i < r.to; i++ {
		n := c.length(first + i)
		if err := c.decodeChunk(d, part(dst, i), c.payloads[at:at+n:at+n], part(reference, i), first+i); err != nil {
			return err
		}
		at += roundUp(n, payloadAlign)
	}
	return nil
}

// decodeChunk decodes chunk i and verifies its hash.
func (c *Container) decodeChunk(d *decoder, dst, payload, reference []byte, i int) error {
	m := Mode(c.modes[i])
	if m.referenced() && reference == nil {
		return fmt.Errorf("%w: chunk %d needs it", ErrReference, i)
	}
	if !d.chunk(dst, payload, reference, m, c.kind) {
		return fmt.Errorf("%w: malformed payload of chunk %d, mode %v", ErrCorrupt, i, m)
	}
	if checksum.Leaf(dst) == binary.LittleEndian.Uint64(c.hashes[8*i:]) {
		return nil
	}
	if m.referenced() && uint32(checksum.Leaf(reference)) != binary.LittleEndian.Uint32(payload) {
		return fmt.Errorf("%w: chunk %d", ErrReference, i)
	}
	return fmt.Errorf("%w: wrong hash of chunk %d, mode %v", ErrCorrupt, i, m)
}
