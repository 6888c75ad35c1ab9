package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// smallRegions have containers in each mode.
func smallRegions() (list []region) {
	for m := range modes {
		for _, k := range []Kind{BFloat16, Float64} {
			x := region{kind: k, plain: make([]byte, 1203), modes: Only(m)}
			switch m {
			case Const:
				fillFamily(x.plain, k, 1, 1)
			case Diff:
				fillFamily(x.plain, k, 7, 1)
			default:
				fillFamily(x.plain, k, 6, 1)
			}
			x.reference = change(x.plain, k, 11, 2)
			list = append(list, x)
		}
	}
	return list
}

func TestSmallRegionsHaveTheirMode(t *testing.T) {
	for _, x := range smallRegions() {
		c, err := Open(encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes}), len(x.plain))
		if err != nil {
			t.Fatal(err)
		}
		if m := c.Entry(0).Mode; Only(m) != x.modes {
			t.Errorf("%v: mode %v", x.kind, m)
		}
	}
}

// decodes tells how a container decodes: an error that one of the sentinels marks, or the right bytes.
func decodes(t *testing.T, what string, container []byte, x region) {
	t.Helper()
	back := dirty(len(x.plain))
	err := Decode(back, container, x.reference, 1)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatalf("%s: %v", what, err)
	}
	if err == nil && !bytes.Equal(back, x.plain) {
		t.Fatalf("%s: other bytes without an error", what)
	}
}

func TestEveryBitFlip(t *testing.T) { everyWay(t, testEveryBitFlip) }

func testEveryBitFlip(t *testing.T) {
	for _, x := range smallRegions() {
		container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		for bit := range 8 * len(container) {
			container[bit/8] ^= 1 << (bit % 8)
			decodes(t, "flipped bit", container, x)
			container[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// A flip in the header or the tables, with a hash made right again, passes for another container. Decoding still stays in bounds.
func TestEveryBitFlipOfTablesWithRightHash(t *testing.T) {
	for _, x := range smallRegions() {
		container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		for bit := 8 * atVersion; bit < 8*PayloadsAt(len(x.plain)); bit++ {
			forged := bytes.Clone(container)
			forged[bit/8] ^= 1 << (bit % 8)
			binary.LittleEndian.PutUint64(forged[atHash:], xxh3.Hash(forged[atVersion:PayloadsAt(len(x.plain))]))
			if c, err := Open(forged, len(x.plain)); (c == nil) == (err == nil) {
				t.Fatalf("bit %d: %v with the error %v", bit, c, err)
			}
			back := dirty(len(x.plain))
			err := Decode(back, forged, x.reference, 1)
			if err == nil && !bytes.Equal(back, x.plain) {
				t.Fatalf("bit %d: other bytes without an error", bit)
			}
		}
	}
}

func TestEveryTruncation(t *testing.T) {
	for _, x := range smallRegions() {
		container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		for n := range len(container) {
			if err := Decode(dirty(len(x.plain)), container[:n:n], x.reference, 1); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%d of %d bytes: %v", n, len(container), err)
			}
		}
		if err := Decode(dirty(len(x.plain)), append(container, 0), x.reference, 1); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("a byte more: %v", err)
		}
	}
}

func TestReferenceMissingOrWrong(t *testing.T) {
	for i := range 2 * len(kinds) {
		m := Xrz + Mode(i%2)
		x := region{kind: kinds[i/2], plain: make([]byte, 3*ChunkBytes+6)}
		fillFamily(x.plain, x.kind, 6, 1)
		x.reference = change(x.plain, x.kind, 11, 2)
		container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: Only(m)})
		c, err := Open(container, len(x.plain))
		if err != nil || !c.NeedsReference() {
			t.Fatal("no reference needed, or ", err)
		}
		wrong := bytes.Clone(x.reference)
		wrong[2*ChunkBytes+5] ^= 4
		for what, reference := range map[string][]byte{"missing": nil, "short": x.reference[1:], "wrong": wrong} {
			if err := Decode(dirty(len(x.plain)), container, reference, 1); !errors.Is(err, ErrReference) || errors.Is(err, ErrCorrupt) {
				t.Errorf("%v, %s reference: %v", m, what, err)
			}
		}
		if err := c.DecodeChunks(dirty(2*ChunkBytes), wrong[:2*ChunkBytes], 0, 2, 1); err != nil {
			t.Errorf("%v: chunks whose reference is right: %v", m, err)
		}
		container[PayloadsAt(len(x.plain))+referenceHead] ^= 1
		if err := Decode(dirty(len(x.plain)), container, x.reference, 1); !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrReference) {
			t.Errorf("%v, damage: %v", m, err)
		}
	}
}

func TestAbsurdHeaders(t *testing.T) {
	x := smallRegions()[3]
	for _, at := range []int{atPlain, atChunks, atTotal} {
		for _, v := range []uint64{0, 1, 1202, 1204, 1 << 31, 1 << 32, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
			container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
			if binary.LittleEndian.Uint64(container[at:]) == v {
				continue
			}
			binary.LittleEndian.PutUint64(container[at:], v)
			if n := binary.LittleEndian.Uint64(container[atChunks:]); n <= 1 {
				binary.LittleEndian.PutUint64(container[atHash:], xxh3.Hash(container[atVersion:payloadsAt(int(n))]))
			}
			err := Decode(dirty(len(x.plain)), container, x.reference, 1)
			if want := map[bool]error{true: ErrLength, false: ErrCorrupt}[at == atPlain]; !errors.Is(err, want) {
				t.Errorf("%d at %d: %v, want %v", v, at, err, want)
			}
		}
	}
	container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
	for _, n := range []int{0, 1202, 1204} {
		if err := Decode(make([]byte, n), container, x.reference, 1); !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes expected: %v", n, err)
		}
	}
}

// Payloads of any bytes, behind tables that fit, decode to an error. Nothing is read or written out of bounds.
func TestRandomPayloads(t *testing.T) { everyWay(t, testRandomPayloads) }

func testRandomPayloads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawRegion(t)
		n := rapid.IntRange(1, ChunkBytes).Draw(t, "bytes")
		payload := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, min(n, 300)),
			rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 255}), 0, min(n, 300))).Draw(t, "payload")
		var d decoder
		room := dirty(n + 64)
		d.chunk(room[:n:n], payload[:len(payload):len(payload)], make([]byte, n), Mode(rapid.IntRange(0, 7).Draw(t, "mode")), x.kind)
		if !bytes.Equal(room[n:], dirty(64)) {
			t.Fatal("bytes behind the destination changed")
		}
	})
}

// FuzzDecode mutates containers, and makes their hash right again so that the mutations reach the payloads.
func FuzzDecode(f *testing.F) {
	for _, x := range smallRegions() {
		f.Add(encode(f, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes}), uint16(len(x.plain)))
	}
	for _, c := range []Compression{Zstd, S2, Huff0} {
		f.Add(encode(f, ramp(4, 1000), nil, Options{Kind: Int32, Modes: AllModes, Compression: c}), uint16(1000))
		f.Add(encode(f, bytes.Repeat([]byte{1, 2, 3, 4, 5}, 400), nil, Options{Kind: Int16, Compression: c}), uint16(2000))
	}
	f.Fuzz(func(t *testing.T, container []byte, plain uint16) {
		at := PayloadsAt(int(plain))
		if len(container) > atVersion && container[atVersion] == SectionVersion {
			at = sectionsAt(sectionsOf(int(plain)))
		}
		if len(container) >= at {
			container = bytes.Clone(container)
			binary.LittleEndian.PutUint64(container[atHash:], xxh3.Hash(container[atVersion:at]))
		}
		dst, reference := make([]byte, plain), dirty(int(plain))
		err := Decode(dst, container, reference, 1)
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrLength) && !errors.Is(err, ErrReference) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		c, err := Open(container, int(plain))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range c.sections {
			if xxh3.Hash(dst[i*SectionBytes:][:sectionLength(len(dst), i)]) != s.hash {
				t.Fatalf("section %d has another hash", i)
			}
		}
		for i := range len(c.modes) {
			if xxh3.Hash(part(dst, i)) != c.Entry(i).Hash {
				t.Fatalf("chunk %d has another hash", i)
			}
		}
	})
}
