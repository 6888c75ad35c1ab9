package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

var kinds = []Kind{Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64}

// families fill a region of words in the ways that codecs fail on.
var families = []struct {
	name string
	word func(r *rand.Rand, i int, k Kind) uint64
}{
	{"random", func(r *rand.Rand, _ int, _ Kind) uint64 { return r.Uint64() }},
	{"equal", func(*rand.Rand, int, Kind) uint64 { return 0x4142434445464748 }},
	{"zero", func(*rand.Rand, int, Kind) uint64 { return 0 }},
	{"NaN payloads", func(r *rand.Rand, _ int, k Kind) uint64 {
		return special(k, 1<<k.Exponent-1) | r.Uint64N(8) | r.Uint64()<<top(k)
	}},
	{"infinities and negative zero", func(r *rand.Rand, _ int, k Kind) uint64 {
		return special(k, (1<<k.Exponent-1)*r.Uint64N(2)) | r.Uint64()<<top(k)
	}},
	{"denormals", func(r *rand.Rand, _ int, k Kind) uint64 { return r.Uint64N(1 << (top(k) - int(k.Exponent)) / 2) }},
	{"floats near one", func(r *rand.Rand, _ int, k Kind) uint64 {
		return special(k, 1<<k.Exponent/2-r.Uint64N(6)) ^ r.Uint64()>>(64-top(k)+int(k.Exponent))
	}},
	{"ramp", func(_ *rand.Rand, i int, _ Kind) uint64 { return uint64(i) * 3 }},
	{"falling ramp", func(_ *rand.Rand, i int, _ Kind) uint64 { return -uint64(i) * 5 }},
	{"spikes", func(r *rand.Rand, i int, _ Kind) uint64 {
		if r.IntN(97) != 0 {
			return 0
		}
		return r.Uint64()
	}},
	{"one differs", func(_ *rand.Rand, i int, _ Kind) uint64 {
		if i == 1234 {
			return 8
		}
		return 0
	}},
	{"long repeats", func(_ *rand.Rand, i int, _ Kind) uint64 { return uint64(i/1500) * 0x0101010101010101 }},
	{"widths of all kinds", func(r *rand.Rand, i int, _ Kind) uint64 { return r.Uint64() >> (i / 32 % 65) }},
}

// top is the number of the sign's bit.
func top(k Kind) int { return 8*int(k.Word) - 1 }

// special is a float with the given exponent and no mantissa; 0 for integers.
func special(k Kind, exponent uint64) uint64 { return exponent << (top(k) - int(k.Exponent)) }

func fillFamily(p []byte, k Kind, family int, seed uint64) {
	r := source(seed)
	var w [8]byte
	for at := 0; at < len(p); at += int(k.Word) {
		binary.LittleEndian.PutUint64(w[:], families[family].word(r, at/int(k.Word), k))
		copy(p[at:], w[:k.Word])
	}
}

// change returns a copy in which about one word of many has another low byte.
func change(p []byte, k Kind, many int, seed uint64) []byte {
	r := source(seed)
	q := bytes.Clone(p)
	for at := 0; at < len(q); at += int(k.Word) {
		if r.IntN(many) == 0 {
			q[at] ^= byte(r.Uint32())
		}
	}
	return q
}

func lengths(word int) *rapid.Generator[int] {
	return rapid.OneOf(
		rapid.SampledFrom([]int{0, 1, word - 1, word, word + 1, 31 * word, 32 * word, 33 * word, ChunkBytes - 1, ChunkBytes, ChunkBytes + 1, 3*ChunkBytes + 7}),
		rapid.IntRange(0, 700), rapid.IntRange(0, 4*ChunkBytes))
}

func encode(t failer, plain, reference []byte, o Options) []byte {
	t.Helper()
	dst := make([]byte, Bound(len(plain)))
	n, err := Encode(dst, plain, reference, o)
	if err != nil {
		t.Fatal(err)
	}
	return dst[:n]
}

type region struct {
	kind             Kind
	plain, reference []byte
	modes            Modes
}

// drawRegion draws a region, often with a reference, and the allowed modes.
func drawRegion(t *rapid.T) (x region) {
	x.kind = rapid.SampledFrom(kinds).Draw(t, "kind")
	x.plain = make([]byte, lengths(int(x.kind.Word)).Draw(t, "length"))
	fillFamily(x.plain, x.kind, rapid.IntRange(0, len(families)-1).Draw(t, "family"), rapid.Uint64().Draw(t, "seed"))
	switch rapid.IntRange(0, 3).Draw(t, "reference") {
	case 0:
		x.reference = change(x.plain, x.kind, rapid.SampledFrom([]int{1, 2, 3, 10, 100, 10000}).Draw(t, "unchanged"), rapid.Uint64().Draw(t, "change"))
	case 1:
		x.reference = make([]byte, len(x.plain))
		fillFamily(x.reference, x.kind, rapid.IntRange(0, len(families)-1).Draw(t, "another family"), rapid.Uint64().Draw(t, "another seed"))
	}
	x.modes = AllModes
	if rapid.Bool().Draw(t, "one mode") {
		x.modes = Only(rapid.SampledFrom([]Mode{Raw, Const, Diff, Exp, Xrz, Step}).Draw(t, "mode"))
	}
	return x
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 8 {
			roundTrip(t, drawRegion(t))
		}
	})
}

func roundTrip(t *rapid.T, x region) {
	container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes, Goroutines: rapid.IntRange(-1, 3).Draw(t, "goroutines")})
	c, err := Open(container, len(x.plain))
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Chunks() {
		if m := c.Entry(i).Mode; !x.modes.Has(m) {
			t.Fatalf("chunk %d in mode %v", i, m)
		}
	}
	back := dirty(len(x.plain))
	if err := c.Decode(back, x.reference, rapid.IntRange(-1, 3).Draw(t, "decoding goroutines")); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back, x.plain) {
		t.Fatal("the plain bytes differ")
	}
	decodePart(t, c, x)
	if len(x.plain) > 3000 {
		return
	}
	slow, err := slowDecode(container, x.reference)
	if err != nil || !bytes.Equal(slow, x.plain) {
		t.Fatalf("the slow reader has other bytes, or %v", err)
	}
}

// decodePart decodes some chunks alone.
func decodePart(t *rapid.T, c *Container, x region) {
	from := rapid.IntRange(0, c.Chunks()).Draw(t, "from")
	to := rapid.IntRange(from, c.Chunks()).Draw(t, "to")
	low, high := min(from*ChunkBytes, len(x.plain)), min(to*ChunkBytes, len(x.plain))
	some := dirty(high - low)
	var reference []byte
	if x.reference != nil {
		reference = x.reference[low:high]
	}
	if err := c.DecodeChunks(some, reference, from, to, 2); err != nil || !bytes.Equal(some, x.plain[low:high]) {
		t.Fatalf("chunks %d to %d differ, or %v", from, to, err)
	}
}

// Every combination once, which random ones do not reach.
func TestRoundTripOfAll(t *testing.T) { everyWay(t, testRoundTripOfAll) }

func testRoundTripOfAll(t *testing.T) {
	var seen [ModeCount]map[Kind]bool
	for m := range seen {
		seen[m] = map[Kind]bool{}
	}
	for _, k := range kinds {
		for family := range families {
			for _, n := range []int{int(k.Word), 31*int(k.Word) + int(k.Word)/2, 3000, ChunkBytes, ChunkBytes + 33*int(k.Word)} {
				plain := make([]byte, n)
				fillFamily(plain, k, family, uint64(n))
				for i, reference := range [][]byte{nil, change(plain, k, 3, 1), change(plain, k, 40, 1), plain} {
					if n > 3000 && i > 1 {
						break
					}
					for m := range modes {
						container := encode(t, plain, reference, Options{Kind: k, Modes: Only(m)})
						back := dirty(n)
						if err := Decode(back, container, reference, 1); err != nil || !bytes.Equal(back, plain) {
							t.Fatalf("%v, %s, %d B, reference %d, %v: %v", k, families[family].name, n, i, m, err)
						}
						seen[container[headerBytes+10*Chunks(n)]][k] = true
						if n > 3000 && (i != 1 || family%6 != 0) {
							continue
						}
						slow, err := slowDecode(container, reference)
						if err != nil || !bytes.Equal(slow, plain) {
							t.Fatalf("%v, %s, %d B, reference %d, %v: the slow reader has other bytes, or %v", k, families[family].name, n, i, m, err)
						}
					}
				}
			}
		}
	}
	for m, has := range seen {
		if want := map[bool]int{true: 4, false: 8}[Mode(m) == Exp]; len(has) != want {
			t.Errorf("mode %v was taken for %d kinds, want %d", Mode(m), len(has), want)
		}
	}
}

// dirty is a buffer whose bytes decoding has to replace.
func dirty(n int) []byte { return bytes.Repeat([]byte{0xa5}, n) }

// Encoding writes nothing behind the bound, and decoding nothing outside of the destination.
func TestNothingIsWrittenOutside(t *testing.T) { everyWay(t, testNothingIsWrittenOutside) }

func testNothingIsWrittenOutside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawRegion(t)
		room := dirty(Bound(len(x.plain)) + 100)
		n, err := Encode(room[:Bound(len(x.plain))], x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		if err != nil || !bytes.Equal(room[Bound(len(x.plain)):], dirty(100)) {
			t.Fatal("bytes behind the bound changed, or ", err)
		}
		back := dirty(len(x.plain) + 100)
		if err := Decode(back[:len(x.plain)], room[:n], x.reference, 1); err != nil || !bytes.Equal(back[len(x.plain):], dirty(100)) {
			t.Fatal("bytes behind the destination changed, or ", err)
		}
	})
}

func TestGoroutinesDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		plain := make([]byte, rapid.IntRange(0, 20*ChunkBytes).Draw(t, "length"))
		for at := 0; at < len(plain); at += 3 * ChunkBytes / 2 {
			fillFamily(plain[at:min(len(plain), at+3*ChunkBytes/2)], k, rapid.IntRange(0, len(families)-1).Draw(t, "family"), uint64(at))
		}
		reference := change(plain, k, 9, 5)
		want := encode(t, plain, reference, Options{Kind: k, Modes: AllModes, Goroutines: 1})
		for _, n := range []int{2, 7} {
			if got := encode(t, plain, reference, Options{Kind: k, Modes: AllModes, Goroutines: n}); !bytes.Equal(got, want) {
				t.Fatalf("%d goroutines write another container", n)
			}
			back := dirty(len(plain))
			if err := Decode(back, want, reference, n); err != nil || !bytes.Equal(back, plain) {
				t.Fatalf("%d goroutines decode other bytes, or %v", n, err)
			}
		}
	})
}

// One encoder that encodes chunks in any order, and Seal, make the container that Encode makes.
func TestChunksInAnyOrder(t *testing.T) {
	plain := make([]byte, 9*ChunkBytes+77)
	for i := range 10 {
		fillFamily(part(plain, i), Float32, i, uint64(i))
	}
	reference := change(plain, Float32, 50, 1)
	want := encode(t, plain, reference, Options{Kind: Float32, Modes: AllModes, Goroutines: 1})
	e, err := NewEncoder(Float32, AllModes)
	if err != nil {
		t.Fatal(err)
	}
	payloads, entries := make([][]byte, 10), make([]Entry, 10)
	for _, i := range rand.Perm(10) {
		payloads[i] = make([]byte, ChunkBytes)
		entries[i] = e.Chunk(payloads[i], part(plain, i), part(reference, i))
	}
	got := dirty(Bound(len(plain)))
	at := PayloadsAt(len(plain))
	for i, p := range payloads {
		copy(got[at:], p[:entries[i].Bytes])
		at += roundUp(entries[i].Bytes, payloadAlign)
	}
	n, err := Seal(got, Float32, len(plain), entries)
	if err != nil || !bytes.Equal(got[:n], want) {
		t.Fatal("another container, or ", err)
	}
}

// The mode is the one whose payload is shortest, and of several the first; only a mode that is allowed; sizes are those that are written.
func TestShortestModeIsTaken(t *testing.T) { everyWay(t, testShortestModeIsTaken) }

func testShortestModeIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawRegion(t)
		x.plain = x.plain[:min(len(x.plain), ChunkBytes)]
		if x.reference != nil {
			x.reference = x.reference[:len(x.plain)]
		}
		e, err := NewEncoder(x.kind, AllModes)
		if err != nil {
			t.Fatal(err)
		}
		sizes := e.Sizes(x.plain, x.reference)
		best := Raw
		for m, n := range sizes {
			if n >= 0 && n < sizes[best] {
				best = Mode(m)
			}
		}
		for m := range modes {
			only, err := NewEncoder(x.kind, Only(m))
			if err != nil {
				t.Fatal(err)
			}
			got := only.Chunk(make([]byte, len(x.plain)), x.plain, x.reference)
			if want := sizes[m]; want >= 0 && want < len(x.plain) && (got.Mode != m || got.Bytes != want) {
				t.Fatalf("%v alone: %v with %d B, want %d B", m, got.Mode, got.Bytes, want)
			}
		}
		if got := e.Chunk(make([]byte, len(x.plain)), x.plain, x.reference); got.Mode != best || got.Bytes != sizes[best] {
			t.Fatalf("%v with %d B of sizes %v", got.Mode, got.Bytes, sizes)
		}
	})
}

// An encoder that a pool keeps does not keep the caller's bytes.
func TestEncoderKeepsNoBytes(t *testing.T) {
	e, err := NewEncoder(Int16, AllModes)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 100)
	e.Sizes(p, p)
	e.Chunk(make([]byte, 100), p, p)
	if e.view.plain != nil || e.view.reference != nil || e.chunk != nil || e.former != nil || e.tail != nil {
		t.Error("it has slices")
	}
}

func TestExpansion(t *testing.T) {
	plain := make([]byte, 1<<20)
	for _, k := range kinds {
		fillFamily(plain, k, 0, 3)
		if n := len(encode(t, plain, nil, Options{Kind: k, Modes: AllModes})); n > len(plain)+len(plain)/1000 {
			t.Errorf("%v: %d random bytes take %d", k, len(plain), n)
		}
	}
	for _, n := range []int{0, 1, 15, ChunkBytes, ChunkBytes + 1, 1 << 30} {
		if most := n + 11*Chunks(n) + 94; Bound(n) > most || Bound(n) < n+11*Chunks(n)+64 {
			t.Errorf("Bound(%d) = %d", n, Bound(n))
		}
	}
}

func TestWrongArguments(t *testing.T) {
	plain := make([]byte, 100)
	for _, k := range []Kind{{}, {3, 0}, {2, 6}, {8, 8}, {1, 4}} {
		if _, err := Encode(make([]byte, 999), plain, nil, Options{Kind: k}); !errors.Is(err, ErrKind) {
			t.Errorf("%v: %v", k, err)
		}
	}
	if _, err := Encode(make([]byte, Bound(100)-1), plain, nil, Options{Kind: Int8}); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if _, err := Encode(make([]byte, Bound(100)), plain, plain[1:], Options{Kind: Int8}); !errors.Is(err, ErrReference) {
		t.Error(err)
	}
	if _, err := Seal(make([]byte, Bound(100)), Int8, 100, nil); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if _, err := Seal(make([]byte, Bound(100)), Int8, 100, []Entry{{Bytes: 101}}); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if _, err := Seal(make([]byte, Bound(100)), Int8, 100, []Entry{{Mode: modes, Bytes: 100}}); !errors.Is(err, ErrLength) {
		t.Errorf("a mode that no reader knows: %v", err)
	}
	if _, err := Seal(make([]byte, Bound(100)), Int8, -1, nil); !errors.Is(err, ErrLength) {
		t.Errorf("a region below zero: %v", err)
	}
	if _, err := SealTables(make([]byte, Bound(100)), Int8, -1); !errors.Is(err, ErrLength) {
		t.Errorf("tables of a region below zero: %v", err)
	}
	c, err := Open(encode(t, plain, nil, Options{Kind: Int8}), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct{ bytes, from, to int }{{100, -1, 1}, {100, 0, 2}, {100, 1, 0}, {99, 0, 1}, {1, 0, 0}, {0, 0, math.MaxInt}} {
		if err := c.DecodeChunks(make([]byte, r.bytes), nil, r.from, r.to, 1); !errors.Is(err, ErrLength) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// failer is a test, of whatever kind.
type failer interface {
	Helper()
	Fatal(...any)
}
