package difference

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the words are: Untranspose gives back what Transpose was given, and neither changes its argument nor what lies around the entries.
func TestTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, shifted := rapid.IntRange(0, 40).Draw(t, "first"), rapid.IntRange(0, 40).Draw(t, "shifted")
		around := rapid.IntRange(0, 100).Draw(t, "around")
		n := headerBytes + around + first*firstBytes + shifted*shiftBytes + sumBytes
		p := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
		binary.LittleEndian.PutUint64(p[32:], uint64(first))
		binary.LittleEndian.PutUint64(p[40:], uint64(shifted))
		before := bytes.Clone(p)
		columns, err := Transpose(p)
		if err != nil || len(columns) != n || !bytes.Equal(columns[:headerBytes+around], p[:headerBytes+around]) || !bytes.Equal(columns[n-sumBytes:], p[n-sumBytes:]) {
			t.Fatalf("columns %x of %x: %v", columns, p, err)
		}
		rows, err := Untranspose(columns)
		if err != nil || !bytes.Equal(rows, before) || !bytes.Equal(p, before) {
			t.Fatalf("%x, and the argument is %x, of %x: %v", rows, p, before, err)
		}
	})
}

// The columns are those of the format: by byte, from the lowest one on, of positions as differences.
func TestColumns(t *testing.T) {
	d := &Difference{
		Checkpoint: 3, Method: Runs, Kind: 1, Chunk: 32, Regions: []Region{{Name: "a", Size: 32 * 1000}}, References: []uint32{1},
		dataBytes: 32 * 600,
		First:     []Entry{{0, 600}},
		Shifted:   []Shift{{Entry: Entry{600, 300}, Checkpoint: 1, Offset: 0x1234}, {Entry: Entry{900, 100}, Checkpoint: 3, Offset: 32}},
	}
	p, err := d.AppendMetadata(nil)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := Transpose(p)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{
		0x58, 0x02, 0, 0, 0, 0, 0, 0, // one first occurrence of 600 chunks
		0x2c, 0x64, 0x01, 0, 0, 0, 0x58, 0x2c, 0x02, 0x01, 0, 0, 0, 0, 0, 0, // 300 chunks from 600 on, 100 chunks 300 behind
		0x34, 0x20, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0, 0,
	}
	if got := columns[len(p)-sumBytes-len(want) : len(p)-sumBytes]; !bytes.Equal(got, want) {
		t.Errorf("the columns are %x, not %x", got, want)
	}
}

// Counts that the bytes cannot hold are refused, also such whose product overflows.
func TestTransposeBounds(t *testing.T) {
	for _, counts := range [][2]uint64{{3, 0}, {0, 2}, {1, 1}, {1 << 61, 0}, {0, 1 << 60}, {1<<64 - 1, 1<<64 - 1}} {
		p := make([]byte, headerBytes+16+sumBytes)
		binary.LittleEndian.PutUint64(p[32:], counts[0])
		binary.LittleEndian.PutUint64(p[40:], counts[1])
		_, forth := Transpose(p)
		_, back := Untranspose(p)
		if !errors.Is(forth, ErrFormat) || !errors.Is(back, ErrFormat) {
			t.Errorf("%d entries: %v, %v", counts, forth, back)
		}
	}
	if _, err := Untranspose(make([]byte, headerBytes+sumBytes-1)); !errors.Is(err, ErrFormat) {
		t.Errorf("a byte is missing: %v", err)
	}
}

func FuzzUntranspose(f *testing.F) {
	f.Add(make([]byte, headerBytes+sumBytes))
	p := make([]byte, headerBytes+sumBytes+3*firstBytes+2*shiftBytes)
	p[32], p[40] = 3, 2
	f.Add(p)
	f.Fuzz(func(t *testing.T, p []byte) {
		rows, err := Untranspose(p)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		if columns, err := Transpose(rows); err != nil || !bytes.Equal(columns, p) {
			t.Fatalf("%x becomes %x: %v", p, columns, err)
		}
	})
}
