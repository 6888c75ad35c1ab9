package dataindex

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"
)

var file = File{Area: Index, Store: [16]byte{1, 2, 3}, Number: 7}

// row is an index of frames with these payloads in sequence.
func row(from int64, payloads ...[]byte) (p []byte, starts []int64) {
	for _, payload := range payloads {
		starts = append(starts, from+int64(len(p)))
		p = file.Append(p, 9, from+int64(len(p)), payload)
	}
	return p, starts
}

func payloads(r *rand.Rand, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = make([]byte, r.IntN(300))
		for k := range all[i] {
			all[i][k] = byte(r.Uint32())
		}
	}
	return all
}

// All appended frames are found with their payloads, also after other bytes.
func TestFramesAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	want := append(payloads(r, 50), []byte{}, bytes.Repeat([]byte(Index), 20))
	p, starts := row(4096, want...)
	if last := starts[len(starts)-1] + Length(len(want[len(want)-1])); last != 4096+int64(len(p)) {
		t.Errorf("the last one ends at %d", last)
	}
	for _, behind := range [][]byte{nil, make([]byte, 5000), []byte(Index), bytes.Repeat([]byte{'V'}, 100)} {
		n := 0
		for f := range file.Frames(append(slices.Clone(p), behind...), 4096) {
			if f.Generation != 9 || f.From != starts[n] || f.End != f.From+Length(len(want[n])) || !bytes.Equal(f.Payload, want[n]) {
				t.Fatalf("frame %d is %+v", n, f)
			}
			n++
		}
		if n != len(want) {
			t.Errorf("%d frames, not %d", n, len(want))
		}
	}
}

// Any flipped bit costs the frame that it is in, and no other; padding bits cost nothing.
func TestABitCostsItsFrame(t *testing.T) {
	want := payloads(rand.New(rand.NewPCG(2, 2)), 6)
	p, starts := row(0, want...)
	for bit := range len(p) * 8 {
		p[bit/8] ^= 1 << (bit % 8)
		hit, _ := slices.BinarySearch(starts, int64(bit/8)+1)
		hit--
		fills := int64(bit/8) >= starts[hit]+headBytes+int64(len(want[hit]))
		var found []int64
		for f := range file.Frames(p, 0) {
			found = append(found, f.From)
		}
		left := slices.Clone(starts)
		if !fills {
			left = slices.Delete(left, hit, hit+1)
		}
		if !slices.Equal(found, left) {
			t.Fatalf("bit %d: %v, not %v", bit, found, left)
		}
		p[bit/8] ^= 1 << (bit % 8)
	}
}

// A frame counts only in its store, its file and at its offset.
func TestAFrameFromElsewhereIsNone(t *testing.T) {
	p, _ := row(0, []byte("something"))
	for name, c := range map[string]struct {
		file File
		at   int64
	}{
		"another store": {File{Index, [16]byte{1, 2}, 7}, 0},
		"another file":  {File{Index, file.Store, 8}, 0},
		"another area":  {File{Commits, file.Store, 7}, 0},
		"another place": {file, 8},
	} {
		for f := range c.file.Frames(p, c.at) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Forged heads that each claim all following bytes do not make a reader hash these again and again.
func TestHeadsThatAskForMuch(t *testing.T) {
	p := make([]byte, 4<<20)
	for at := 0; at+headBytes <= len(p); at += headBytes {
		head := file.Append(nil, 1, int64(at), nil)[:headBytes]
		binary.LittleEndian.PutUint64(head[40:], uint64(len(p)-at-headBytes))
		binary.LittleEndian.PutUint64(head[headSum:], sumOf(head, int64(at)))
		copy(p[at:], head)
	}
	for f := range file.Frames(p, 0) {
		t.Fatalf("%d is a frame", f.From)
	}
}

// Whatever the input is, found frames are inside it, ascending, and have valid checksums.
func FuzzFrames(f *testing.F) {
	p, _ := row(8, []byte("one"), nil, []byte("three"))
	f.Add(p, int64(8))
	f.Add(p[3:], int64(0))
	f.Fuzz(func(t *testing.T, p []byte, from int64) {
		if from < 0 || from > 1<<40 {
			return
		}
		end := from
		for frame := range file.Frames(p, from) {
			if frame.From < end || frame.End > from+int64(len(p)) || (frame.From-from)%grain != 0 {
				t.Fatalf("%+v", frame)
			}
			if head := p[frame.From-from:]; binary.LittleEndian.Uint64(head[48:]) != xxh3.Hash(frame.Payload) {
				t.Fatalf("%+v", frame)
			}
			end = frame.End
		}
	})
}
