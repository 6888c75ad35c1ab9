package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// encoded encodes the regions of a slot in containers of so many plain bytes, and returns them with the bytes that lie on disk.
func encoded(l *catalog.Layout, slot []byte, part int64, k codec.Kind, c codec.Compression) (*model.Encoding, []byte) {
	e := &model.Encoding{Part: part, Lengths: []uint32{}, Sections: c != codec.NoCompression}
	var all []byte
	for _, s := range l.Spans {
		for plain := range slices.Chunk(slot[s.Offset:s.Offset+s.Bytes], int(part)) {
			p := make([]byte, codec.Bound(len(plain)))
			n, err := codec.Encode(p, plain, nil, codec.Options{Kind: k, Modes: codec.AllModes, Compression: c})
			if err != nil {
				panic(err)
			}
			e.Lengths, all = append(e.Lengths, uint32(n)), append(all, p[:n]...)
		}
	}
	return e, all
}

// plainOf returns the slot of a row from the bytes that lie on disk.
func plainOf(row *catalog.Row, stored []byte) (slot []byte, err error) {
	if row.Encoding == nil {
		return stored[:row.Layout.Slot], nil
	}
	slot = make([]byte, row.Layout.Slot)
	row.Encoding.Each(row.Layout.Spans, func(c model.Container) bool {
		var opened *codec.Container
		opened, err = codec.Open(stored[c.At.Offset:c.At.End()], int(c.Plain.Bytes))
		if err == nil && opened.NeedsReference() {
			err = codec.ErrReference
		}
		if err == nil {
			err = opened.Decode(slot[c.Plain.Offset:c.Plain.End()], nil, 1)
		}
		if err != nil {
			err = fmt.Errorf("container of region %d: %w", c.Region, err)
		}
		return err == nil
	})
	return slot, err
}

// encodedSite is a store whose checkpoints are encoded, in containers of at most two leaves.
func encodedSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.part = 2 * model.PartGrain
	return s
}

// containersOf returns the containers of a checkpoint of history "a", which lies at an offset of the space: At is in the space.
func (s *site) containersOf(key model.Key, at int64) (all []model.Container) {
	s.t.Helper()
	row := s.rows()["a/"+key.String()]
	row.Encoding.Each(row.Layout.Spans, func(c model.Container) bool {
		c.At.Offset += at
		all = append(all, c)
		return true
	})
	return all
}

func TestCheckOfEncodedCheckpoints(t *testing.T) {
	for _, even := range []bool{false, true} {
		s := encodedSite(t)
		s.even = even
		s.put("a", model.NumberKey(1), 100, 0, 5000)
		s.put("a", model.TextKey("x"), 3<<20+17, 1<<20)
		s.put("b", model.NumberKey(1), 0)
		s.put("b", model.NumberKey(2))
		s.part, s.compression = model.PartGrain, codec.Huff0
		s.put("b", model.NumberKey(3), 600<<10, 1)
		s.part = 0
		s.put("b", model.NumberKey(4), 600<<10, 1)
		want := int64(5100 + 4<<20 + 17 + 2*(600<<10+1))
		for _, scope := range []Scope{{}, {Data: true}, {Share: 1}, {Parts: 1}} {
			sum := s.check(scope)
			if sum.Checkpoints != 6 || sum.Bytes != want || len(sum.Faults) > 0 || sum.Damaged > 0 || len(sum.Unused) > 0 {
				t.Errorf("%+v: %+v", scope, sum)
			}
			if all := scope != (Scope{}); all && (sum.Chosen != 6 || sum.Read != sum.Bytes) || !all && (sum.Chosen != 0 || sum.Read != 0) {
				t.Errorf("%+v: %+v", scope, sum)
			}
		}
		if less := s.next < want; less != even {
			t.Errorf("%d bytes of the space for %d", s.next, want)
		}
		s.close()
	}
}

// A fault names the container, where it lies, and the plain bytes that are lost: those of a leaf where a chunk is damaged, those of the container where its
// header is.
func TestDamageToContainers(t *testing.T) {
	s := encodedSite(t)
	s.put("a", model.NumberKey(1), 100, 5000)
	big := s.put("a", model.TextKey("x"), 40, 3<<20+17, 0, 700<<10)
	s.put("b", model.NumberKey(1), 700)
	s.close()
	all := s.containersOf(model.TextKey("x"), big)
	if len(all) != 1+7+2 {
		t.Fatal(len(all))
	}
	const leaf = checksum.LeafBytes
	for _, c := range []struct {
		container     int
		in            int64 // offset in the container
		region        int
		offset, bytes int64
	}{
		{0, 0, 0, 0, 40},
		{0, 90, 0, 0, 40},
		{1, 8, 1, 0, 2 * leaf},
		{1, 100, 1, 0, 2 * leaf},
		{1, int64(codec.PayloadsAt(2 * leaf)), 1, 0, leaf},
		{2, int64(codec.PayloadsAt(2*leaf)) + leaf - 1, 1, 2 * leaf, leaf},
		{2, int64(codec.PayloadsAt(2*leaf)) + leaf, 1, 3 * leaf, leaf},
		{7, int64(codec.PayloadsAt(17)) + 16, 1, 12 * leaf, 17},
		{9, 50, 3, 2 * leaf, 700<<10 - 2*leaf},
	} {
		file, off := s.flipAt(all[c.container].At.Offset + c.in)
		if sum := s.check(Scope{}); len(sum.Faults) != 0 {
			t.Errorf("bytes were not to be read: %v", sum.Faults)
		}
		sum := s.check(Scope{Data: true})
		var stored int64
		hit := false
		for _, f := range sum.Faults {
			if f.Kind != Changed || f.Harmless || f.Fleeting || f.Row == nil || f.Row.History != "a" || f.Row.Key != model.TextKey("x") ||
				f.Row.Region != c.region || f.Row.Offset != c.offset || f.Row.Bytes != c.bytes || !strings.Contains(f.Why, fmt.Sprintf("container %d: ", c.container)) {
				t.Errorf("%+v: %+v, %+v", c, f, f.Row)
			}
			stored += f.Bytes
			hit = hit || f.File == file && f.Offset <= off && off < f.Offset+f.Bytes
		}
		if sum.Damaged != 1 || !hit || stored != all[c.container].At.Bytes {
			t.Errorf("%+v: %v", c, sum.Faults)
		}
		s.flipAt(all[c.container].At.Offset + c.in)
	}
	s.flipAt(big + 40 + int64(codec.PayloadsAt(40))) // between two payloads
	s.sound()
}

// Bytes of another checkpoint are found, although each of its containers is whole: by the hashes of leaves, and by the checksum of a region without them.
func TestContainersOfAnotherCheckpoint(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		s := encodedSite(t)
		s.even = true
		first := s.put("a", model.NumberKey(1), 100, 600<<10)
		other := s.put("a", model.NumberKey(2), 100, 600<<10)
		row := s.rows()["a/1"]
		p := make([]byte, row.Bytes())
		if err := s.d.Space().Read(other, p); err != nil {
			t.Fatal(err)
		}
		if row.Serial, row.Key = 3, model.NumberKey(1); !leaves {
			row.Leaves = nil
		}
		s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: 1, Drop: true})
		if err := s.d.Space().Write(first, p); err != nil {
			t.Fatal(err)
		}
		s.do(&Change{History: "a", Put: &row, Off: first})
		s.close()
		want := map[string]int64{"container 0: " + mismatch: 100, "container 1: " + mismatch: 512 << 10, "container 2: " + mismatch: 88 << 10}
		if !leaves {
			want = map[string]int64{"container 0: " + mismatch: 100, "containers 1 to 2: " + mismatch: 600 << 10}
		}
		got := map[string]int64{}
		sum := s.check(Scope{Data: true})
		for _, f := range sum.Faults {
			got[f.Why] += f.Row.Bytes
		}
		if sum.Damaged != 1 || !maps.Equal(got, want) {
			t.Errorf("leaves %v: %v", leaves, sum.Faults)
		}
	}
}

// A container that is whole is refused where it needs a reference, has another number of plain bytes, or is shorter than the catalog says.
func TestWholeContainersThatDoNotFit(t *testing.T) {
	plain := make([]byte, 5000)
	for i := range plain {
		plain[i] = byte(i * i >> 3)
	}
	reference := slices.Clone(plain)
	reference[77]++
	encode := func(p, reference []byte) []byte {
		to := make([]byte, codec.Bound(len(p)))
		n, err := codec.Encode(to, p, reference, codec.Options{Kind: codec.Int8, Modes: codec.AllModes})
		if err != nil {
			t.Fatal(err)
		}
		return to[:n]
	}
	whole := encode(plain, nil)
	for why, container := range map[string][]byte{
		codec.ErrReference.Error(): encode(plain, reference),
		codec.ErrLength.Error():    encode(plain[:4999], nil),
		"do not fit":               append(whole, make([]byte, 16)...), // longer than it says
		"no header":                make([]byte, len(whole)),
		"":                         whole,
	} {
		s := newSite(t)
		l := &catalog.Layout{Layout: model.Layout{Slot: 5000, Spans: []model.Span{{Bytes: 5000}}}}
		row := &catalog.Row{
			Key: model.NumberKey(1), Serial: 1, Layout: l, Sums: []uint64{checksum.Sum(plain)}, Content: catalog.Encoded,
			Encoding: &model.Encoding{Part: model.PartGrain, Lengths: []uint32{uint32(len(container))}},
		}
		if err := s.d.Space().Write(0, append(container, make([]byte, -len(container)&4095)...)); err != nil {
			t.Fatal(err)
		}
		s.do(&Change{History: "a", Put: row})
		s.close()
		sum := s.check(Scope{Data: true})
		if why == "" {
			s.sound()
		} else if sum.Damaged != 1 || len(sum.Faults) != 1 || sum.Faults[0].Kind != Changed || !strings.Contains(sum.Faults[0].Why, why) {
			t.Errorf("%s: %v", why, sum.Faults)
		}
	}
}

func TestMissingContainers(t *testing.T) {
	s := encodedSite(t)
	at := s.put("a", model.NumberKey(1), 5000, 3<<20) // files 1 to 4
	s.put("a", model.NumberKey(2), 100)
	s.close()
	all := s.containersOf(model.NumberKey(1), at)
	if err := s.fs.Remove(filepath.Join(dir, segment.FileName(2))); err != nil {
		t.Fatal(err)
	}
	lost := map[int]bool{} // the containers that need file 2
	for i, c := range all {
		lost[i] = c.At.Offset < 2<<20 && c.At.End() > 1<<20
	}
	for _, scope := range []Scope{{}, {Data: true}} {
		sum := s.check(scope)
		if len(sum.Faults) != 1 || sum.Damaged != 1 {
			t.Fatalf("%v", sum.Faults)
		}
		f := sum.Faults[0]
		if f.Kind != Missing || f.File != segment.FileName(2) || f.Offset != siteFront || f.Bytes != 1<<20 || f.Row.Region != 1 {
			t.Errorf("%+v", f)
		}
		for i, c := range all[1:] {
			if is := f.Row.Offset <= int64(i)<<19 && int64(i+1)<<19 <= f.Row.Offset+f.Row.Bytes; is != lost[i+1] {
				t.Errorf("container %d at %+v: %v", i+1, c.At, f)
			}
		}
		if f.Why != "containers 2 to 4: the data file ends before" {
			t.Error(f.Why)
		}
	}
}

func TestUnreadableContainers(t *testing.T) {
	s := encodedSite(t)
	s.put("a", model.NumberKey(1), 600<<10, 600<<10)
	s.close()
	faulty := vfs.NewFaulty(s.fs)
	faulty.Add(&vfs.Rule{Ops: vfs.OpRead, Name: segment.FileName(1), From: siteFront + 300<<10, To: siteFront + 300<<10 + 1, Err: unix.EIO})
	o := s.o
	o.FS = faulty
	sum := checkOf(t, o, Scope{Data: true})
	if len(sum.Faults) != 1 || sum.Faults[0].Kind != Unreadable || sum.Faults[0].Row.Offset != 0 || sum.Faults[0].Row.Bytes != 512<<10 || sum.Faults[0].Row.Region != 0 {
		t.Errorf("%v", sum.Faults)
	}
}

// A bit that flips on the way is fleeting.
func TestFleetingDamageToAContainer(t *testing.T) {
	s := encodedSite(t)
	s.put("a", model.NumberKey(1), 600<<10)
	s.close()
	v, err := Read(s.o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.Check(Scope{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	s.flipAt(5000)
	if err := c.reader(func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	s.flipAt(5000)
	mustEnd(t, c)
	if sum := c.Summary(); len(sum.Faults) != 1 || !sum.Faults[0].Fleeting || sum.Faults[0].Kind != Changed {
		t.Errorf("%v", sum.Faults)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// Encoded checkpoints without checksums are verified by the hashes in their containers, by a check and by a backup.
func TestEncodedCheckpointsWithoutChecksums(t *testing.T) {
	s := encodedSite(t)
	s.put("a", model.NumberKey(1), 600<<10)
	row := s.rows()["a/1"]
	row.Serial, row.Sums, row.Leaves, row.Extents = 2, nil, nil, nil
	s.do(&Change{History: "a", Put: &row, Off: 0})
	s.close()
	if sum := s.check(Scope{Data: true}); sum.Unsummed != 1 || len(sum.Faults) > 0 || sum.Read != 600<<10 {
		t.Errorf("%+v", sum)
	}
	s.flipAt(5000)
	if sum := s.check(Scope{Data: true}); sum.Unsummed != 1 || len(sum.Faults) != 1 || sum.Faults[0].Kind != Changed {
		t.Errorf("%+v", sum)
	}
	b, err := NewBackup(s.o, Options{FS: s.fs, Dir: backupDir})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := b.Step(func() bool { return false }); err != nil || !done || b.Done().Damaged != 1 {
		t.Errorf("%v, %v, %+v", done, err, b.Done())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// A window takes as much memory as the longest range, until it shrinks.
func TestAWindowGrows(t *testing.T) {
	data := bytesReader(make([]byte, 8<<20))
	for i := range data {
		data[i] = byte(i>>12 + i)
	}
	w, err := newWindowOf(data, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		w.begin(r.Int64N(int64(len(data))))
		off := r.Int64N(512 << 10)
		for range 5 {
			n := 1 + r.Int64N([]int64{100, 64 << 10, 2 << 20}[i%3])
			p, err := w.at(off, n)
			if err != nil || !bytes.Equal(p, data[off:off+n]) {
				t.Fatalf("%d bytes at %d: %v", n, off, err)
			}
			off += n / 2
		}
		if i%3 == 2 {
			err = w.shrink()
		}
		if err != nil || i%3 == 2 && memory.InUse(checkPurpose) != 64<<10 {
			t.Fatalf("%d bytes are held: %v", memory.InUse(checkPurpose), err)
		}
	}
	if err := w.close(); err != nil || memory.InUse(checkPurpose) != 0 {
		t.Errorf("%d bytes are left: %v", memory.InUse(checkPurpose), err)
	}
}

type bytesReader []byte

func (b bytesReader) Read(off int64, p []byte) error {
	if copy(p, b[off:]) < len(p) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// What is dropped is told in bytes on disk.
func TestCollectCountsTheBytesOnDisk(t *testing.T) {
	s := encodedSite(t)
	s.even = true
	for k := range int64(3) {
		s.put("a", model.NumberKey(k), 1<<20)
	}
	s.do(&Change{History: "a", Retention: &model.Retention{Last: 1}})
	rows := s.rows()
	s.close()
	for _, dry := range []bool{true, false} {
		got, err := Collect(s.o, dry)
		first, second := rows["a/0"], rows["a/1"]
		want := first.Extents[0].Bytes + second.Extents[0].Bytes
		if err != nil || got.Dropped != 2 || got.DroppedBytes != want || want > 1<<20 {
			t.Errorf("%+v, %v: not %d", got, err, want)
		}
	}
	s.sound()
}

// strangeRow is a record with a checkpoint of a content that comes later.
func strangeRow(content byte) []byte {
	p := forgedRow(1, 1, 99, catalog.Extent{File: 9, Bytes: 4096})
	for at := 0; ; at += 8 + int(binary.LittleEndian.Uint32(p[at+4:])) {
		if p[at] == 3 {
			p[at+8+16] = content
			return p
		}
	}
}

// A checkpoint of a later content is listed, and others are read. Nothing is written to the store, since nothing tells where that checkpoint lies. That also
// holds where a commit area alone has it.
func TestContentsOfLaterVersions(t *testing.T) {
	for _, content := range []byte{byte(catalog.Referring) + 1, 7, 255} {
		for _, ahead := range []bool{false, true} {
			s := died(t, 3)
			if ahead {
				s.forgeAhead(strangeRow(content))
			} else {
				s.open()
				s.close()
				if err := forged(strangeRow(content))(s.o); err != nil {
					t.Fatal(err)
				}
			}
			v, err := Read(s.o)
			if err != nil {
				t.Fatal(err)
			}
			if v.State().Unreadable() != 1 || v.Damage() != nil {
				t.Errorf("%d are not known, %v", v.State().Unreadable(), v.Damage())
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			if sum := s.check(Scope{Data: true}); sum.Checkpoints != 4 || sum.Unknown != 1 || len(sum.Faults) > 0 || len(sum.Unused) > 0 || sum.Read != 9000 {
				t.Errorf("%+v", sum)
			}
			before := s.image()
			_, opened := Open(s.o)
			_, repaired := Repair(s.o, Mending{})
			_, rebuilt := Repair(s.o, Mending{Rebuild: true})
			_, collected := Collect(s.o, false)
			_, foreseen := Collect(s.o, true)
			_, copied := NewBackup(s.o, Options{FS: s.fs, Dir: backupDir})
			for i, err := range []error{opened, repaired, rebuilt, collected, foreseen, copied} {
				if !errors.Is(err, ErrVersion) {
					t.Errorf("content %d, ahead %v, writer %d: %v", content, ahead, i, err)
				}
			}
			after := &site{t: t, fs: before, o: s.o}
			for _, name := range s.names("") {
				if name != lockName && name != ballastName && !bytes.Equal(after.read(name), s.read(name)) {
					t.Errorf("content %d, ahead %v: %s has changed", content, ahead, name)
				}
			}
		}
	}
}

// forgeAhead adds a frame to the commit area that is in use.
func (s *site) forgeAhead(record []byte) {
	s.t.Helper()
	v, err := Read(s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	frame := v.commitArea(v.ahead.file).Append(nil, v.ahead.batch, v.ahead.end(), record)
	file, err := s.fs.Open(filepath.Join(dir, segment.FileName(v.ahead.file)), true, false)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = file.WriteAt(append(frame, make([]byte, -len(frame)&4095)...), v.identity.front()-v.identity.commitBytes()+v.ahead.end())
	if err := errors.Join(err, file.Close(), v.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// forgedContainer is a record with an encoded checkpoint that was never written: one region in one container.
func forgedContainer(key, plain int64, length uint32, serial uint64, extents ...catalog.Extent) []byte {
	l := &catalog.Layout{ID: 77, Layout: model.Layout{Slot: plain, Spans: []model.Span{{Bytes: plain}}, Text: "forged"}}
	return forgedOf(&catalog.Row{
		Key: model.NumberKey(key), Serial: serial, Layout: l, Align: 64, Extents: extents,
		Content: catalog.Encoded, Encoding: &model.Encoding{Part: model.MostPart, Lengths: []uint32{length}},
	})
}

// Checkpoints with long containers are examined one at a time, however many there are. Those that lie beyond the data files take no memory.
func TestLongContainersTakeLittleMemory(t *testing.T) {
	o := real(t)
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Fatal(err)
	}
	const long = longContainer + 4096 - 16
	o.SegmentBytes = 1 << 30
	d := mustOpen(t, o)
	if err := errors.Join(d.Space().Write(0, make([]byte, 4096)), d.Close()); err != nil {
		t.Fatal(err)
	}
	var records [][]byte
	for i := range int64(3) {
		at := catalog.Extent{File: 1, Offset: i * (longContainer + 4096), Bytes: longContainer + 4096}
		records = append(records, forgedContainer(i, longContainer+4096, long, uint64(i+1), at))
	}
	at := catalog.Extent{File: 1, Offset: 700 << 20, Bytes: 200 << 20}
	records = append(records, forgedContainer(9, 1<<30, 200<<20, 9, at))
	if err := forged(records...)(o); err != nil {
		t.Fatal(err)
	}
	// A writer removes data files without checkpoints.
	if err := os.WriteFile(dataFile(o, 1), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dataFile(o, 1), front(madeWhole, o.SegmentBytes)+3*(longContainer+4096)); err != nil {
		t.Fatal(err)
	}
	most := atomic.NewInt64(0)
	o.FS = &stepped{o.FS, func(step) error {
		for n := memory.InUse(checkPurpose); n > most.Load(); {
			most.Store(n)
		}
		return nil
	}}
	sum := checkOf(t, o, Scope{Data: true})
	if sum.Damaged != 4 || most.Load() < long || most.Load() > long+(mostReaders+1)*windowBytes {
		t.Errorf("%d bytes at most, %+v", most.Load(), sum)
	}
	for _, f := range sum.Faults {
		if f.Row != nil && (f.Kind == Missing) != (f.Row.Key == model.NumberKey(9)) {
			t.Errorf("%+v", f)
		}
	}
}
