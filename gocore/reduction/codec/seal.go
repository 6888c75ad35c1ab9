package codec

import (
	"encoding/binary"
	"fmt"
)

// SealTables writes the header of a container whose tables and payloads are in place, as the kernels of a GPU write them. It clears the bytes between
// tables and payloads, and returns the container's length.
func SealTables(container []byte, k Kind, plain int) (int, error) {
	if err := k.check(); err != nil {
		return 0, err
	}
	chunks := Chunks(plain)
	at := payloadsAt(chunks)
	if plain < 0 || len(container) < at {
		return 0, fmt.Errorf("%w: tables of %d chunks in a container of %d B", ErrLength, chunks, len(container))
	}
	_, lengths, modeTable := tables(container, chunks)
	flags := 0
	for i, m := range modeTable {
		n := int(binary.LittleEndian.Uint16(lengths[2*i:]))
		if Mode(m) >= modes || n > chunkLength(plain, i) || roundUp(n, payloadAlign) > len(container)-at {
			return 0, fmt.Errorf("%w: chunk %d has mode %d, payload %d B at %d", ErrLength, i, m, n, at)
		}
		at += roundUp(n, payloadAlign)
		if Mode(m).referenced() {
			flags = flagReference
		}
	}
	clear(container[headerBytes+entryBytes*chunks : payloadsAt(chunks)])
	writeHeader(container, header{Version, k, plain, chunks, flags, at, payloadsAt(chunks)})
	return at, nil
}

// OpenTables is Open for a container whose header the caller knows and does not trust, or that has none yet: the kind and the length of the region are
// arguments, and no hash tells whether the tables are as written. They are verified against the region and the payloads, so that decoding reads no
// byte of another place. Bytes behind the last payload are ignored.
func OpenTables(container []byte, k Kind, plain int) (*Container, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	chunks := Chunks(plain)
	at := payloadsAt(chunks)
	if plain < 0 || len(container) < at {
		return nil, fmt.Errorf("%w: tables of %d chunks in a container of %d B", ErrCorrupt, chunks, len(container))
	}
	c := &Container{kind: k, plain: plain, payloads: container[at:]}
	c.hashes, c.lengths, c.modes = tables(container, chunks)
	for _, m := range c.modes {
		c.reference = c.reference || Mode(m).referenced()
	}
	total := c.offset(chunks)
	if total > len(c.payloads) {
		return nil, fmt.Errorf("%w: payloads of %d B, where %d B are left", ErrCorrupt, total, len(c.payloads))
	}
	c.payloads = c.payloads[:total]
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}
