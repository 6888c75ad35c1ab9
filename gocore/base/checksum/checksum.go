// Package checksum defines the checksum of a region.
//
// Definition (part of the on-disk format):
//
//   - The region's bytes are cut into leaves of LeafBytes = 256 KiB = 262144 bytes; the last one may
//     be shorter. A region of n bytes has ceil(n / LeafBytes) leaves; an empty region has none.
//   - The hash of a leaf is XXH3-64 of its bytes, with seed 0 and the default secret.
//   - The checksum of a region with at most one leaf is XXH3-64 of its bytes (of the empty string
//     when it is empty: 0x2d06800538d394c2).
//   - The checksum of a region with more leaves is XXH3-64 of the leaf hashes, concatenated in
//     order as 8-byte little-endian integers.
//
// Leaves can be hashed in any order and by several threads, each while its bytes are in cache.
package checksum

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// LeafBytes is the length of every leaf but the last. Two threads can share a region of 1 MiB, and a leaf stays in a core's cache between copying and
// hashing.
const LeafBytes = 256 << 10

// Leaves returns how many leaves a region of n bytes has; 0 for n <= 0.
func Leaves(n int64) int {
	if n <= 0 {
		return 0
	}
	return int((n-1)/LeafBytes + 1)
}

// Leaf returns the hash of one leaf's bytes.
func Leaf(p []byte) uint64 { return leaf(p) }

// Combine returns the checksum of the region whose leaves have the given hashes, in order. It
// allocates nothing up to 64 leaves, and then 8 bytes per leaf.
func Combine(leaves []uint64) uint64 {
	switch len(leaves) {
	case 0:
		return xxh3.Hash(nil)
	case 1:
		return leaves[0]
	}
	var few [64 * 8]byte
	text := few[:0]
	if len(leaves)*8 > len(few) {
		text = make([]byte, 0, len(leaves)*8)
	}
	for _, leaf := range leaves {
		text = binary.LittleEndian.AppendUint64(text, leaf)
	}
	return xxh3.Hash(text)
}

// Sum returns the checksum of a contiguous region.
func Sum(p []byte) uint64 {
	if len(p) <= LeafBytes {
		return Leaf(p)
	}
	leaves := make([]uint64, 0, Leaves(int64(len(p))))
	for len(p) > 0 {
		n := min(len(p), LeafBytes)
		leaves = append(leaves, Leaf(p[:n]))
		p = p[n:]
	}
	return Combine(leaves)
}
