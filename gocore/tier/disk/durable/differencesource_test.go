package durable

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// differenceSite is a store whose checkpoints are differences of one lineage.
func differenceSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.drafts = newDrafts(11, difference.Runs, 4<<20)
	return s
}

// objectsOf returns the ranges of the objects of a checkpoint of history "a", by number: the containers, and the metadata.
func (s *site) objectsOf(key int64) map[uint32][2]run {
	s.t.Helper()
	row := s.rows()[fmt.Sprint("a/", key)]
	i := identity{segment: s.o.SegmentBytes}
	claims, ok := i.claims(&row)
	if !ok {
		s.t.Fatalf("%d lies nowhere", key)
	}
	all := map[uint32][2]run{}
	for _, c := range claims {
		all[c.number] = [2]run{{c.from, c.from + c.data}, {c.from + c.data, c.from + c.data + c.meta}}
	}
	return all
}

// related is a store with three checkpoints of 1.2 MB: number 2 needs objects of number 1, and number 3 those of both. Another row has no object.
func related(t *testing.T) *site {
	t.Helper()
	s := differenceSite(t)
	for key := range int64(3) {
		s.put("a", model.NumberKey(key+1), 600<<10+17, 0, 600<<10)
	}
	s.drafts = nil
	s.put("b", model.NumberKey(1), 700)
	for key, want := range map[int64][]uint32{1: {1}, 2: {1, 2}, 3: {1, 2, 3}} {
		if got := slices.Sorted(maps.Keys(s.objectsOf(key))); !slices.Equal(got, want) {
			t.Fatalf("checkpoint %d needs the objects %d, not %d", key, got, want)
		}
	}
	return s
}

func TestCheckOfDifferences(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		s := related(t)
		s.drafts = newDrafts(12, difference.Tree, 1<<20)
		s.put("c", model.NumberKey(1), 0, 0)
		s.put("c", model.NumberKey(2), 100, 5000, 0)
		s.put("c", model.NumberKey(3), 100, 5000, 0)
		rows, want := 7, int64(3*(1200<<10+17)+700+2*5100)
		if dropped {
			s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: 1, Drop: true})
			rows, want = rows-1, want-1200<<10-17
		}
		for _, scope := range []Scope{{}, {Data: true}, {Share: 1}, {Parts: 1}} {
			sum := s.check(scope)
			if sum.Checkpoints != rows || sum.Bytes != want || len(sum.Faults) > 0 || sum.Damaged > 0 || len(sum.Unused) > 0 {
				t.Errorf("%+v: %+v", scope, sum)
			}
			if all := scope != (Scope{}); all && (sum.Chosen != rows || sum.Read != sum.Bytes) || !all && (sum.Chosen != 0 || sum.Read != 0) {
				t.Errorf("%+v: %+v", scope, sum)
			}
		}
		s.close()
	}
}

// hitBy returns the checkpoints of history "a" with faults of a kind, and verifies that each fault is in a range and gives a reason.
func hitBy(t *testing.T, s *site, sum Summary, kind Kind, in run, why string) (keys []int64) {
	t.Helper()
	for _, f := range sum.Faults {
		if f.Kind != kind || f.Harmless || f.Fleeting || f.Row == nil || f.Row.History != "a" || !strings.Contains(f.Why, why) {
			t.Errorf("%+v, %+v: not for %q", f, f.Row, why)
			continue
		}
		number, _ := segment.FileNumber(f.File)
		at := int64(number-1)*s.o.SegmentBytes + f.Offset - siteFront
		if at < in.from || at+f.Bytes > in.end || f.Bytes == 0 {
			t.Errorf("the fault is at %d, %d bytes, not in %v", at, f.Bytes, in)
		}
		keys = append(keys, f.Row.Key.Number)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Damage to an object is reported with each checkpoint that needs it, with the number of the object.
func TestDamageToObjects(t *testing.T) {
	s := related(t)
	s.close()
	for key := range int64(3) {
		own := uint32(key + 1)
		for part, lies := range s.objectsOf(key + 1)[own] {
			for _, at := range []int64{lies.from, lies.from + 70, (lies.from + lies.end) / 2} {
				s.flipAt(at)
				if sum := s.check(Scope{}); len(sum.Faults) != 0 {
					t.Errorf("bytes were not to be read: %v", sum.Faults)
				}
				sum := s.check(Scope{Data: true})
				for _, f := range sum.Faults {
					of := "its object: "
					if uint32(f.Row.Key.Number) != own {
						of = fmt.Sprintf("the object of an earlier checkpoint, number %d of the lineage: ", own)
					}
					if !strings.HasPrefix(f.Why, of) {
						t.Errorf("object %d, byte %d: %q, not %q", own, at, f.Why, of)
					}
				}
				hit := hitBy(t, s, sum, Changed, lies, "object")
				if len(hit) == 0 || hit[0] != key+1 || len(hit) != sum.Damaged || part == 1 && at == lies.from && len(hit) != int(3-key) {
					t.Errorf("object %d, byte %d of %v: %v are hit: %v", own, at, lies, hit, sum.Faults)
				}
				s.flipAt(at)
			}
		}
	}
	s.sound()
}

// Whole checkpoints with containers of a MiB are read, with a reference too, and damage is reported with those that need the object.
func TestCheckOfWholeCheckpoints(t *testing.T) {
	s := newSite(t)
	s.drafts = newDrafts(11, referring, 0)
	s.drafts.part = 4 * model.PartGrain
	for key := range int64(3) {
		s.put("a", model.NumberKey(key+1), 2200<<10+17, 0, 300<<10)
	}
	s.close()
	for _, scope := range []Scope{{}, {Data: true}, {Share: 1}, {Parts: 1}} {
		sum := s.check(scope)
		if sum.Checkpoints != 3 || sum.Bytes != 3*(2500<<10+17) || len(sum.Faults) > 0 || sum.Damaged > 0 || len(sum.Unused) > 0 {
			t.Errorf("%+v: %+v", scope, sum)
		}
	}
	for key := range int64(3) {
		own := uint32(key + 1)
		if own > 1 && len(s.objectsOf(key+1)) != 2 {
			t.Fatalf("checkpoint %d needs %v", own, s.objectsOf(key+1))
		}
		for part, lies := range s.objectsOf(key + 1)[own] {
			for _, at := range []int64{lies.from, lies.from + 26, lies.from + 70} {
				s.flipAt(at)
				sum := s.check(Scope{Data: true})
				hit := hitBy(t, s, sum, Changed, lies, "object")
				want := []int64{key + 1}
				if own == 1 {
					want = []int64{1, 2, 3} // all need its metadata and its first container
				}
				if !slices.Equal(hit, want) {
					t.Errorf("object %d, byte %d of part %d, %v: %v are hit: %v", own, at, part, lies, hit, sum.Faults)
				}
				s.flipAt(at)
			}
		}
	}
	s.sound()
}

// Where a part of an object is missing, a check without reading finds which leaves of which checkpoints need it.
func TestMissingPartsOfObjects(t *testing.T) {
	s := differenceSite(t)
	s.put("a", model.NumberKey(1), 5<<19)
	s.next = 5 << 20
	s.put("a", model.NumberKey(2), 5<<19)
	s.put("a", model.NumberKey(3), 5<<19)
	s.next = 8 << 20
	s.drafts = newDrafts(5, difference.Runs, 4<<20)
	s.put("b", model.NumberKey(1), 5<<19)
	s.close()
	before := s.copied()
	for file, want := range map[uint64][]int64{1: {1, 2, 3}, 2: {1, 2, 3}, 3: {1, 2, 3}, 6: {2, 3}} {
		s := before.copied()
		if err := s.fs.Remove(filepath.Join(dir, segment.FileName(file))); err != nil {
			t.Fatal(err)
		}
		for _, scope := range []Scope{{}, {Data: true}} {
			sum := s.check(scope)
			var got []int64
			bytes := map[int64]int64{}
			for _, f := range sum.Faults {
				if f.Kind != Missing || f.File != segment.FileName(file) || f.Row.History != "a" || !strings.HasSuffix(f.Why, "the data file ends before") {
					t.Errorf("file %d: %+v, %+v", file, f, f.Row)
				}
				if number := int64(1); file < 6 && f.Row.Key.Number != number && !strings.Contains(f.Why, "earlier checkpoint, number 1 of the lineage") {
					t.Errorf("file %d: %s", file, f.Why)
				}
				got = append(got, f.Row.Key.Number)
				bytes[f.Row.Key.Number] += f.Row.Bytes
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) || sum.Damaged != len(want) {
				t.Errorf("file %d, %+v: %v lack bytes: %v", file, scope, got, sum.Faults)
			}
			if file == 2 && (bytes[1] == 5<<19 || bytes[1] < 512<<10) {
				t.Errorf("file %d: %d bytes of the first checkpoint are lost: %v", file, bytes[1], sum.Faults)
			}
		}
	}
}

func TestUnreadableObjects(t *testing.T) {
	s := related(t)
	s.close()
	lies := s.objectsOf(1)[1]
	for part, bad := range lies {
		faulty := vfs.NewFaulty(s.fs)
		name, off := s.lies(bad.from)
		faulty.Add(&vfs.Rule{Ops: vfs.OpRead, Name: name, From: off, To: off + 1, Err: unix.EIO})
		o := s.o
		o.FS = faulty
		sum := checkOf(t, o, Scope{Data: true})
		hit := hitBy(t, s, sum, Unreadable, bad, "object")
		if len(hit) < 2 || part == 1 && len(hit) != 3 {
			t.Errorf("%v are hit: %v", hit, sum.Faults)
		}
		var victims []Victim
		for _, f := range sum.Faults {
			victims = append(victims, Victim{f.Row.History, f.Row.Key, f.Row.Serial})
		}
		victims = slices.Compact(victims)
		if done, err := Repair(o, Mending{Drop: victims}); err != nil || done.Dropped != 0 || done.Spared != len(victims) {
			t.Errorf("%+v, %v", done, err)
		}
	}
	s.sound()
}

// A repair drops all checkpoints that need a damaged object, and no others.
func TestRepairOfDifferences(t *testing.T) {
	s := related(t)
	s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: 1, Drop: true})
	s.close()
	s.flipAt(s.objectsOf(2)[1][1].from)
	sum := s.check(Scope{Data: true})
	victims := []Victim{{"b", model.NumberKey(1), 4}}
	for _, f := range sum.Faults {
		if v := (Victim{f.Row.History, f.Row.Key, f.Row.Serial}); !slices.Contains(victims, v) {
			victims = append(victims, v)
		}
	}
	done, err := Repair(s.o, Mending{Drop: victims})
	if err != nil || done.Dropped != 2 || done.Spared != 1 || sum.Damaged != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	s.sound()
	if got := s.rows(); len(got) != 1 || got["b/1"].Serial != 4 {
		t.Errorf("%v are left", got)
	}
	s.open()
	if got := occupied(s.d.contents); len(got) != 1 {
		t.Errorf("%v are in use", got)
	}
	s.close()
}

// A rebuilt catalog has the differences whose own object and sources are there, also where the checkpoint of a source is gone.
func TestRebuildOfDifferences(t *testing.T) {
	s := related(t)
	s.do(&Change{History: "a", Key: model.NumberKey(2), Serial: 2, Drop: true})
	s.close()
	want := s.rows()
	objects := s.objectsOf(3)
	for _, c := range []struct {
		damaged int64 // a byte of the space, or 0
		found   Rebuilt
		lost    []string
	}{
		{0, Rebuilt{Found: 4}, nil}, // the dropped one comes back, as its object is still there
		{objects[3][1].from, Rebuilt{Found: 3, Changed: 1}, []string{"a/3"}},
		{objects[2][1].from, Rebuilt{Found: 2, Changed: 2}, []string{"a/3"}},
		{objects[1][1].from, Rebuilt{Found: 1, Changed: 3}, []string{"a/3", "a/1"}},
	} {
		s := s.copied()
		if c.damaged > 0 {
			s.flipAt(c.damaged)
		}
		s.withoutCatalog()
		if done := s.rebuild(); done.Rebuilt != c.found {
			t.Errorf("byte %d: %+v", c.damaged, done)
		}
		left := maps.Clone(want)
		for _, name := range c.lost {
			delete(left, name)
		}
		s.has(left, true)
		s.sound()
	}
}

// A difference whose source was written over does not come back, even if its checkpoints have no checksums.
func TestASourceThatWasWrittenOver(t *testing.T) {
	for _, summed := range []bool{true, false} {
		s := differenceSite(t)
		s.put("a", model.NumberKey(1), 5000)
		second := s.next
		s.put("a", model.NumberKey(2), 5000)
		row := s.rows()["a/2"]
		if len(row.Sources) != 1 {
			t.Fatal("it needs no object")
		}
		s.do(&Change{History: "a", Serial: 2, Clear: true})
		if !summed {
			row.Sums, row.Leaves, row.Serial = nil, nil, 3
			row.Difference.Sources[0].Offset = 0
			s.do(&Change{History: "a", Put: &row, Off: second})
			s.do(&Change{History: "a", Serial: 3, Clear: true})
			s.serial++
		}
		s.drafts, s.next = nil, 0
		s.put("a", model.NumberKey(3), 4096)
		s.close()
		s.withoutCatalog()
		if done, err := Repair(s.o, Mending{Rebuild: true, Unproven: true}); err != nil || done.Rebuilt.Found != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		s.sound()
	}
}

// slots returns the plain bytes of all checkpoints.
func slots(t *testing.T, o Options) map[string][]byte {
	t.Helper()
	all, _ := wholes(t, o)
	found := map[string][]byte{}
	for _, x := range all {
		found[x.history+"/"+x.row.Key.String()] = x.slot
	}
	return found
}

// A backup has each object once, and the same plain bytes.
func TestBackupOfDifferences(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		s := related(t)
		if dropped {
			s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: 1, Drop: true})
		}
		s.close()
		b, err := NewBackup(s.o, Options{FS: s.fs, Dir: backupDir})
		if err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			if done, err = b.Step(func() bool { return false }); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		o := s.o
		o.Dir = backupDir
		v, err := Read(s.o)
		if err != nil {
			t.Fatal(err)
		}
		used := int64(0)
		for from, end := range v.Occupied() {
			used += end - from
		}
		if got := b.Done(); got.Bytes != used || got.Damaged > 0 || got.Checkpoints != len(s.rows()) {
			t.Errorf("%+v: %d bytes are in use in the store", got, used)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		if sum := checkOf(t, o, Scope{Data: true}); len(sum.Faults) > 0 || sum.Checkpoints != len(s.rows()) {
			t.Errorf("%+v", sum)
		}
		if want, got := slots(t, s.o), slots(t, o); !maps.EqualFunc(got, want, bytes.Equal) {
			t.Error("the copy has other bytes")
		}
	}
}

// A backup counts each checkpoint that needs a damaged object, and copies the others.
func TestBackupOfDamagedDifferences(t *testing.T) {
	s := related(t)
	s.close()
	s.flipAt(s.objectsOf(2)[2][1].from)
	b, err := NewBackup(s.o, Options{FS: s.fs, Dir: backupDir})
	if err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		if done, err = b.Step(func() bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Done(); got.Checkpoints != 4 || got.Damaged != 2 {
		t.Errorf("%+v", got)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	o := s.o
	o.Dir = backupDir
	if sum := checkOf(t, o, Scope{Data: true}); sum.Damaged != 2 {
		t.Errorf("%+v", sum)
	}
}

// An object that many checkpoints need and that is damaged is copied a second time, and no more; what is intact is copied once.
func TestABackupCopiesADamagedObjectTwice(t *testing.T) {
	s := differenceSite(t)
	for key := range int64(12) {
		s.put("a", model.NumberKey(key+1), 600<<10+17)
	}
	s.close()
	damaged := s.objectsOf(1)[1]
	if s.objectsOf(12)[1] != damaged {
		t.Fatal("the last checkpoint does not need the first object")
	}
	s.flipAt(damaged[1].from)
	b, err := NewBackup(s.o, Options{FS: s.fs, Dir: backupDir})
	if err != nil {
		t.Fatal(err)
	}
	used := int64(0)
	for from, end := range b.from.Occupied() {
		used += end - from
	}
	for done := false; !done; {
		if done, err = b.Step(func() bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Done(); got.Checkpoints != 12 || got.Damaged != 12 {
		t.Errorf("%+v", got)
	}
	if most := used + blocks(damaged[1].end-damaged[0].from); b.next > most {
		t.Errorf("it took %d bytes of the space, more than %d", b.next, most)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// Goroutines that verify share a checkpoint of which an object has few bytes.
func TestPiecesOfASmallObjectAreShared(t *testing.T) {
	const region = 3*pieceLeaves*checksum.LeafBytes + 1
	row := catalog.Row{Difference: &model.Difference{}, Sums: []uint64{0}, Leaves: make([]uint64, checksum.Leaves(region))}
	row.Layout = &catalog.Layout{Layout: model.Layout{Spans: []model.Span{{Bytes: region}}, Slot: region}}
	c := &Check{cut: cutter{row: &row, lies: run{0, segment.Block}, ends: 1 << 40}}
	for i := range 4 {
		if got := c.takeSome(nil); len(got) != 1 || got[0].from != i*pieceLeaves {
			t.Errorf("%d: %d pieces: %+v", i, len(got), got)
		}
	}
	if got := c.takeSome(nil); len(got) != 0 {
		t.Errorf("there are more pieces: %+v", got)
	}
}

// Differences without checksums are verified by the hashes in their containers and metadata.
func TestDifferencesWithoutChecksums(t *testing.T) {
	s := related(t)
	row := s.rows()["a/3"]
	row.Sums, row.Leaves, row.Serial = nil, nil, s.serial+1
	row.Key = model.NumberKey(9)
	i := identity{segment: s.o.SegmentBytes}
	claims, _ := i.claims(&row)
	for k := range row.Difference.Sources {
		row.Difference.Sources[k].Offset = claims[k+1].from
	}
	s.do(&Change{History: "a", Key: model.NumberKey(3), Serial: 3, Drop: true})
	s.do(&Change{History: "a", Put: &row, Off: claims[0].from})
	s.close()
	s.sound()
	s.flipAt(claims[0].from)
	if sum := s.check(Scope{Data: true}); sum.Damaged != 1 || sum.Faults[0].Row.Key != model.NumberKey(9) || sum.Unsummed != 1 {
		t.Errorf("%+v", sum)
	}
	s.flipAt(claims[0].from)
	s.flipAt(claims[2].from + claims[2].data)
	if sum := s.check(Scope{Data: true}); sum.Damaged != 2 {
		t.Errorf("%+v", sum)
	}
}

// Bytes that another object of the same lineage would have are found by the checksums.
func TestAnotherObjectInTheRoomOfASource(t *testing.T) {
	s := related(t)
	s.close()
	objects := s.objectsOf(3)
	other := s.copied()
	other.open()
	p := make([]byte, objects[2][1].end-objects[2][0].from)
	if err := other.d.Space().Read(objects[2][0].from, p); err != nil {
		t.Fatal(err)
	}
	p = append(p, make([]byte, -len(p)&4095)...)
	if err := other.d.Space().Write(objects[3][0].from, p[:min(len(p), int(segment.Blocks(objects[3][1].end-objects[3][0].from)))]); err != nil {
		t.Fatal(err)
	}
	other.close()
	sum := other.check(Scope{Data: true})
	if hit := hitBy(t, other, sum, Changed, run{objects[3][0].from, objects[3][1].end}, "its object: "); !slices.Equal(hit, []int64{3}) {
		t.Errorf("%v", sum.Faults)
	}
}

// Each bit of the objects of a small store is one on which the plain bytes depend, and a check finds it; or a reader ignores it, and so does the check.
func TestEveryBitOfDifferences(t *testing.T) {
	s := differenceSite(t)
	for key := range int64(3) {
		s.put("a", model.NumberKey(key+1), 900, 0, 700)
	}
	s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: 1, Drop: true})
	s.close()
	v, err := Read(s.o)
	if err != nil {
		t.Fatal(err)
	}
	lies := map[string]held{}
	rooms := map[int64]bool{}
	id, _ := v.State().History("a")
	v.State().Each(id, func(row catalog.Row) bool {
		h := held{c: v.contents, row: row, bytes: map[int64]byte{}}
		claims, _ := v.identity.claims(&row)
		for _, c := range claims {
			p := make([]byte, c.data+c.meta)
			if err := v.Space().Read(c.from, p); err != nil {
				t.Fatal(err)
			}
			for k, b := range p {
				h.bytes[c.from+int64(k)], rooms[c.from+int64(k)] = b, true
			}
		}
		lies[row.Key.String()] = h
		return true
	})
	w, err := newWindow(v.Space())
	if err != nil {
		t.Fatal(err)
	}
	stride, counted, idle := int64(1), 0, 0
	if tenth() {
		stride = 7
	}
	for _, at := range slices.Sorted(maps.Keys(rooms)) {
		for bit := at % stride; bit < 8; bit += stride {
			name, off := s.lies(at)
			if err := flip(s.fs, filepath.Join(dir, name), off*8+bit); err != nil {
				t.Fatal(err)
			}
			var want []string
			for key, h := range lies {
				if h.counts(at, bit) {
					want = append(want, "a/"+key)
				}
			}
			slices.Sort(want)
			if found, err := v.damaged(w); err != nil || !slices.Equal(found, want) {
				t.Fatalf("byte %d, bit %d: %v are found, %v should be: %v", at, bit, found, want, err)
			}
			if counted++; len(want) == 0 {
				idle++
			}
			if err := flip(s.fs, filepath.Join(dir, name), off*8+bit); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d bits, on %d of which nothing depends", counted, idle)
	if len(lies) != 2 || counted < 1000 || idle > counted/4 {
		t.Errorf("%d bits of %d checkpoints, on %d of which nothing depends", counted, len(lies), idle)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// A piece's leaves that have no hashes are compared with the checksum of the region, and its reason names the objects.
func TestChecksumsThatDoNotFitADifference(t *testing.T) {
	s := related(t)
	row := s.rows()["a/2"]
	i := identity{segment: s.o.SegmentBytes}
	claims, _ := i.claims(&row)
	for k := range row.Difference.Sources {
		row.Difference.Sources[k].Offset = claims[k+1].from
	}
	row.Serial, row.Leaves = s.serial+1, nil
	row.Sums[0]++
	s.do(&Change{History: "a", Put: &row, Off: claims[0].from})
	s.close()
	sum := s.check(Scope{Data: true})
	if sum.Damaged != 1 || sum.Faults[0].Kind != Changed || sum.Faults[0].Row.Bytes != 600<<10+17 || sum.Faults[0].Row.Region != 0 ||
		sum.Faults[0].Why != mismatch+"; the objects with the numbers [1 2] of the lineage have them" {
		t.Errorf("%v", sum.Faults)
	}
}

// forgedMetadata is a record with a difference that was never written, in file 1: it claims so many bytes of metadata for its own object, and for a source.
func forgedMetadata(key, at, own, source int64) []byte {
	l := &catalog.Layout{ID: 77, Layout: model.Layout{Slot: 1 << 40, Spans: []model.Span{{Bytes: 1 << 40}}, Text: "forged"}}
	row := &catalog.Row{
		Key: model.NumberKey(key), Serial: uint64(key), Layout: l, Align: 64, Content: catalog.Difference, Extents: []catalog.Extent{{File: 1, Offset: at, Bytes: segment.Blocks(own)}},
		Difference: &model.Difference{Lineage: 7, Number: uint32(key), Meta: own, Sources: []model.Source{{Meta: source}}},
		Sources:    [][]catalog.Extent{{{File: 1, Offset: 2 << 30, Bytes: segment.Blocks(source)}}},
	}
	return forgedOf(row)
}

// A check of differences that claim long metadata takes little memory: one reader at a time has such, and none where the data files end before.
func TestLongMetadataTakeLittleMemory(t *testing.T) {
	o := real(t)
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Fatal(err)
	}
	o.SegmentBytes = 4 << 30
	d := mustOpen(t, o)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	const source = 1 << 30
	var records [][]byte
	for i := range int64(3) {
		records = append(records, forgedMetadata(i+1, i<<28, 5000, source))
	}
	records = append(records, forgedMetadata(4, 3500<<20, 80<<20, source))
	err := forged(records...)(o)
	if err == nil {
		err = os.WriteFile(dataFile(o, 1), nil, 0o600)
	}
	if err == nil {
		err = os.Truncate(dataFile(o, 1), front(madeWhole, o.SegmentBytes)+2<<30+source)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	var c *Check
	if err := bounded(t, func() error {
		if c, err = v.Check(Scope{Data: true}); err == nil {
			_, err = c.Step(func() bool { return false })
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	kinds := map[int64]Kind{}
	for _, f := range c.Summary().Faults {
		if f.Row != nil {
			kinds[f.Row.Key.Number] = f.Kind
		}
	}
	if !maps.Equal(kinds, map[int64]Kind{1: Changed, 2: Changed, 3: Changed, 4: Missing}) || c.longest == nil {
		t.Errorf("%v: %v", kinds, c.Summary().Faults)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}
