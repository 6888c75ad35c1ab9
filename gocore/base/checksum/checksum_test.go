package checksum

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

func pattern(n int) []byte {
	p := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1})
	_, _ = src.Read(p)
	return p
}

// The numbers are part of the on-disk format and must never change. They were computed by another implementation of XXH3.
func TestGolden(t *testing.T) {
	p := make([]byte, 3*LeafBytes+17)
	for i := range p {
		p[i] = byte(i*131 + i>>13)
	}
	for _, c := range []struct {
		n    int
		want uint64
	}{
		{0, 0x2d06800538d394c2},
		{1, 0xc44bdff4074eecdb}, {240, 0xb80284837259eee4}, {241, 0x44dbd3180a664e27},
		{LeafBytes, 0xd76a545ca694b739}, {LeafBytes + 1, 0xa2d7499965a7dcc1}, {3*LeafBytes + 17, 0x725568720a2f8282},
	} {
		if got := Sum(p[:c.n]); got != c.want {
			t.Errorf("Sum of %d bytes: %#x, want %#x", c.n, got, c.want)
		}
	}
}

func TestLeaves(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want int
	}{
		{-1, 0}, {0, 0}, {1, 1}, {LeafBytes - 1, 1}, {LeafBytes, 1}, {LeafBytes + 1, 2}, {2 * LeafBytes, 2}, {5 << 40, 5 << 22},
	} {
		if got := Leaves(c.n); got != c.want {
			t.Errorf("Leaves(%d) = %d, want %d", c.n, got, c.want)
		}
	}
}

// The definition, written a second time, leaf by leaf in random order.
func TestSumIsTheDefinition(t *testing.T) {
	data := pattern(4*LeafBytes + 5)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, len(data)), rapid.SampledFrom([]int{LeafBytes, LeafBytes + 1, 2 * LeafBytes})).Draw(t, "n")
		p := data[:n]
		count := Leaves(int64(n))
		leaves := make([]uint64, count)
		for _, i := range rand.Perm(count) {
			leaves[i] = Leaf(p[i*LeafBytes : min(n, (i+1)*LeafBytes)])
		}
		want := xxh3.Hash(p)
		if n > LeafBytes {
			text := make([]byte, 8*count)
			for i, leaf := range leaves {
				binary.LittleEndian.PutUint64(text[8*i:], leaf)
			}
			want = xxh3.Hash(text)
		}
		if Sum(p) != want || Combine(leaves) != want {
			t.Fatalf("%d bytes: Sum %#x, Combine %#x, want %#x", n, Sum(p), Combine(leaves), want)
		}
	})
}

func TestEveryBitCounts(t *testing.T) {
	data := pattern(2*LeafBytes + 100)
	rapid.Check(t, func(t *rapid.T) {
		want := Sum(data)
		bit := rapid.IntRange(0, len(data)*8-1).Draw(t, "bit")
		data[bit/8] ^= 1 << (bit % 8)
		got := Sum(data)
		data[bit/8] ^= 1 << (bit % 8)
		if got == want {
			t.Fatalf("bit %d does not change the checksum", bit)
		}
	})
}

func TestCombineOfManyLeaves(t *testing.T) {
	leaves := make([]uint64, 5000)
	text := make([]byte, 0, 8*len(leaves))
	for i := range leaves {
		leaves[i] = rand.Uint64()
		text = binary.LittleEndian.AppendUint64(text, leaves[i])
	}
	if Combine(leaves) != xxh3.Hash(text) {
		t.Error("5000 leaves")
	}
}

func BenchmarkLeaf(b *testing.B) {
	p := pattern(LeafBytes)
	b.SetBytes(LeafBytes)
	for b.Loop() {
		Leaf(p)
	}
}

// alignedPattern returns n bytes at an address that is a multiple of 64.
func alignedPattern(n int) []byte {
	p := pattern(n + 64)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(p))) & 63)
	return p[skip : skip+n : skip+n]
}

func TestCopyLeaf(t *testing.T) {
	data := pattern(LeafBytes)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 5000), rapid.IntRange(0, LeafBytes)).Draw(t, "n")
		dst := make([]byte, n+3)
		if got := CopyLeaf(dst, data[:n], rapid.Bool().Draw(t, "stream")); got != Leaf(data[:n]) {
			t.Fatalf("%d bytes: %#x, want %#x", n, got, Leaf(data[:n]))
		}
		if !bytes.Equal(dst[:n], data[:n]) || !bytes.Equal(dst[n:], make([]byte, 3)) {
			t.Fatalf("%d bytes: copy differs", n)
		}
	})
}

// Copy and hash together, compared with each alone: over buffers that fit the cache and larger ones.
func BenchmarkCopyLeaf(b *testing.B) {
	for _, total := range []int{2 << 20, 256 << 20} {
		src, dst := alignedPattern(total), alignedPattern(total)
		for _, c := range []struct {
			name string
			leaf func(dst, src []byte)
		}{
			{"copy", func(dst, src []byte) { copy(dst, src) }},
			{"hash", func(dst, src []byte) { Leaf(src) }},
			{"copy then hash", func(dst, src []byte) { copyThenHash(dst, src) }},
			{"hash then copy", func(dst, src []byte) { Leaf(src); copy(dst, src) }},
			{"fused", func(dst, src []byte) { CopyLeaf(dst, src, false) }},
			{"fused, streaming", func(dst, src []byte) { CopyLeaf(dst, src, true) }},
		} {
			b.Run(fmt.Sprintf("%dMiB/%s", total>>20, c.name), func(b *testing.B) {
				b.SetBytes(LeafBytes)
				at := 0
				for b.Loop() {
					c.leaf(dst[at:at+LeafBytes], src[at:at+LeafBytes])
					at = (at + LeafBytes) % total
				}
			})
		}
	}
}

// A leaf in parts compared with Leaf and copy, at all lengths, alignments and divisions; bytes around the destination stay unchanged.
func TestPartsAgainstPlain(t *testing.T) {
	data := pattern(LeafBytes + 4096)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 9000), rapid.IntRange(1, LeafBytes),
			rapid.SampledFrom([]int{1024, 4095, 4096, 4097, 4096 + 1024, 8192 + 63, LeafBytes - 1, LeafBytes})).Draw(t, "n")
		from := rapid.IntRange(0, 200).Draw(t, "from")
		to := rapid.OneOf(rapid.SampledFrom([]int{0, 1, 32, 64}), rapid.IntRange(0, 130)).Draw(t, "to")
		most := rapid.IntRange(1, 40).Draw(t, "most") * PartBytes
		src := data[from : from+n]
		area := alignedPattern(n + 300)
		want := bytes.Clone(area)
		copy(want[to:], src)
		leaf := area[to : to+n]
		var p Parts
		for at := 0; at < n; {
			part := src[at:min(at+most, n)]
			p.Add(leaf, part, rapid.SampledFrom([]uintptr{0, ^uintptr(0) - 100}).Draw(t, "next"))
			at += len(part)
		}
		if got := p.Sum(leaf); got != Leaf(src) {
			t.Fatalf("%d bytes in parts of %d: hash %#x, want %#x", n, most, got, Leaf(src))
		}
		if !bytes.Equal(area, want) {
			t.Fatalf("%d bytes in parts of %d to offset %d: destination differs", n, most, to)
		}
	})
}
