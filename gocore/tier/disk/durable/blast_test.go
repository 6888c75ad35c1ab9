package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// Kinds of the log's frames, as docs/format.md numbers them.
const snapshotKind = 2

// Damage to any one frame of a compacted catalog costs the rows in that frame and no others. That also holds with many histories, and with layouts that are
// longer than the rows.
func TestAFrameOfASnapshotCostsItsRowsAlone(t *testing.T) {
	for name, some := range map[string]struct{ histories, layouts, text int }{
		"one of each":    {1, 1, 10},
		"many histories": {3000, 1, 10},
		"many layouts":   {2, 140, 100},
		"long layouts":   {2, 100, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			rows := 25_000
			if underRace { // one goroutine reads them again for each frame
				rows = 4000
			}
			s := newSite(t)
			var changes []*Change
			for i := range rows {
				l := &catalog.Layout{Layout: model.Layout{Slot: 1, Spans: []model.Span{{Bytes: 1}}, Text: fmt.Sprint(i%some.layouts, strings.Repeat("x", some.text))}}
				row := &catalog.Row{Key: model.NumberKey(int64(i)), Serial: uint64(i + 1), Layout: l, Sums: []uint64{1}}
				changes = append(changes, &Change{History: fmt.Sprint("h", i%some.histories), Off: int64(i) * catalog.Block, Put: row})
			}
			first := max(some.histories, some.layouts) // the others need not define anything
			for _, group := range [][]*Change{changes[:first], changes[first:]} {
				s.d.Commit(group...)
				for range group {
					if c := <-s.landed; c.Err != nil {
						t.Fatal(c.Err)
					}
				}
			}
			if err := s.d.compaction.compact(); err != nil {
				t.Fatal(err)
			}
			s.close()
			frames, _ := s.flipFrames(snapshotKind, rows)
			if frames < 3 {
				t.Errorf("only %d frames", frames)
			}
		})
	}
}

// Changes that arrive together are written in batches of at most 16 KiB, and damage to one batch costs its rows alone.
func TestAFrameOfABatchCostsItsRowsAlone(t *testing.T) {
	const rows = 3000
	s := newSite(t)
	changes := make([]*Change, rows)
	for i := range changes {
		l := &catalog.Layout{Layout: model.Layout{Slot: 1, Spans: []model.Span{{Bytes: 1}}, Text: fmt.Sprint(i % 3)}}
		row := &catalog.Row{Key: model.NumberKey(int64(i)), Serial: uint64(i + 1), Layout: l, Sums: []uint64{1}, Meta: strings.Repeat("m", i%100)}
		changes[i] = &Change{History: fmt.Sprint("h", i%5), Off: int64(i) * catalog.Block, Put: row}
	}
	changes[1000].Put.Meta = strings.Repeat("m", 100_000) // larger than a batch
	s.d.Commit(changes...)
	for range changes {
		if c := <-s.landed; c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	s.close()
	frames, sizes := s.flipFrames(batchKind, rows)
	large := 0
	for _, n := range sizes {
		if n > 16<<10 {
			large++
		}
	}
	if frames < 30 || large != 1 {
		t.Errorf("of %d batches %d have more than 16 KiB of rows", frames, large)
	}
}

// After a failed batch, no other batch of its group is attempted. Changes of earlier batches are durable, changes of later ones are not. Changes of the
// failed batch are uncertain if only its sync failed.
func TestNoBatchFollowsOneThatFailed(t *testing.T) {
	for name, c := range map[string]struct {
		fails     *vfs.Rule
		some, all bool // rows that are there
		uncertain bool // some changes are
	}{
		"the third sync":         {&vfs.Rule{Ops: vfs.OpSync, Skip: 2, Times: 1}, true, true, false}, // it is tried once more, in another file
		"all from the third on":  {&vfs.Rule{Ops: vfs.OpSync, Skip: 2}, true, false, true},
		"all":                    {&vfs.Rule{Ops: vfs.OpSync}, false, false, false},
		"nothing can be created": {&vfs.Rule{Ops: vfs.OpSync | vfs.OpOpen}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiteOf(t, madeHeads) // without indexes, these checkpoints, which have no bytes, have no data files
			s.close()
			fails := c.fails
			fails.Err = unix.EIO
			fails.Disable()
			s.o.FS = vfs.NewFaulty(s.fs, fails)
			s.open()
			fails.Enable()
			changes := make([]*Change, 3000)
			for i := range changes {
				changes[i] = &Change{History: "h", Off: int64(i) * catalog.Block, Put: &catalog.Row{Key: model.NumberKey(int64(i)), Serial: uint64(i + 1), Layout: &catalog.Layout{Layout: model.Layout{Slot: 1}}}}
			}
			s.d.Commit(changes...)
			there, uncertain := []uint64{}, 0
			for range changes {
				switch c := <-s.landed; {
				case c.Err == nil:
					there = append(there, c.Put.Serial)
				case !errors.Is(c.Err, unix.EIO):
					t.Fatal(c.Err)
				case c.Uncertain:
					uncertain++
				}
			}
			if some, all := len(there) > 0, len(there) == len(changes); some != c.some || all != c.all || (uncertain > 0) != c.uncertain || fails.Fired() > 2 {
				t.Errorf("%d are there, of %d nobody knows, %d calls have failed", len(there), uncertain, fails.Fired())
			}
			fails.Disable()
			s.do(&Change{History: "h", Off: 5000 * catalog.Block, Put: &catalog.Row{Key: model.NumberKey(5000), Serial: 5001, Layout: &catalog.Layout{Layout: model.Layout{Slot: 1}}}})
			s.close()
			view, err := Read(s.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := serials(view.State()); !slices.Equal(got, append(there, 5001)) {
				t.Errorf("%d are there after all, not %d", len(got), len(there)+1)
			}
			if err := view.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// flipFrames flips a bit in each frame of a kind in the log's newest file, which has all rows, and verifies the loss; in every third frame, of which turn
// selects the first, where only a part of the cases runs. It returns the number of such frames, and the bytes of puts in them.
func (s *site) flipFrames(kind uint32, rows int) (frames int, sizes []int) {
	s.t.Helper()
	catalogs := s.names("catalog-")
	name := catalogs[len(catalogs)-1]
	text := s.read(name)
	for at, next := 0, 0; at < len(text); at = next {
		length := int(binary.LittleEndian.Uint64(text[at+16:]))
		next = at + (40+length+7)/8*8
		if binary.LittleEndian.Uint32(text[at+4:]) != kind {
			continue
		}
		frames++
		in, size := putsIn(text[at+40 : at+40+length])
		sizes = append(sizes, size)
		if tenth() && (int64(frames)+turn())%3 != 0 { // a flip costs another reading of all rows
			continue
		}
		s.flip(name, int64(at+40+length/2))
		view, err := Read(s.o)
		if err != nil {
			s.t.Fatal(err)
		}
		left := 0
		for _, h := range view.State().Histories() {
			left += h.Rows
		}
		if err := view.Close(); err != nil {
			s.t.Fatal(err)
		}
		if left != rows-in {
			s.t.Errorf("frame %d has %d rows, and without it %d of %d are left", frames, in, left, rows)
		}
		s.flip(name, int64(at+40+length/2))
	}
	return frames, sizes
}

// putsIn counts the puts in the records of a payload, and their bytes.
func putsIn(payload []byte) (n, bytesOf int) {
	for len(payload) > 0 {
		size := binary.LittleEndian.Uint32(payload)
		for record := payload[4 : 4+size]; len(record) > 0; {
			if record[0] == 3 && bytes.Equal(record[1:4], make([]byte, 3)) {
				n, bytesOf = n+1, bytesOf+8+int(binary.LittleEndian.Uint32(record[4:]))
			}
			record = record[8+binary.LittleEndian.Uint32(record[4:]):]
		}
		payload = payload[4+size:]
	}
	return n, bytesOf
}
