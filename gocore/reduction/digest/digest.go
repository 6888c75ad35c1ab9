// Package digest computes the 128-bit digests of chunks and of the nodes of trees.
//
// All seeds come from one seed per store, which should be random: neither function resists chosen collisions. Full chunks, shorter last chunks, inner
// nodes and blocks have seeds of their own, so that equal bytes in two of these roles do not give equal digests.
package digest

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Digest is a 128-bit digest. Serialised it is Lo, then Hi, each little-endian.
type Digest struct{ Lo, Hi uint64 }

// Bytes is the size of a Digest in memory.
const Bytes = 16

// Kind is a hash function. The numbers are part of the format of differences.
type Kind uint8

// The hash functions. Murmur3 is the function of Tan et al., ICPP'23, section 2.4, for comparison runs.
const (
	XXH3    Kind = 1 // XXH3-128 of xxHash 0.8
	Murmur3 Kind = 2 // MurmurHash3_x64_128
)

// Valid tells whether the kind is one of the above.
func (k Kind) Valid() bool { return k == XXH3 || k == Murmur3 }

func (k Kind) String() string {
	switch k {
	case XXH3:
		return "xxh3"
	case Murmur3:
		return "murmur3"
	}
	return "unknown"
}

// Function is a hash function with its seeds.
type Function struct {
	kind                           Kind
	chunk, tail, node, block, sums uint64
	mask                           Digest
}

// New returns the function of a kind, with seeds derived from the store's seed. The kind must be Valid.
func New(kind Kind, seed uint64) *Function {
	if !kind.Valid() {
		panic("digest: unknown kind of hash function")
	}
	return &Function{
		kind: kind, mask: Digest{^uint64(0), ^uint64(0)},
		chunk: Seed(seed, 1), tail: Seed(seed, 2), node: Seed(seed, 3), block: Seed(seed, 4), sums: Seed(seed, 5),
	}
}

// Seed returns the seed of a role, as docs/deduplication-format.md numbers them: output number role of SplitMix64 started at seed.
func Seed(seed, role uint64) uint64 {
	z := seed + role*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Cut returns the same function with digests cut to their lowest bits, 1 to 128. Tests use it to make collisions frequent.
func (f *Function) Cut(bits int) *Function {
	cut := *f
	switch {
	case bits <= 0 || bits > 128:
		panic("digest: a digest has 1 to 128 bits")
	case bits < 64:
		cut.mask = Digest{Lo: 1<<bits - 1}
	default:
		cut.mask = Digest{Lo: ^uint64(0), Hi: ^uint64(0) >> (128 - bits)}
	}
	return &cut
}

// Chunk returns the digest of a full chunk.
func (f *Function) Chunk(p []byte) Digest {
	if f.kind == XXH3 {
		h := xxh3.Hash128Seed(p, f.chunk)
		return Digest{h.Lo & f.mask.Lo, h.Hi & f.mask.Hi}
	}
	return f.hash(p, f.chunk)
}

// Tail returns the digest of a last chunk that is shorter than a chunk. Its length selects the seed.
func (f *Function) Tail(p []byte) Digest { return f.hash(p, Seed(f.tail, uint64(len(p)))) }

// Node returns the digest of a node with two children.
func (f *Function) Node(left, right Digest) Digest {
	var p [2 * Bytes]byte
	binary.LittleEndian.PutUint64(p[0:], left.Lo)
	binary.LittleEndian.PutUint64(p[8:], left.Hi)
	binary.LittleEndian.PutUint64(p[16:], right.Lo)
	binary.LittleEndian.PutUint64(p[24:], right.Hi)
	return f.hash(p[:], f.node)
}

// Block returns the digest of a block of several chunks, which is no node of a tree. Its length selects the seed.
func (f *Function) Block(p []byte) Digest { return f.hash(p, Seed(f.block, uint64(len(p)))) }

func (f *Function) hash(p []byte, seed uint64) Digest {
	var d Digest
	if f.kind == XXH3 {
		h := xxh3.Hash128Seed(p, seed)
		d = Digest{h.Lo, h.Hi}
	} else {
		d = murmur3(p, seed)
	}
	return Digest{d.Lo & f.mask.Lo, d.Hi & f.mask.Hi}
}
