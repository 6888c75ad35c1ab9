package codec

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// onlyOne skips a long test of one goroutine under the race detector.
func onlyOne(t *testing.T) {
	if raceDetector {
		t.Skip("it takes long, and one goroutine cannot race")
	}
}

// everyWay runs a test without the assembly, and with each assembly whose instructions the processor has.
func everyWay(t *testing.T, test func(t *testing.T)) {
	t.Run("plain", func(t *testing.T) {
		defer withoutVectors()()
		test(t)
	})
	if vectors256 {
		t.Run("vectors256", func(t *testing.T) {
			defer onlyVectors256()()
			test(t)
		})
	}
	if vectors {
		t.Run("vectors", test)
	}
}

// withoutVectors switches all assembly off, and returns a function that switches it on again.
func withoutVectors() (restore func()) {
	before := vectors256
	vectors256 = false
	restoreWide := onlyVectors256()
	return func() {
		vectors256 = before
		restoreWide()
	}
}

// onlyVectors256 switches the assembly for AVX-512 off, and returns a function that switches it on again.
func onlyVectors256() (restore func()) {
	before := vectors
	vectors = false
	return func() { vectors = before }
}

func TestVectorsWriteTheSameBytes(t *testing.T) {
	if !vectors {
		t.Skip("this processor has no AVX-512 with VBMI2 and GFNI, or the race detector is on")
	}
	rapid.Check(t, func(t *rapid.T) {
		x := drawRegion(t)
		o := Options{Kind: x.kind, Modes: x.modes}
		want := func() []byte {
			defer withoutVectors()()
			return encode(t, x.plain, x.reference, o)
		}()
		if got := encode(t, x.plain, x.reference, o); !bytes.Equal(got, want) {
			t.Fatal("the containers differ")
		}
		if back := dirty(len(x.plain)); Decode(back, want, x.reference, 1) != nil || !bytes.Equal(back, x.plain) {
			t.Fatal("vectors decode other bytes")
		}
		defer withoutVectors()()
		if back := dirty(len(x.plain)); Decode(back, want, x.reference, 1) != nil || !bytes.Equal(back, x.plain) {
			t.Fatal("loops decode other bytes")
		}
	})
}

func TestVectors256DecodeTheSameBytes(t *testing.T) {
	if !vectors256 {
		t.Skip("this processor has no AVX2, or the race detector is on")
	}
	defer onlyVectors256()()
	rapid.Check(t, func(t *rapid.T) {
		x := drawRegion(t)
		container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		if back := dirty(len(x.plain)); Decode(back, container, x.reference, 1) != nil || !bytes.Equal(back, x.plain) {
			t.Fatal("AVX2 decodes other bytes")
		}
		defer withoutVectors()()
		if back := dirty(len(x.plain)); Decode(back, container, x.reference, 1) != nil || !bytes.Equal(back, x.plain) {
			t.Fatal("loops decode other bytes")
		}
	})
}

// Payloads of any bytes decode to the same bytes or errors, with and without the assembly.
func testSameDecoding(t *testing.T, payload, reference []byte, n int, m Mode, k Kind) {
	decode := func() ([]byte, bool) {
		dst := dirty(n)
		ok := new(decoder).chunk(dst, payload, reference, m, k)
		return dst, ok
	}
	got, ok := decode()
	for what, choose := range map[string]func() func(){"AVX2": onlyVectors256, "loops": withoutVectors} {
		restore := choose()
		want, fine := decode()
		restore()
		if ok != fine || ok && !bytes.Equal(got, want) {
			t.Fatalf("%v, %v, %d B: the fastest way accepts a payload: %v; %s: %v", m, k, n, ok, what, fine)
		}
	}
}

// addPayloads adds payloads of whole chunks, of each mode and kind.
func addPayloads(f *testing.F) {
	plain := make([]byte, ChunkBytes)
	for i, k := range kinds {
		for m := range modes {
			fillFamily(plain, k, []int{0, 1, 7, 6, 6, 7}[m], 1)
			e, err := NewEncoder(k, Only(m))
			if err != nil {
				f.Fatal(err)
			}
			dst := make([]byte, ChunkBytes)
			entry := e.Chunk(dst, plain, change(plain, k, 5, 1))
			f.Add(dst[:entry.Bytes], byte(entry.Mode), byte(i))
		}
	}
}

// FuzzVectors mutates the payloads of whole chunks.
func FuzzVectors(f *testing.F) {
	addPayloads(f)
	reference := make([]byte, ChunkBytes)
	fillFamily(reference, Int8, 0, 9)
	f.Fuzz(func(t *testing.T, payload []byte, mode, kind byte) {
		testSameDecoding(t, payload, reference, ChunkBytes, Mode(mode%8), kinds[int(kind)%len(kinds)])
	})
}

// Flipped bits and cut ends of payloads of whole chunks.
func TestVectorsRefuseTheSame(t *testing.T) {
	onlyOne(t)
	plain := make([]byte, ChunkBytes)
	r := source(3)
	for _, k := range kinds {
		for m := range modes {
			fillFamily(plain, k, []int{0, 1, 7, 6, 6, 7}[m], 1)
			reference := change(plain, k, 5, 1)
			e, err := NewEncoder(k, Only(m))
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]byte, ChunkBytes)
			entry := e.Chunk(dst, plain, reference)
			for range 300 {
				payload := bytes.Clone(dst[:max(1, entry.Bytes-max(0, r.IntN(40)-30))])
				for range r.IntN(3) {
					payload[r.IntN(len(payload))>>r.IntN(12)] ^= 1 << r.IntN(8)
				}
				testSameDecoding(t, payload[:len(payload):len(payload)], reference, ChunkBytes, entry.Mode, k)
			}
		}
	}
}

// The mode that Chunk takes has the shortest payload of Sizes, also where Chunk measures only some.
func TestChunkTakesTheShortestOfSizes(t *testing.T) {
	onlyOne(t)
	for _, k := range kinds {
		for family := range families {
			for _, n := range []int{1, int(k.Word), 3 * int(k.Word), 700, ChunkBytes - 1, ChunkBytes} {
				plain := make([]byte, n)
				fillFamily(plain, k, family, 3)
				for _, reference := range [][]byte{nil, plain, change(plain, k, 1000, 1), change(plain, k, 2, 1)} {
					for m := range modes {
						testShortest(t, k, AllModes&^(1<<m), plain, reference)
					}
				}
			}
		}
	}
}

func testShortest(t *testing.T, k Kind, allowed Modes, plain, reference []byte) {
	e, err := NewEncoder(k, allowed)
	if err != nil {
		t.Fatal(err)
	}
	sizes := e.Sizes(plain, reference)
	best := Raw
	for m, n := range sizes {
		if n >= 0 && n < sizes[best] {
			best = Mode(m)
		}
	}
	if got := e.Chunk(make([]byte, len(plain)), plain, reference); got.Mode != best || got.Bytes != sizes[best] {
		t.Fatalf("%v, modes %b, %d B: %v with %d B of the sizes %d", k, allowed, len(plain), got.Mode, got.Bytes, sizes)
	}
}

// Escapes at the end of a chunk, at its front and everywhere, and some too many or too few.
func TestVectorsTakeTheSameEscapes(t *testing.T) {
	onlyOne(t)
	for _, k := range []Kind{Float16, BFloat16, Float32, Float64} {
		size := int(k.Word)
		for n := range 90 {
			for _, at := range []int{0, ChunkBytes/size - n, 7} {
				plain := make([]byte, ChunkBytes)
				fillFamily(plain, k, 6, 1)
				for i := range n {
					word := (at + i) % (ChunkBytes / size)
					if at == 7 {
						word = i * 61 % (ChunkBytes / size)
					}
					clear(plain[word*size:][:size])
				}
				e, err := NewEncoder(k, Only(Exp))
				if err != nil {
					t.Fatal(err)
				}
				dst := make([]byte, ChunkBytes+9)
				entry := e.Chunk(dst, plain, nil)
				for cut := -9; cut <= 9; cut += 3 {
					testSameDecoding(t, dst[:entry.Bytes+cut:entry.Bytes+cut], nil, ChunkBytes, entry.Mode, k)
				}
			}
		}
	}
}

// Blocks of any widths: many planes, or none, in the first and the last ones.
func TestVectorsReadTheSameBlocks(t *testing.T) {
	onlyOne(t)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom([]Kind{Int8, Int16, Int32, Int64}).Draw(t, "kind")
		size, r := int(k.Word), source(rapid.Uint64().Draw(t, "seed"))
		plain, word := make([]byte, ChunkBytes), uint64(0)
		for at := 0; at < ChunkBytes; {
			most := rapid.SampledFrom([]uint64{0, 0, 1, 100, 1<<7 - 1, 1 << 20, 1<<64 - 1}).Draw(t, "most")
			for range rapid.IntRange(1, 4000).Draw(t, "words") {
				if at == ChunkBytes {
					break
				}
				if most > 0 {
					word += r.Uint64() % most
				}
				for j := range size {
					plain[at+j] = byte(word >> (8 * j))
				}
				at += size
			}
		}
		reference := change(plain, k, 3, 1)
		for _, m := range []Mode{Diff, Step} {
			container := encode(t, plain, reference, Options{Kind: k, Modes: Only(m)})
			for _, choose := range []func() func(){onlyVectors256, withoutVectors} {
				restore := choose()
				back := dirty(ChunkBytes)
				err := Decode(back, container, reference, 1)
				restore()
				if err != nil || !bytes.Equal(back, plain) {
					t.Fatalf("%v, %v: other bytes, or %v", k, m, err)
				}
			}
		}
	})
}
