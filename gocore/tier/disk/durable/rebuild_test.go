package durable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// rows returns the entries of a store's catalog, without ids.
func (s *site) rows() map[string]catalog.Row {
	s.t.Helper()
	v, err := Read(s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]catalog.Row{}
	for _, h := range v.State().Histories() {
		v.State().Each(h.ID, func(row catalog.Row) bool {
			l := *row.Layout
			row.History, l.ID, row.Layout = 0, 0, &l
			all[h.Name+"/"+row.Key.String()] = row
			return true
		})
	}
	if err := v.Close(); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// has verifies that all of these rows are there, and no others unless more are allowed.
func (s *site) has(want map[string]catalog.Row, others bool) {
	s.t.Helper()
	got := s.rows()
	for name, row := range want {
		if !reflect.DeepEqual(got[name], row) {
			s.t.Errorf("%s is %+v, not %+v", name, got[name], row)
		}
	}
	if !others && len(got) != len(want) {
		s.t.Errorf("%d checkpoints, not %d", len(got), len(want))
	}
}

// keeps verifies that they are still there after a writer has opened and closed the store.
func (s *site) keeps(want map[string]catalog.Row, others bool) {
	s.t.Helper()
	s.open()
	s.close()
	s.has(want, others)
}

// sound verifies that nothing is damaged.
func (s *site) sound() {
	s.t.Helper()
	if sum := s.check(Scope{Data: true}); len(sum.Faults) > 0 {
		s.t.Error(sum.Faults)
	}
}

// rebuild rebuilds the catalog from the data files.
func (s *site) rebuild() Repaired {
	s.t.Helper()
	done, err := Repair(s.o, Mending{Rebuild: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return done
}

// withoutCatalog removes the log.
func (s *site) withoutCatalog() {
	s.t.Helper()
	for _, name := range s.names("catalog-") {
		s.remove(name)
	}
}

// varied is a store with checkpoints of all kinds: without bytes, of several regions, with leaf hashes, over several data files, replaced ones, with a text
// as key, raw, encoded, and differences.
func varied(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	lineage := newDrafts(3, difference.Runs, 1<<20)
	lineage.compression = codec.S2
	for i := range int64(40) {
		s.part, s.compression, s.drafts = i%2*model.PartGrain, compressions[i/4%6], nil
		if i%4 == 3 {
			s.drafts = lineage
		}
		s.put("a", model.NumberKey(i), 100*i, 5000)
	}
	s.put("a", model.NumberKey(3), 12_000) // again
	s.put("", model.TextKey("three files, a difference"), 2_500_000, 1, 300_000)
	s.put("", model.TextKey("no bytes, a difference"), 0, 0)
	s.drafts = nil
	s.put("", model.TextKey("empty"))
	s.put("", model.TextKey("three files, encoded"), 2_500_000, 1, 300_000)
	s.part = 0
	s.put("", model.TextKey("no bytes"), 0, 0)
	s.put("b", model.TextKey("three files"), 2_500_000, 1, 300_000)
	s.put("b", model.NumberKey(-1), 900_000)
	s.close()
	return s
}

func TestACatalogIsRebuilt(t *testing.T) {
	damage := map[string]func(*site){
		"no catalog":        (*site).withoutCatalog,
		"a damaged catalog": func(s *site) { s.flip(s.names("catalog-")[0], 300) },
		"an empty catalog": func(s *site) {
			names := s.names("catalog-")
			s.withoutCatalog()
			if err := writeBlocks(&s.o, names[0], nil); err != nil {
				s.t.Fatal(err)
			}
		},
		"nor an identity": func(s *site) {
			s.withoutCatalog()
			s.remove(identityName)
			s.remove(copyName)
		},
		"nor a right identity": func(s *site) {
			s.withoutCatalog()
			for _, c := range identityCopies {
				s.flip(c.file, c.at+20)
			}
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			s := varied(t)
			want := s.rows()
			do(s)
			identity := strings.Contains(name, "identity")
			done := s.rebuild()
			if done.Identity != identity || !done.Catalog || done.Rebuilt.Found == 0 || done.Rebuilt.Unproven != 0 {
				t.Errorf("%+v", done)
			}
			s.has(want, false)
			s.sound()
			if again := s.rebuild(); again != (Repaired{}) {
				t.Errorf("there was something left: %+v", again)
			}
			s.open()
			s.put("c", model.NumberKey(1), 100)
			if s.d.State().MaxSerial() != s.serial {
				t.Error("serials begin anew")
			}
			s.close()
			s.sound()
			if got := len(s.rows()); got != len(want)+1 {
				t.Errorf("%d checkpoints", got)
			}
		})
	}
}

// Intact parts stay as they are: a dropped checkpoint does not come back.
func TestAWholeCatalogIsNotRebuilt(t *testing.T) {
	s := varied(t)
	s.open()
	s.do(&Change{History: "a", Key: model.NumberKey(7), Serial: s.serial, Drop: true})
	s.close()
	want := s.rows()
	if done := s.rebuild(); done != (Repaired{}) {
		t.Errorf("%+v", done)
	}
	s.has(want, false)
}

// A dropped checkpoint comes back only while its range was not reused. The later checkpoint in the range wins, even if the bytes are equal and its serial
// is smaller.
func TestWhatWasWrittenOverDoesNotComeBack(t *testing.T) {
	s := newSite(t)
	s.serial = 10
	first := s.put("a", model.NumberKey(1))
	second := s.put("a", model.NumberKey(2), 9000)
	s.put("a", model.NumberKey(3), 9000)
	for key := range int64(3) {
		s.do(&Change{History: "a", Key: model.NumberKey(key + 1), Serial: s.serial, Drop: true})
	}
	late := s.serial
	s.serial = 0 // captured earlier, and written now
	s.next = first
	s.put("b", model.NumberKey(1))
	s.next = second
	s.serial = late
	s.put("b", model.NumberKey(2), 1000)
	s.close()
	want := s.rows()
	s.withoutCatalog()
	done := s.rebuild()
	s.has(want, true)
	if got := s.rows(); len(got) != 3 || got["a/3"].Serial != 13 || done.Rebuilt.Found != 3 {
		t.Errorf("%+v, %v", done, got)
	}
	s.sound()
}

// The bytes decide between two versions of a key: the newer one counts if its bytes are intact, otherwise the older one.
func TestTheBytesDecide(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 5000)
	s.put("a", model.NumberKey(2), 5000)
	newer := s.put("a", model.NumberKey(1), 6000)
	s.put("a", model.NumberKey(2), 6000)
	damaged := s.put("a", model.NumberKey(3), 6000)
	s.close()
	s.flipAt(newer + 5999)
	s.flipAt(damaged)
	s.withoutCatalog()
	done := s.rebuild()
	got := s.rows()
	if len(got) != 2 || got["a/1"].Serial != 1 || got["a/2"].Serial != 4 || done.Rebuilt != (Rebuilt{Found: 2, Changed: 2}) {
		t.Errorf("%+v, %v", done, got)
	}
	s.sound()
}

// Checkpoints without checksums cannot be verified: they come back only on request.
func TestUnprovenCheckpoints(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 5000)
	at := s.next
	if err := s.d.Space().Write(at, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	l := &catalog.Layout{Layout: model.Layout{Slot: 4096, Spans: []model.Span{{Bytes: 4096}}}}
	s.do(&Change{History: "a", Put: &catalog.Row{Key: model.NumberKey(2), Serial: 9, Layout: l, Align: 64}, Off: at})
	s.close()
	want := s.rows()
	s.withoutCatalog()
	without := s.image()
	if done := s.rebuild(); done.Rebuilt != (Rebuilt{Found: 1, Unproven: 1}) || len(s.rows()) != 1 {
		t.Errorf("%+v", done)
	}
	s.fs = without
	s.o.FS = without
	done, err := Repair(s.o, Mending{Rebuild: true, Unproven: true})
	if err != nil || done.Rebuilt != (Rebuilt{Found: 2}) {
		t.Errorf("%+v, %v", done, err)
	}
	s.has(want, false)
}

// copied is the store on a copy of the disk, as a process that dies now leaves it.
func (s *site) copied() *site {
	to := &site{t: s.t, fs: s.image(), o: s.o}
	to.o.FS, to.o.Land, to.o.Guard = to.fs, nil, nil
	return to
}

// image is a copy of the disk.
func (s *site) image() *vfs.Mem { return s.fs.Crash(rand.New(rand.NewPCG(1, 1)), 1) }

// Each block of every index, zeroed or unreadable, costs the checkpoints of the frames in it. A check names the file, and a repair rewrites the index.
func TestABlockOfAnIndex(t *testing.T) {
	s := varied(t)
	want := s.rows()
	f, err := readIdentity(&s.o)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, name := range s.names("data-") {
		text := s.read(name)
		for at := int64(segment.HeadBytes); at < f.front(); at += segment.Block {
			block := text[at : at+segment.Block]
			if !bytes.Contains(block, []byte("VELOCIDX")) {
				continue
			}
			for _, unreadable := range []bool{false, true} {
				h := s.copied()
				if unreadable {
					h.o.FS = vfs.NewFaulty(h.fs, &vfs.Rule{Ops: vfs.OpRead, Name: name, From: at, To: at + segment.Block, Err: unix.EIO})
				} else {
					(&hurt{t: t, m: h.fs}).write(name, at, make([]byte, segment.Block))
				}
				h.has(want, false)
				faults := h.check(Scope{Data: true}).Faults
				if len(faults) != 1 || faults[0].Kind != Index || faults[0].File != name || !faults[0].Harmless {
					t.Fatalf("%s, block at %d: %v", name, at, faults)
				}
				if !unreadable {
					mended := h.copied()
					if done, err := Repair(mended.o, Mending{}); err != nil || done != (Repaired{Indexes: 1}) {
						t.Fatalf("%+v, %v", done, err)
					}
					mended.sound()
					mended.withoutCatalog()
					mended.rebuild()
					mended.has(want, false)
				}
				h.withoutCatalog()
				h.rebuild()
				got := h.rows()
				for name, row := range got {
					if had := want[name]; !reflect.DeepEqual(row.Extents, had.Extents) && name != "a/3" {
						t.Errorf("%s lies at %v, not %v", name, row.Extents, had.Extents)
					}
				}
				lost += len(want) - len(got)
			}
		}
	}
	if lost == 0 {
		t.Error("nothing was lost: the blocks do not count")
	}
}

// An index is rewritten when the half in use is full, and a reopened store appends to it. Whenever the catalog is lost, all current checkpoints are found.
func TestAnIndexIsWrittenAnew(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMem(64 << 20)}
	s.o = Options{FS: s.fs, Dir: dir, Capacity: 32 << 20, SegmentBytes: 256 << 10, Direct: true, prompt: true}
	s.open()
	latest, turns := uint64(0), 0
	r := rand.New(rand.NewPCG(3, 3))
	places := map[int64]int64{} // by key
	for step := range 1500 {
		key := r.Int64N(40)
		at, again := places[key]
		if again {
			s.do(&Change{History: "a", Key: model.NumberKey(key), Serial: s.serial, Drop: true})
			s.next = at
		} else {
			s.next = key * 3 * catalog.Block
		}
		places[key] = s.put("a", model.NumberKey(key), r.Int64N(3*catalog.Block))
		if step%97 == 0 {
			s.close()
			s.open()
		}
		if i := s.d.indexQueue.of[1]; i != nil && i.generation != latest {
			latest = i.generation
			turns++
		}
		if step%211 == 210 {
			h := s.copied()
			want := h.rows()
			h.withoutCatalog()
			h.rebuild()
			h.has(want, false)
			h.sound()
		}
	}
	if turns < 5 {
		t.Errorf("%d generations", turns)
	}
	s.close()
	s.sound()
}

// If an index cannot be written, checkpoints are durable all the same. A check reports it, and once it can be written again it gets all current entries.
func TestAnIndexThatCannotBeWritten(t *testing.T) {
	for name, errno := range map[string]error{"no space": unix.ENOSPC, "an error": unix.EIO} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			mem := s.fs
			s.close()
			rule := &vfs.Rule{Ops: vfs.OpWrite, Name: segment.FileName(1), From: segment.HeadBytes, To: siteFront, Err: errno}
			s.o.FS, s.o.prompt = vfs.NewFaulty(mem, rule), true
			s.open()
			for key := range int64(3) {
				s.put("a", model.NumberKey(key), 10_000)
			}
			h := s.copied()
			h.open() // the writer has died: the next one adds the missing entries
			h.close()
			h.sound()
			s.close()
			if sum := s.check(Scope{Data: true}); len(sum.Faults) != 1 || sum.Faults[0].Kind != Index {
				t.Error(sum.Faults)
			}
			rule.Disable()
			h = s.copied()
			if done, err := Repair(h.o, Mending{}); err != nil || done != (Repaired{Indexes: 1}) {
				t.Errorf("%+v, %v", done, err)
			}
			h.sound()
			rule.Enable()
			s.open()
			s.put("a", model.NumberKey(5), 10_000)
			rule.Disable()
			for key := range int64(10) {
				s.put("a", model.NumberKey(10+key), 10_000)
			}
			s.close()
			s.sound()
			want := s.rows()
			s.withoutCatalog()
			s.rebuild()
			s.has(want, false)
		})
	}
}

// An index takes no room that is reserved for the catalog.
func TestAnIndexLeavesTheDiskWhatIsToBeLeft(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(0), 1000)
	number := int64(1) // its file does not exist yet
	free, err := s.fs.Free(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.d.Space().Leave(free - segment.IndexPiece + 1)
	if err := s.d.Space().WriteIndex(number, 0, make([]byte, segment.IndexPiece)); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	s.close()
}

// Data files of two stores in one directory do not identify the store.
func TestAnIdentityIsNotGuessed(t *testing.T) {
	s, other := varied(t), varied(t)
	s.take(other, segment.FileName(2), segment.FileName(2))
	s.remove(identityName)
	s.remove(copyName)
	if _, err := Repair(s.o, Mending{Rebuild: true}); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoStore) || !strings.Contains(fmt.Sprint(err), "2 stores") {
		t.Error(err)
	}
	if names := s.names("velocpy"); len(names) > 0 {
		t.Error(names)
	}
}

// Stores whose data files have no indexes cannot be rebuilt, and the result shows that.
func TestNothingIsRebuiltWithoutIndexes(t *testing.T) {
	for _, made := range []made{madeBare, madeHeads} {
		s := filledSite(t, 0, made)
		s.sound()
		want := s.rows()
		s.flip(s.names("catalog-")[0], 300)
		done := s.rebuild()
		if done.Rebuilt != (Rebuilt{}) || !done.Catalog || len(s.rows()) >= len(want) {
			t.Errorf("%+v", done)
		}
	}
}

// A row that the damaged catalog still has, but whose range was reused according to an index, was dropped in the damaged part.
func TestAStaleRowIsNoReasonToLoseItsSuccessor(t *testing.T) {
	s := newSiteOf(t, madeIndexed) // each commit is a batch of the catalog
	at := s.put("a", model.NumberKey(1), 5000)
	for key := range int64(5) {
		s.put("x", model.NumberKey(key), 100)
	}
	s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: s.serial, Drop: true})
	end := s.next
	s.next = at
	s.put("b", model.NumberKey(1), 5000)
	s.next = end
	s.put("x", model.NumberKey(9), 100)
	s.close()
	want := s.rows()
	name := s.names("catalog-")[0]
	text := s.read(name)
	h := s.copied()
	batches := 0
	for _, f := range framesOf(text) { // the drop, and the put in its range, are in the two batches before the last
		if f.kind == batchKind {
			batches++
			if batches == 7 || batches == 8 {
				h.flip(name, f.from+41)
			}
		}
	}
	if got := h.rows(); got["a/1"].Serial == 0 || got["b/1"].Serial != 0 {
		t.Fatalf("%d batches, %v", batches, got)
	}
	h.rebuild()
	h.has(want, false)
	h.sound()
}

// Collect closes the catalog, so it first adds the entries that a writer that died had deferred.
func TestCollectingSaysWhatADeadWriterHasPutOff(t *testing.T) {
	h := killed(t)
	if _, err := Collect(h.o, false); err != nil {
		t.Fatal(err)
	}
	if n := h.lacks(); n > 0 {
		t.Errorf("%d are not said", n)
	}
	h.sound()
}
