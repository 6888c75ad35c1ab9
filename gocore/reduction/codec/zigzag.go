package codec

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Arithmetic on the words of a register of 64 bits, all at once. A lane is a word in it.

// laneBits is the number of bits of a lane.
func laneBits[T word]() uint { return uint(8 * unsafe.Sizeof(T(0))) }

// ones is bit 0 of each lane.
func ones[T word]() uint64 { return ^uint64(0) / (^uint64(0) >> (64 - laneBits[T]())) }

// subtract subtracts lanes, each modulo its size.
func subtract[T word](a, b uint64) uint64 {
	if laneBits[T]() == 64 {
		return a - b
	}
	top := ones[T]() << (laneBits[T]() - 1)
	return (a | top) - b&^top ^ (a^^b)&top
}

// add adds lanes, each modulo its size.
func add[T word](a, b uint64) uint64 {
	if laneBits[T]() == 64 {
		return a + b
	}
	top := ones[T]() << (laneBits[T]() - 1)
	return a&^top + b&^top ^ (a^b)&top
}

// zigzags returns the zig-zag values of lanes.
func zigzags[T word](d uint64) uint64 {
	low := ones[T]()
	sign := d >> (laneBits[T]() - 1) & low
	return d<<1&^low ^ (sign<<laneBits[T]() - sign)
}

// before returns the lanes one word before those of x, in a sequence in which last comes before x.
func before[T word](x, last uint64) uint64 { return x<<laneBits[T]() | last>>(64-laneBits[T]()) }

// widthOf is the number of bits of the largest of all lanes, of which x has the union.
func widthOf[T word](x uint64) int {
	if laneBits[T]() <= 32 {
		x |= x >> 32
	}
	if laneBits[T]() <= 16 {
		x |= x >> 16
	}
	if laneBits[T]() <= 8 {
		x |= x >> 8
	}
	return bits.Len64(uint64(T(x)))
}

// blockBytes is the length of the words of a block.
func blockBytes(size int) int { return blockWords(size) * size }

// difference computes the zig-zag values of both orders for whole blocks of words, and their widths.
//
//go:norace
func difference[T word](d *differences, x []byte) {
	lastWord, lastChange := uint64(T(binary.LittleEndian.Uint64(x)))<<(64-laneBits[T]()), uint64(0)
	ends := blockBytes(int(laneBits[T]()/8)) - unitBytes // where the last unit of a block begins
	one, two := &d.values[0], &d.values[1]
	var all, all2 uint64
	for at := 0; at+unitBytes <= len(x) && at+unitBytes <= ChunkBytes; at += unitBytes {
		src, z, z2 := (*[unitBytes]byte)(x[at:]), (*[unitBytes]byte)(one[at:]), (*[unitBytes]byte)(two[at:])
		for i := 0; i < unitBytes; i += 8 {
			w := binary.LittleEndian.Uint64(src[i:])
			change := subtract[T](w, before[T](w, lastWord))
			second := subtract[T](change, before[T](change, lastChange))
			lastWord, lastChange = w, change
			change, second = zigzags[T](change), zigzags[T](second)
			binary.LittleEndian.PutUint64(z[i:], change)
			binary.LittleEndian.PutUint64(z2[i:], second)
			all, all2 = all|change, all2|second
		}
		if at&ends == ends {
			d.orders[0].add(widthOf[T](all))
			d.orders[1].add(widthOf[T](all2))
			all, all2 = 0, 0
		}
	}
}

// unitBytes is the length of a block of words of 1 or 4 bytes, and half of that of other words.
const unitBytes = 32

// subtractWords writes a - b. The lengths are equal, and multiples of unitBytes.
//
//go:norace
func subtractWords[T word](dst, a, b []byte) {
	n := combineByVectors(dst, a, b, int(laneBits[T]()/8), true)
	for dst, a, b = dst[n:], a[n:], b[n:]; len(dst) >= unitBytes; dst, a, b = dst[unitBytes:], a[unitBytes:], b[unitBytes:] {
		x, y, z := (*[unitBytes]byte)(dst), (*[unitBytes]byte)(a), (*[unitBytes]byte)(b)
		for i := 0; i < unitBytes; i += 8 {
			binary.LittleEndian.PutUint64(x[i:], subtract[T](binary.LittleEndian.Uint64(y[i:]), binary.LittleEndian.Uint64(z[i:])))
		}
	}
}

// addWords adds b to dst. The lengths are equal, and multiples of unitBytes.
func addWords[T word](dst, b []byte) {
	n := combineByVectors(dst, dst, b, int(laneBits[T]()/8), false)
	for dst, b = dst[n:], b[n:]; len(dst) >= unitBytes; dst, b = dst[unitBytes:], b[unitBytes:] {
		x, y := (*[unitBytes]byte)(dst), (*[unitBytes]byte)(b)
		for i := 0; i < unitBytes; i += 8 {
			binary.LittleEndian.PutUint64(x[i:], add[T](binary.LittleEndian.Uint64(x[i:]), binary.LittleEndian.Uint64(y[i:])))
		}
	}
}
