package digest

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// SumBytes is the length of every block of a region's checksum but the last. A warp can hash a block while its chunks are in shared memory, and a core
// while they are in its first cache.
const SumBytes = 16 << 10

// SumBlock returns the hash of one block of a region's checksum: XXH3-64 with a seed that no digest has, so that a collision of digests does not hide from
// it. It does not depend on the kind of the function, nor on Cut.
func (f *Function) SumBlock(block []byte) uint64 { return xxh3.HashSeed(block, f.sums) }

// Combine returns the checksum of the region whose blocks have the given hashes, in order: that of no block is the hash of nothing, and that of one is its
// own. That of more is the hash of theirs as 8-byte little-endian integers.
func (f *Function) Combine(blocks []uint64) uint64 {
	if len(blocks) == 1 {
		return blocks[0]
	}
	text := make([]byte, 0, 8*len(blocks))
	for _, h := range blocks {
		text = binary.LittleEndian.AppendUint64(text, h)
	}
	return xxh3.HashSeed(text, f.sums)
}

// Sum returns the checksum of a whole region.
func (f *Function) Sum(p []byte) uint64 {
	blocks := make([]uint64, 0, (len(p)+SumBytes-1)/SumBytes)
	for len(p) > 0 {
		n := min(len(p), SumBytes)
		blocks = append(blocks, f.SumBlock(p[:n]))
		p = p[n:]
	}
	return f.Combine(blocks)
}
