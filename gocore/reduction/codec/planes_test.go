package codec

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

func testPlanes[T word](t *testing.T, most int) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, most).Draw(t, "width")
		var words, back [groupWords]T
		for i := range words {
			words[i] = T(rapid.Uint64().Draw(t, "word"))
			if width < 64 {
				words[i] &= T(uint64(1)<<width - 1)
			}
		}
		planes := make([]byte, width*planeBytes)
		putPlanes(planes, &words, width)
		for b := range width {
			for i, w := range words {
				if binary.LittleEndian.Uint32(planes[4*b:])>>i&1 != uint32(uint64(w)>>b&1) {
					t.Fatalf("width %d: bit %d of word %d", width, b, i)
				}
			}
		}
		wordsOfPlanes(&back, planes, width)
		if back != words {
			t.Fatalf("width %d: %x, want %x", width, back, words)
		}
	})
}

func TestPlanes(t *testing.T) {
	t.Run("8", func(t *testing.T) { testPlanes[uint8](t, 8) })
	t.Run("16", func(t *testing.T) { testPlanes[uint16](t, 16) })
	t.Run("32", func(t *testing.T) { testPlanes[uint32](t, 32) })
	t.Run("64", func(t *testing.T) { testPlanes[uint64](t, 64) })
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
	}
}

func TestSumsOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, last := rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "y"), rapid.Byte().Draw(t, "last")
		sums, plus := sumBytes(unzigzagBytes(x), last), addBytes(x, y)
		for i := range 8 {
			z := byte(x >> (8 * i))
			last += z>>1 ^ -(z & 1)
			if byte(sums>>(8*i)) != last || byte(plus>>(8*i)) != z+byte(y>>(8*i)) {
				t.Fatalf("byte %d of %016x and %016x: %016x, %016x", i, x, y, sums, plus)
			}
		}
	})
}
