package digest

import (
	"encoding/binary"
	"math/bits"
)

const (
	murmurC1 = 0x87c37b91114253d5
	murmurC2 = 0x4cf5ad432745937f
)

// murmur3 is MurmurHash3_x64_128 (Appleby, SMHasher). The published function has seeds of 32 bits; this one begins with any 64-bit seed in the same way.
func murmur3(p []byte, seed uint64) Digest {
	h1, h2 := seed, seed
	n := uint64(len(p))
	for ; len(p) >= 16; p = p[16:] {
		h1 ^= murmurLow(binary.LittleEndian.Uint64(p))
		h1 = bits.RotateLeft64(h1, 27) + h2
		h1 = h1*5 + 0x52dce729
		h2 ^= murmurHigh(binary.LittleEndian.Uint64(p[8:]))
		h2 = bits.RotateLeft64(h2, 31) + h1
		h2 = h2*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], p) // zero words change nothing below
	h2 ^= murmurHigh(binary.LittleEndian.Uint64(tail[8:]))
	h1 ^= murmurLow(binary.LittleEndian.Uint64(tail[:]))
	h1 ^= n
	h2 ^= n
	h1 += h2
	h2 += h1
	h1, h2 = murmurMix(h1), murmurMix(h2)
	h1 += h2
	h2 += h1
	return Digest{h1, h2}
}

func murmurLow(k uint64) uint64  { return bits.RotateLeft64(k*murmurC1, 31) * murmurC2 }
func murmurHigh(k uint64) uint64 { return bits.RotateLeft64(k*murmurC2, 33) * murmurC1 }

func murmurMix(k uint64) uint64 {
	k = (k ^ k>>33) * 0xff51afd7ed558ccd
	k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
