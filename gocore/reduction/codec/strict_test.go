package codec

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// Widths up to the bits of a word are read, and no larger ones.
func TestWidthsBeyondAWord(t *testing.T) {
	for _, blocks := range []int{1, 7, 8, 9, 100, 512} {
		for _, most := range []int{8, 16, 32, 64} {
			for _, n := range []int{0, 1, most - 1, most, most + 1, 2 * most, 127, 128, 129, 255} {
				for _, at := range []int{0, blocks / 2, blocks - 1} {
					var w, back widths
					for i := range blocks {
						w.add(min(i, most))
					}
					w.list[at] = byte(n)
					form := make([]byte, w.measure())
					w.write(form)
					rest, ok := back.read(form, blocks, most)
					if ok != (n <= most) || ok && (len(rest) != 0 || string(back.all()) != string(w.all())) {
						t.Fatalf("width %d of block %d of %d, at most %d: %v", n, at, blocks, most, ok)
					}
				}
			}
		}
	}
}

// The exponents of a chunk are counted exactly, wherever they lie, and so the codes are the same in both ways.
func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom([]Kind{Float16, BFloat16, Float32, Float64}).Draw(t, "kind")
		f, size := floatOf(k), int(k.Word)
		words := rapid.SampledFrom([]int{64, 512, 640, 1024, ChunkBytes / size, ChunkBytes/size - 32}).Draw(t, "words")
		centres := rapid.SliceOfN(rapid.Uint64Range(0, 1<<k.Exponent-1), 1, 3).Draw(t, "centres")
		spread, rare := rapid.Uint64Range(1, 40).Draw(t, "spread"), rapid.IntRange(1, 300).Draw(t, "rare")
		r := source(rapid.Uint64().Draw(t, "seed"))
		plain, want := make([]byte, words*size), make([]uint32, 1<<k.Exponent)
		for i := range words {
			e := centres[0]
			if r.IntN(rare) == 0 {
				e = centres[r.IntN(len(centres))]
			}
			e = min(e+r.Uint64N(spread), 1<<k.Exponent-1)
			want[e]++
			var w [8]byte
			binary.LittleEndian.PutUint64(w[:], special(k, e)|r.Uint64N(2)<<top(k)|r.Uint64N(1<<(top(k)-int(k.Exponent))))
			copy(plain[i*size:], w[:size])
		}
		v := view{plain: plain, words: words, size: size}
		var h histogram
		h.take(&f, &v)
		codes := h.choose(&f, words)
		compare(t, &h, want)
		defer withoutVectors()()
		h.take(&f, &v)
		compare(t, &h, want)
		if again := h.choose(&f, words); again != codes {
			t.Fatalf("codes %+v, and %+v without vectors", codes, again)
		}
	})
}

func compare(t *rapid.T, h *histogram, want []uint32) {
	least, most := -1, 0
	for e, n := range want {
		if h.count[e] != n {
			t.Fatalf("exponent %d is counted %d times, want %d", e, h.count[e], n)
		}
		if n > 0 {
			if most = e; least < 0 {
				least = e
			}
		}
	}
	if h.min != least || h.max != most {
		t.Fatalf("from %d to %d, want %d to %d", h.min, h.max, least, most)
	}
}

// Escapes that are no exponents, that are too many or too few, are refused.
func TestEscapesThatAreNone(t *testing.T) { everyWay(t, testEscapesThatAreNone) }

func testEscapesThatAreNone(t *testing.T) {
	for _, k := range []Kind{Float16, BFloat16, Float32, Float64} {
		words := ChunkBytes / int(k.Word)
		plain := make([]byte, ChunkBytes)
		fillFamily(plain, k, 6, 1)
		for i := 0; i < words; i += 50 { // an escape each
			clear(plain[i*int(k.Word):][:k.Word])
		}
		e, err := NewEncoder(k, Only(Exp))
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, ChunkBytes)
		entry := e.Chunk(dst, plain, nil)
		payload, f := dst[:entry.Bytes], floatOf(k)
		if entry.Mode != Exp || !decodesChunk(payload, k) {
			t.Fatalf("%v: mode %v, or it does not decode", k, entry.Mode)
		}
		if decodesChunk(payload[:len(payload)-1], k) || decodesChunk(payload[:len(payload)-f.escape], k) || decodesChunk(append(payload, 0), k) ||
			decodesChunk(append(payload, make([]byte, f.escape)...), k) {
			t.Errorf("%v: escapes that are too many, or too few, were accepted", k)
		}
		for i := 1; k.Exponent != 8 && i <= 3; i++ {
			last := payload[len(payload)-i*f.escape:]
			before := last[f.escape-1]
			last[f.escape-1] = byte(f.mask()>>(8*f.escape-8)) + 1
			if decodesChunk(payload, k) {
				t.Errorf("%v: an escape beyond all exponents was accepted", k)
			}
			last[f.escape-1] = before
		}
	}
}

func decodesChunk(payload []byte, k Kind) bool {
	return new(decoder).chunk(make([]byte, ChunkBytes), payload, nil, Exp, k)
}

// A sparse form that is cut, or has a mark behind the end, is refused; bytes behind it are left.
func TestSparseForm(t *testing.T) { everyWay(t, testSparseForm) }

func testSparseForm(t *testing.T) {
	r := source(5)
	for _, n := range []int{1, 8, 63, 64, 65, 512, 700, 4096, 8191, 8192} {
		for _, many := range []int{1, 2, 9, 300} {
			p := make([]byte, n)
			for i := range p {
				if r.IntN(many) == 0 {
					p[i] = byte(1 + r.IntN(255))
				}
			}
			var b bitmaps
			form := make([]byte, b.measure(p))
			if got := b.write(form, p); got != len(form) {
				t.Fatalf("%d bytes: %d were written, and %d measured", n, got, len(form))
			}
			back := dirty(n)
			if rest, ok := b.read(back, append(form, 1, 2, 3)); !ok || string(rest) != "\x01\x02\x03" || string(back) != string(p) {
				t.Fatalf("%d bytes, one of %d: %v, %d left", n, many, ok, len(rest))
			}
			for cut := 1; cut <= min(len(form), 70); cut++ {
				if _, ok := b.read(back, form[:len(form)-cut]); ok {
					t.Fatalf("%d bytes, one of %d: accepted without the last %d", n, many, cut)
				}
			}
		}
	}
	if _, ok := new(bitmaps).read(make([]byte, 3), []byte{1, 1, 8, 7}); ok {
		t.Error("a mark behind the last byte was accepted")
	}
}

// Bits that the format wants to be 0, and that change no word, are refused all the same.
func TestZerosAreVerified(t *testing.T) {
	for m, places := range map[Mode][]int{Exp: {3}, Xrz: {4, 5, 6, 7, 9, 10, 11}, Step: {4, 5, 6, 7, 13, 14, 15}, Diff: {5, 6, 7}} {
		plain := make([]byte, 1000)
		fillFamily(plain, Float32, map[bool]int{true: 7, false: 6}[m == Diff], 1)
		reference := change(plain, Float32, 9, 1)
		e, err := NewEncoder(Float32, Only(m))
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, 1000)
		entry := e.Chunk(dst, plain, reference)
		if entry.Mode != m {
			t.Fatalf("mode %v, want %v", entry.Mode, m)
		}
		for _, at := range places {
			dst[at] ^= 0x80
			if new(decoder).chunk(make([]byte, 1000), dst[:entry.Bytes], reference, m, Float32) {
				t.Errorf("%v: byte %d may be %#x", m, at, dst[at])
			}
			dst[at] ^= 0x80
		}
		if !new(decoder).chunk(make([]byte, 1000), dst[:entry.Bytes], reference, m, Float32) {
			t.Errorf("%v: it does not decode", m)
		}
	}
}
