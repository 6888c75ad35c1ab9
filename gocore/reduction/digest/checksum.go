package digest

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// SumBytes is the length of every block of a region's checksum but the last. A warp can hash a block while its chunks are in shared memory, and a core
// while they are in its first cache.
const SumBytes = 16 << 10

// Checksum is the running checksum of a region: XXH3-64 with a seed that no digest has, so that a collision of digests does not hide from it.
//
// The bytes are cut into blocks of SumBytes. The checksum of a region with at most one block is XXH3-64 of its bytes. That of a region with more is
// XXH3-64 of the blocks' hashes, in order, as 8-byte little-endian integers. All hashes have the same seed.
type Checksum struct {
	seed  uint64
	first uint64
	count int
	text  []byte
}

// Checksum begins a checksum. It does not depend on the kind of the function, nor on Cut.
func (f *Function) Checksum() Checksum { return Checksum{seed: f.sums} }

// Add appends the next block, of SumBytes, or less if it is the last.
func (c *Checksum) Add(block []byte) {
	h := xxh3.HashSeed(block, c.seed)
	if c.count++; c.count == 1 {
		c.first = h
	}
	c.text = binary.LittleEndian.AppendUint64(c.text, h)
}

// Sum returns the checksum of the blocks added.
func (c *Checksum) Sum() uint64 {
	switch c.count {
	case 0:
		return xxh3.HashSeed(nil, c.seed)
	case 1:
		return c.first
	}
	return xxh3.HashSeed(c.text, c.seed)
}

// Sum returns the checksum of a whole region.
func (f *Function) Sum(p []byte) uint64 {
	c := f.Checksum()
	for len(p) > 0 {
		n := min(len(p), SumBytes)
		c.Add(p[:n])
		p = p[n:]
	}
	return c.Sum()
}
