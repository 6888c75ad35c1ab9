package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// fill writes five checkpoints, which differ from those of stores with another first serial, and drops one.
func (s *site) fill(first uint64) {
	s.t.Helper()
	s.serial = first
	for key := range int64(5) {
		s.put("a", model.NumberKey(key), 700_000)
	}
	s.do(&Change{History: "a", Key: model.NumberKey(4), Serial: first + 5, Drop: true})
	s.close()
}

// filledSite is a store of four checkpoints in data files 1 to 3, and an unused file 4.
func filledSite(t *testing.T, first uint64, made made) *site {
	t.Helper()
	s := newSiteOf(t, made)
	s.fill(first)
	return s
}

// take replaces a file by one of another store.
func (s *site) take(from *site, theirs, ours string) {
	s.t.Helper()
	text := from.read(theirs)
	if err := removeAny(&s.o, ours); err != nil {
		s.t.Fatal(err)
	}
	if err := writeBlocks(&s.o, ours, text); err != nil {
		s.t.Fatal(err)
	}
}

// readAll reads all checkpoints without verifying checksums: a read that is not refused must give the bytes that other wrote.
func (s *site) readAll() (refused []error, all [][]byte) {
	s.t.Helper()
	v, err := Read(s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	id, _ := v.State().History("a")
	for key := range int64(4) {
		row, _ := v.State().Find(id, model.NumberKey(key))
		off, n, err := v.Place(&row)
		p := make([]byte, n)
		if err == nil {
			err = v.Space().Holds(off, n)
		}
		if err == nil {
			err = v.Space().Read(off, p)
		}
		if err == nil {
			err = v.Space().Proves(off, n)
		}
		if err != nil {
			refused = append(refused, err)
			p = nil
		}
		all = append(all, p)
	}
	return refused, all
}

// A data file of another store or of another number is refused: it is neither read nor written to.
func TestDataFilesOfAnotherStore(t *testing.T) {
	for name, c := range map[string]struct {
		theirs  int
		ours    int
		refused int // checkpoints in the file
		same    bool
	}{
		"the same number":   {1, 1, 2, false},
		"another number":    {2, 1, 2, false},
		"of this store":     {2, 1, 2, true},
		"the last one":      {3, 3, 2, false},
		"in an unused file": {1, 4, 0, false},
		"beyond all":        {1, 77, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, other := filledSite(t, 0, madeWhole), filledSite(t, 1000, madeWhole)
			if c.same {
				other = s
			}
			_, whole := s.readAll()
			ours := segment.FileName(uint64(c.ours))
			s.take(other, segment.FileName(uint64(c.theirs)), ours)
			before := s.read(ours)
			refused, left := s.readAll()
			for key, p := range left {
				if p != nil && !bytes.Equal(p, whole[key]) {
					t.Errorf("checkpoint %d has other bytes", key)
				}
			}
			for _, err := range refused {
				if !errors.Is(err, segment.ErrForeign) {
					t.Error(err)
				}
			}
			if len(refused) != c.refused {
				t.Errorf("%d are refused: %v", len(refused), refused)
			}
			s.namesForeign(ours, c.refused)
			s.refusesWriters(ours)
			if !bytes.Equal(s.read(ours), before) {
				t.Error("the file was changed")
			}
		})
	}
}

// namesForeign looks for the file among the faults of a check.
func (s *site) namesForeign(file string, damaged int) {
	s.t.Helper()
	for _, scope := range []Scope{{}, {Data: true}} {
		sum := s.check(scope)
		missing := map[uint64]bool{}
		named := 0
		for _, f := range sum.Faults {
			switch {
			case f.Kind == Foreign && f.File == file && f.Harmless == (damaged == 0):
				named++
			case f.Kind == Missing && f.File == file && strings.Contains(f.Why, "elsewhere"):
				missing[f.Row.Serial] = true
			default:
				s.t.Errorf("%+v", f)
			}
		}
		for _, unused := range sum.Unused {
			if unused.File == file {
				s.t.Errorf("%s is called unused", file)
			}
		}
		if named != 1 || sum.Damaged != damaged || len(missing) != damaged {
			s.t.Errorf("%v", sum.Faults)
		}
	}
}

// refusesWriters opens the store in every way that changes it.
func (s *site) refusesWriters(file string) {
	s.t.Helper()
	refuses := func(err error) {
		s.t.Helper()
		if !errors.Is(err, ErrDamaged) || !errors.Is(err, segment.ErrForeign) || !strings.Contains(err.Error(), "move "+file) {
			s.t.Errorf("not refused: %v", err)
		}
	}
	_, err := Open(s.o)
	refuses(err)
	for _, dry := range []bool{true, false} {
		_, err = Collect(s.o, dry)
		refuses(err)
	}
	if done, err := Repair(s.o, Mending{}); err != nil || done.Heads != 0 {
		s.t.Errorf("%+v, %v", done, err)
	}
	o := s.o
	o.Repair = true
	d := mustOpen(s.t, o)
	number, _ := segment.FileNumber(file)
	d.Space().Grow(int64(number) << 20)
	if err := d.Space().Write(int64(number-1)<<20, make([]byte, 4096)); !errors.Is(err, segment.ErrForeign) {
		s.t.Errorf("written: %v", err)
	}
	if err := d.Close(); err != nil {
		s.t.Error(err)
	}
}

// Checkpoints in the range of a foreign file are dropped on request, and the store works again once the file was moved away.
func TestAStoreWithoutTheForeignFile(t *testing.T) {
	s, other := filledSite(t, 0, madeWhole), filledSite(t, 1000, madeWhole)
	s.take(other, segment.FileName(1), segment.FileName(1))
	victims := []Victim{{"a", model.NumberKey(0), 1}, {"a", model.NumberKey(1), 2}, {"a", model.NumberKey(2), 3}}
	if done, err := Repair(s.o, Mending{Drop: victims}); err != nil || done != (Repaired{Dropped: 2, Spared: 1}) {
		t.Fatalf("%+v, %v", done, err)
	}
	s.remove(segment.FileName(1))
	s.open()
	s.serial, s.next = 100, 0
	s.put("a", model.NumberKey(9), 900_000)
	s.close()
	if sum := s.check(Scope{Data: true}); sum.Checkpoints != 3 || len(sum.Faults) > 0 {
		t.Errorf("%+v", sum)
	}
}

// A damaged head does no harm: checksums prove the bytes of the segment. A check reports it, and a repair rewrites it. Without checksums nothing is proved.
func TestDamagedHeads(t *testing.T) {
	file := segment.FileName(1)
	for name, hurt := range map[string]func(s *site, fs *vfs.Faulty){
		"flipped":  func(s *site, _ *vfs.Faulty) { s.flip(file, 20) },
		"zero":     func(s *site, _ *vfs.Faulty) { (&hurt{t: s.t, m: s.fs}).write(file, 0, make([]byte, segment.HeadBytes)) },
		"its rest": func(s *site, _ *vfs.Faulty) { s.flip(file, 4000) },
		"unreadable": func(s *site, fs *vfs.Faulty) {
			fs.Add(&vfs.Rule{Ops: vfs.OpRead, Name: file, To: segment.HeadBytes, Err: unix.EIO})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := filledSite(t, 0, madeWhole)
			o := s.o
			faulty := vfs.NewFaulty(s.fs)
			s.o.FS = faulty
			hurt(s, faulty)
			sum := s.check(Scope{Data: true})
			if len(sum.Faults) != 1 || sum.Faults[0].Kind != Heading || sum.Faults[0].File != file || !sum.Faults[0].Harmless || sum.Damaged != 0 {
				t.Errorf("%v", sum.Faults)
			}
			unproved, _ := s.readAll()
			if want := 2; name == "unreadable" && len(unproved) > 0 || name != "unreadable" && len(unproved) != want {
				t.Errorf("%v", unproved)
			}
			s.open() // a writer continues
			s.close()
			if done, err := Repair(s.o, Mending{}); err != nil || done != (Repaired{Heads: 1}) {
				t.Errorf("%+v, %v", done, err)
			}
			s.o = o
			if sum := s.check(Scope{Data: true}); len(sum.Faults) > 0 {
				t.Errorf("%v", sum.Faults)
			}
		})
	}
}

// The data files of stores of version 0.1 have no heads, and never get any.
func TestStoresWithoutHeads(t *testing.T) {
	s := filledSite(t, 0, madeBare)
	if f, err := readIdentity(&s.o); err != nil || f.heads {
		t.Fatalf("%+v, %v", f, err)
	}
	s.o.made = madeWhole
	s.open()
	s.serial, s.next = 100, 8<<20
	s.put("a", model.NumberKey(9), 900_000)
	s.close()
	for _, name := range s.names("data-") {
		if bytes.Contains(s.read(name)[:64], []byte("VELOCDAT")) {
			t.Errorf("%s has a head", name)
		}
	}
	if _, err := Collect(s.o, false); err != nil {
		t.Error(err)
	}
	if sum := s.check(Scope{Data: true}); sum.Checkpoints != 5 || len(sum.Faults) > 0 {
		t.Errorf("%+v", sum)
	}
	if refused, _ := s.readAll(); len(refused) > 0 {
		t.Error(refused)
	}
	backup := Options{FS: s.fs, Dir: "/backup"}
	b, err := NewBackup(s.o, backup)
	if err == nil {
		_, err = b.Step(func() bool { return false })
		err = errors.Join(err, b.Close())
	}
	if f, again := readIdentity(&backup); err != nil || again != nil || !f.heads {
		t.Errorf("%+v, %v, %v", f, err, again)
	}
	if sum := checkOf(t, backup, Scope{Data: true}); sum.Checkpoints != 5 || len(sum.Faults) > 0 {
		t.Errorf("%+v", sum)
	}
}

// A data file of a store without heads that replaces one of this store is not taken for this store's if no checksum can tell.
func TestDataFilesOfAStoreWithoutHeads(t *testing.T) {
	s, old := filledSite(t, 0, madeWhole), filledSite(t, 1000, madeBare)
	_, whole := s.readAll()
	s.take(old, segment.FileName(1), segment.FileName(1))
	refused, left := s.readAll()
	for key, p := range left {
		if p != nil && !bytes.Equal(p, whole[key]) {
			t.Errorf("checkpoint %d has other bytes", key)
		}
	}
	if len(refused) != 2 {
		t.Error(refused)
	}
}

// A name that is not a file does not keep a check from reporting on the rest.
func TestADirectoryInPlaceOfADataFile(t *testing.T) {
	s := filledSite(t, 0, madeWhole)
	s.remove(segment.FileName(3))
	if err := s.fs.MkdirAll(dir + "/" + segment.FileName(3)); err != nil {
		t.Fatal(err)
	}
	if sum := s.check(Scope{Data: true}); sum.Damaged != 2 {
		t.Errorf("%v", sum.Faults)
	}
}

// A data file whose head cannot be read is not removed: it may be another store's.
func TestADataFileThatCannotBeLookedAt(t *testing.T) {
	s, other := filledSite(t, 0, madeWhole), filledSite(t, 1000, madeWhole)
	unused := segment.FileName(9)
	s.take(other, segment.FileName(1), unused)
	theirs := s.read(unused)
	for _, err := range []error{unix.EACCES, unix.EMFILE, unix.EIO} {
		o := s.o
		o.FS = vfs.NewFaulty(s.fs, &vfs.Rule{Ops: vfs.OpOpen, Name: unused, Err: err})
		o.Repair = true
		if d, err := Open(o); err == nil {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(s.read(unused), theirs) {
			t.Fatalf("%v: it is gone", err)
		}
	}
}

// An unknown feature is refused.
func TestFeaturesOfLaterVersions(t *testing.T) {
	i := madeWhole.identity(1 << 20)
	p := i.bytes()
	if got, err := parseIdentity(p); err != nil || got != i {
		t.Errorf("%+v, %v", got, err)
	}
	for at, value := range map[int]byte{40: 15, 41: 1, 47: 128} {
		p := i.bytes()
		p[at] = value
		binary.LittleEndian.PutUint64(p[48:], xxh3.Hash(p[:48]))
		if _, err := parseIdentity(p); !errors.Is(err, ErrVersion) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

// The file that the row of a checkpoint without bytes refers to is there after a loss of power, with its head, although nothing was written to it.
func TestAnEmptyCheckpointHasAFile(t *testing.T) {
	raw := &catalog.Row{Layout: version{}.layout()}
	gap := &catalog.Row{ // a slot without regions
		Layout: &catalog.Layout{Layout: model.Layout{Slot: 5000}}, Content: catalog.Encoded, Encoding: &model.Encoding{Part: model.PartGrain},
	}
	for i, made := range []made{madeWhole, madeIndexed, madeHeads, madeWhole} {
		disk := vfs.NewMem(4 << 20)
		o := small(disk)
		o.made, o.prompt = made, true
		d := mustOpen(t, o)
		row := *raw
		if i == 3 {
			row = *gap
		}
		row.Key, row.Serial, row.Align = model.NumberKey(1), 1, 64
		if err := d.await(&Change{History: "h", Put: &row}); err != nil {
			t.Fatal(err)
		}
		left := small(disk.Crash(rand.New(rand.NewPCG(1, 1)), 0))
		left.made = made
		again := mustOpen(t, left)
		if err := errors.Join(again.Space().Proves(0, 1), proved(again.contents)); err != nil {
			t.Errorf("%+v: %v", made, err)
		}
		if err := errors.Join(again.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	}
}
