package codec

import (
	"bytes"
	"errors"
	"testing"

	"velocpy/gocore/base/checksum"

	"pgregory.net/rapid"
)

func TestSealTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawRegion(t)
		want := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		got := append(bytes.Clone(want), dirty(rapid.IntRange(0, 40).Draw(t, "room"))...)
		copy(got[:headerBytes], dirty(headerBytes))
		copy(got[headerBytes+entryBytes*Chunks(len(x.plain)):PayloadsAt(len(x.plain))], dirty(payloadAlign))
		n, err := SealTables(got, x.kind, len(x.plain))
		if err != nil || !bytes.Equal(got[:n], want) {
			t.Fatalf("%d B, want %d B: %v", n, len(want), err)
		}
	})
}

func TestSealTablesThatDoNotFit(t *testing.T) {
	plain := bytes.Repeat([]byte{1, 2, 3, 4, 5}, ChunkBytes/4)
	sealed := encode(t, plain, nil, Options{Kind: Int32, Modes: AllModes})
	for what, change := range map[string]func(c []byte) ([]byte, Kind){
		"unknown mode":         func(c []byte) ([]byte, Kind) { c[headerBytes+10*Chunks(len(plain))] = byte(modes); return c, Int32 },
		"payload too long":     func(c []byte) ([]byte, Kind) { c[headerBytes+8*Chunks(len(plain))+1] = 0x41; return c, Int32 },
		"no room for tables":   func(c []byte) ([]byte, Kind) { return c[:headerBytes+8], Int32 },
		"no room for payloads": func(c []byte) ([]byte, Kind) { return c[:len(c)-1], Int32 },
		"unknown kind":         func(c []byte) ([]byte, Kind) { return c, Kind{Word: 3} },
	} {
		container, k := change(bytes.Clone(sealed))
		if _, err := SealTables(container, k, len(plain)); !errors.Is(err, ErrLength) && !errors.Is(err, ErrKind) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Without a header, and with other bytes behind it, a container opens to the same.
func TestOpenTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawRegion(t)
		sealed := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		want, err := Open(sealed, len(x.plain))
		if err != nil {
			t.Fatal(err)
		}
		container := append(bytes.Clone(sealed), dirty(rapid.IntRange(0, 40).Draw(t, "behind"))...)
		copy(container, dirty(headerBytes))
		c, err := OpenTables(container, x.kind, len(x.plain))
		if err != nil || c.Kind() != x.kind || c.Plain() != len(x.plain) || c.NeedsReference() != want.NeedsReference() || c.Chunks() != want.Chunks() {
			t.Fatalf("%+v, want %+v: %v", c, want, err)
		}
		dst := make([]byte, len(x.plain))
		if err := c.Decode(dst, x.reference, 1); err != nil || !bytes.Equal(dst, x.plain) {
			t.Fatalf("the plain bytes differ: %v", err)
		}
	})
}

// Whatever stands in a container, it decodes to bytes that have its hashes, or there is an error.
func FuzzOpenTables(f *testing.F) {
	for i, x := range smallRegions() {
		f.Add(encode(f, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes}), uint16(len(x.plain)), byte(i))
	}
	f.Fuzz(func(t *testing.T, container []byte, plain uint16, kind byte) {
		c, err := OpenTables(container, kinds[int(kind)%len(kinds)], int(plain))
		dst, reference := make([]byte, plain), dirty(int(plain))
		if err == nil {
			err = c.Decode(dst, reference, 1)
		}
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrReference) {
				t.Fatal(err)
			}
			return
		}
		for i := range c.Chunks() {
			if checksum.Leaf(part(dst, i)) != c.Entry(i).Hash {
				t.Fatalf("chunk %d has another hash", i)
			}
		}
	})
}

func TestOpenTablesThatDoNotFit(t *testing.T) {
	sealed := encode(t, bytes.Repeat([]byte{1, 2, 3, 4, 5}, ChunkBytes/4), nil, Options{Kind: Int32, Modes: AllModes})
	n := ChunkBytes / 4 * 5
	if _, err := OpenTables(sealed, Kind{Word: 3}, n); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	for what, cut := range map[string]int{"no tables": headerBytes + 8, "nothing": 0, "no payloads": PayloadsAt(n), "payloads cut": len(sealed) - 1} {
		if _, err := OpenTables(sealed[:cut], Int32, n); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
