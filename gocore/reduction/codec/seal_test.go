package codec

import (
	"bytes"
	"errors"
	"testing"

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
