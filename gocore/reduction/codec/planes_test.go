package codec

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// testPlanes compares planes with their definition. A plane has words/8 bytes.
func testPlanes[T word](t *testing.T, words int, write func(planes []byte, z []T), read func(planes []byte, width int) []T) {
	most := 8 * int(unsafe.Sizeof(T(0)))
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, most).Draw(t, "width")
		z := make([]T, words)
		for i := range z {
			z[i] = T(rapid.Uint64().Draw(t, "word"))
			if width < 64 {
				z[i] &= T(uint64(1)<<width - 1)
			}
		}
		planes := make([]byte, width*words/8)
		write(planes, z)
		for b := range width {
			for i, w := range z {
				if planes[b*words/8+i/8]>>(i%8)&1 != byte(uint64(w)>>b&1) {
					t.Fatalf("width %d: bit %d of word %d", width, b, i)
				}
			}
		}
		follow := rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "behind the planes")
		if back := read(append(planes, follow...), width); !slices.Equal(back, z) {
			t.Fatalf("width %d: %x, want %x", width, back, z)
		}
	})
}

func TestPlanes(t *testing.T) { everyWay(t, testAllPlanes) }

func testAllPlanes(t *testing.T) {
	t.Run("8", func(t *testing.T) {
		testPlanes(t, 32, func(p []byte, z []uint8) {
			putNarrow(p, readEight(z), readEight(z[8:]), readEight(z[16:]), readEight(z[24:]))
		}, func(p []byte, width int) (z []uint8) {
			a, b, c, d := readNarrow(p, width)
			for _, x := range []uint64{a, b, c, d} {
				z = binary.LittleEndian.AppendUint64(z, x)
			}
			return z
		})
	})
	t.Run("16", func(t *testing.T) {
		testPlanes(t, 32, func(p []byte, z []uint16) { writeBlocks16(p, bytesOfWords(z), []byte{byte(len(p) / 4)}) }, func(p []byte, width int) []uint16 {
			var x [8]uint64
			readMiddle(&x, p, width)
			transpose16(&x)
			z := make([]uint16, 32)
			for r, four := range x {
				z[2*r], z[16+2*r], z[2*r+1], z[17+2*r] = uint16(four), uint16(four>>16), uint16(four>>32), uint16(four>>48)
			}
			return z
		})
	})
	t.Run("32", func(t *testing.T) {
		testPlanes(t, 8, func(p []byte, z []uint32) { writeBlocks32(p, bytesOfWords(z), []byte{byte(len(p))}) }, func(p []byte, width int) []uint32 {
			a, b, c, d := wordsOfBlock(p, width)
			return []uint32{
				uint32(a), uint32(b), uint32(c), uint32(d), uint32(a >> 32), uint32(b >> 32), uint32(c >> 32), uint32(d >> 32),
			}
		})
	})
	t.Run("64", func(t *testing.T) {
		testPlanes(t, 8, func(p []byte, z []uint64) { writeBlocks64(p, bytesOfWords(z), []byte{byte(len(p))}) }, func(p []byte, width int) []uint64 {
			var z [8]uint64
			readBlock64(&z, p, width)
			return z[:]
		})
	})
}

func TestSpread(t *testing.T) {
	for m := range 256 {
		want, next := uint64(0), uint64(1)
		for i := range 8 {
			if m>>i&1 != 0 {
				want |= next << (8 * i)
				next++
			}
		}
		if got := spread(0x0807060504030201, byte(m)); got != want {
			t.Fatalf("mask %08b: %016x, want %016x", m, got, want)
		}
		if got, front := collect(want, byte(m)), 0x0807060504030201&keep[next-1][0]; got != front {
			t.Fatalf("mask %08b: collected %016x, want %016x", m, got, front)
		}
	}
}

// Arithmetic on lanes against that on words. x comes behind last.
func testLanes[T word](t *rapid.T) {
	x, y, last := rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "y"), rapid.Uint64().Draw(t, "last")
	bits := 8 * uint(unsafe.Sizeof(T(0)))
	former := T(last >> (64 - bits))
	all := T(0)
	for at := uint(0); at < 64; at += bits {
		a, b := T(x>>at), T(y>>at)
		z := a << 1
		if a>>(bits-1) != 0 {
			z = ^z
		}
		all = max(all, a)
		if T(add[T](x, y)>>at) != a+b || T(subtract[T](x, y)>>at) != a-b || T(zigzags[T](x)>>at) != z || unzigzag(z) != a || T(before[T](x, last)>>at) != former {
			t.Fatalf("lanes of %d bits at %d of %016x and %016x, behind %016x", bits, at, x, y, last)
		}
		former = a
	}
	if widthOf[T](x) != width64(uint64(all)) {
		t.Fatalf("%d bits of %016x", widthOf[T](x), x)
	}
}

func width64(x uint64) (n int) {
	for ; x != 0; x >>= 1 {
		n++
	}
	return n
}

func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		testLanes[uint8](t)
		testLanes[uint16](t)
		testLanes[uint32](t)
		testLanes[uint64](t)
	})
}

func TestSumsOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, last := rapid.Uint64().Draw(t, "x"), rapid.Byte().Draw(t, "last")
		sums := sumBytes(unzigzagBytes(x), last)
		for i := range 8 {
			last += unzigzag(byte(x >> (8 * i)))
			if byte(sums>>(8*i)) != last {
				t.Fatalf("byte %d of %016x: %016x", i, x, sums)
			}
		}
	})
}

func TestSaturate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, bits := rapid.Uint64().Draw(t, "x"), rapid.IntRange(1, 4).Draw(t, "bits")
		got := saturate(x, (1<<bits-1)*ones8)
		for i := range 8 {
			if want := min(byte(x>>(8*i)), 1<<bits-1); byte(got>>(8*i)) != want {
				t.Fatalf("byte %d of %016x at %d bits: %016x", i, x, bits, got)
			}
		}
	})
}

func readEight(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }

func bytesOfWords[T word](z []T) (p []byte) {
	for _, w := range z {
		p = append(p, binary.LittleEndian.AppendUint64(nil, uint64(w))[:unsafe.Sizeof(w)]...)
	}
	return p
}
