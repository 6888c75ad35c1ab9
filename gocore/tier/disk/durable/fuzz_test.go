package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"velocpy/gocore/base/allocs"
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"

	"github.com/zeebo/xxh3"
)

var someStore = identity{store: [16]byte{7, 7, 7}, segment: 8192}

// An identity is accepted only if every bit is right. Of any two copies of a file, an intact one is found, or the error says why none is. The fuzzer gives
// the meaningful part of a copy, which can be given its right checksum.
func FuzzIdentity(f *testing.F) {
	f.Fuzz(func(t *testing.T, first, second []byte, seal uint8, length uint16) {
		p := append(copyOf(first, seal&1 != 0), copyOf(second, seal&2 != 0)...)
		if seal&4 != 0 {
			p = p[:min(len(p), int(length))]
		}
		m := vfs.NewMem(1 << 20)
		lay(t, m, identityName, p)
		whole := append(p, make([]byte, 2*identityCopy-len(p))...)
		a, wrong := parseIdentity(whole[:identityCopy])
		b, alsoWrong := parseIdentity(whole[identityCopy:])
		for i, err := range []error{wrong, alsoWrong} {
			if err != nil && !errors.Is(err, errIdentity) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			if is := []identity{a, b}[i]; err == nil && !bytes.Equal(is.bytes(), whole[i*identityCopy:][:identityCopy]) {
				t.Fatalf("copy %d is not what %+v is written as", i, is)
			}
		}
		got, err := readIdentity(&Options{FS: m, Dir: dir})
		switch {
		case errors.Is(wrong, ErrVersion) || errors.Is(alsoWrong, ErrVersion):
			if !errors.Is(err, ErrVersion) {
				t.Fatalf("%v, not a later version", err)
			}
		case wrong == nil && alsoWrong == nil && a != b, wrong != nil && alsoWrong != nil:
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("%v, not damage", err)
			}
		case err != nil || wrong == nil && got.identity != a || alsoWrong == nil && got.identity != b || (len(got.bad) > 0) != (wrong != nil || alsoWrong != nil):
			t.Fatalf("%+v, %v", got, err)
		}
		if n := m.OpenFiles(); n != 0 {
			t.Fatalf("%d files are still open", n)
		}
	})
}

func copyOf(meaning []byte, seal bool) []byte {
	p := make([]byte, identityCopy)
	copy(p[:64], meaning)
	if seal {
		sealIdentity(p)
	}
	return p
}

func sealIdentity(p []byte) { binary.LittleEndian.PutUint64(p[48:], xxh3.Hash(p[:48])) }

func lay(t testing.TB, m *vfs.Mem, name string, p []byte) {
	t.Helper()
	if err := m.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	file, err := m.Create(dir+"/"+name, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = file.WriteAt(p, 0); err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sample is a small store, with every version of a checkpoint that was ever in it.
type sample struct {
	names []string
	files map[string][]byte
	rows  map[string][]byte // catalog entry -> bytes
}

// makeSample writes it in three rounds, so that its log has several files.
var makeSample = sync.OnceValue(func() *sample {
	fs := vfs.NewMem(8 << 20)
	o, landed, is := watched(Options{FS: fs, Dir: dir, Capacity: 1 << 20, SegmentBytes: someStore.segment})
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	s := &sample{files: map[string][]byte{}, rows: map[string][]byte{}}
	check(fs.MkdirAll(dir))
	check(writeIdentity(&o, &someStore))
	serial := uint64(0)
	drafts := newDrafts(5, difference.Runs, 64<<10)
	for round := range int64(3) {
		d, err := Open(o)
		check(err)
		is(d)
		for key := range int64(3) {
			serial++
			off, p := int64(serial-1)*8192, pattern(3000*key+100+round, byte(serial))
			if serial%4 == 3 { // the second one needs the object of the first one
				p = slices.Concat(pattern(100, byte(serial)), pattern(6000, 3))
				check(drafts.put(d, landed, key*(round+1), serial, off, p))
			} else {
				check(putAs(d, landed, key*(round+1), serial, off, p, serial%2 == 0, compressions[serial/2%6]))
			}
			for _, row := range rowsOf(d.State()) {
				if row.Serial == serial {
					s.rows[said(&row)] = p
				}
			}
		}
		if round == 1 {
			d.Commit(&Change{History: "h", Drop: true, Key: model.NumberKey(0), Serial: serial})
			<-landed
			d.Commit(&Change{History: "h", Retention: &model.Retention{Last: 2}})
			<-landed
		}
		check(d.Close())
	}
	names, err := fs.List(dir)
	check(err)
	for _, name := range names {
		file, err := fs.Open(dir+"/"+name, false, false)
		check(err)
		size, err := file.Size()
		check(err)
		p := make([]byte, size)
		_, err = file.ReadAt(p, 0)
		check(errors.Join(err, file.Close()))
		if name != lockName {
			s.names, s.files[name] = append(s.names, name), p
		}
	}
	return s
})

func rowsOf(s *catalog.State) (rows []catalog.Row) {
	for _, h := range s.Histories() {
		s.Each(h.ID, func(row catalog.Row) bool {
			rows = append(rows, row)
			return true
		})
	}
	return rows
}

// said is the catalog's entry of a checkpoint.
func said(row *catalog.Row) string {
	l := *row.Layout
	r := *row
	r.Layout, r.History, l.ID = nil, 0, 0 // a writer chooses ids freely
	e, d := model.Encoding{}, model.Difference{}
	if r.Encoding != nil {
		e, r.Encoding = *r.Encoding, nil
	}
	if r.Difference != nil {
		d, r.Difference = *r.Difference, nil
	}
	return fmt.Sprintf("%+v %+v %+v %+v", r, l, e, d)
}

func allSaid(s *catalog.State) (all []string) {
	for _, row := range rowsOf(s) {
		all = append(all, said(&row))
	}
	slices.Sort(all)
	return all
}

// edit applies an edit that six bytes encode: operation, file, offset and value.
func (s *sample) edit(e []byte) {
	name := s.names[int(e[1])%len(s.names)]
	p := s.files[name]
	at, value := int(binary.LittleEndian.Uint16(e[2:])), binary.LittleEndian.Uint16(e[4:])
	if len(p) > 0 {
		at %= len(p)
	} else {
		at = 0
	}
	switch e[0] % 10 {
	case 0:
		if len(p) > 0 {
			p[at] ^= 1 << (value % 8)
		}
	case 1:
		copy(p[at:], e[4:6])
	case 2:
		p = p[:at]
	case 3:
		p = append(p, make([]byte, value)...)
	case 4:
		other := s.names[int(value)%len(s.names)]
		p, s.files[other] = s.files[other], p
	case 5:
		delete(s.files, name)
		return
	case 6: // duplicates a piece at another offset
		copy(p[at:], p[min(int(value), len(p)):])
	case 7: // duplicates a file under another number
		digits := fmt.Sprintf("%016x", uint64(value)<<(e[1]/4))
		name = name[:strings.IndexByte(name, '-')+1] + digits
	case 8: // numbers at which arithmetic overflows
		if len(p)-at >= 8 {
			binary.LittleEndian.PutUint64(p[at:], uint64(1)<<(value%64)-uint64(value>>6%3))
		}
	case 9:
		p = slices.Insert(p, at, bytes.Repeat(e[4:5], int(e[5]))...)
	}
	s.files[name] = p
}

// seal updates the checksums of every frame, and of the identity, to match their content.
func (s *sample) seal() {
	for name, p := range s.files {
		var number uint64
		if name == identityName {
			for at := 0; at+identityCopy <= len(p); at += identityCopy {
				sealIdentity(p[at:])
			}
		}
		if _, err := fmt.Sscanf(name, "catalog-%016x", &number); err != nil {
			continue
		}
		const head = 40
		for at := 0; at+head <= len(p); at += 8 {
			h := p[at:]
			n := binary.LittleEndian.Uint64(h[16:])
			if string(h[:4]) != "VFJ1" || n > uint64(len(h)-head) {
				continue
			}
			binary.LittleEndian.PutUint64(h[24:], xxh3.Hash(h[head:][:n]))
			seal := bytes.Clone(someStore.store[:])
			for _, x := range []uint64{number, uint64(at), uint64(binary.LittleEndian.Uint32(h[4:])), binary.LittleEndian.Uint64(h[8:]), n, binary.LittleEndian.Uint64(h[24:])} {
				seal = binary.LittleEndian.AppendUint64(seal, x)
			}
			binary.LittleEndian.PutUint64(h[32:], xxh3.Hash(seal))
		}
	}
}

func (s *sample) copy() *sample {
	c := &sample{names: s.names, rows: s.rows, files: map[string][]byte{}}
	for name, p := range s.files {
		c.files[name] = bytes.Clone(p)
	}
	return c
}

// Further treatment of a fuzzed store.
const (
	sealed   = 1 << iota // checksums are corrected, as in a deliberate forgery
	repaired             // it is opened for writing, and repaired
)

// A directory with edited files is read, or refused with a reason, without much memory. If no checksum was corrected, no checkpoint is found that never
// existed, or with other bytes. The remaining store can be written to.
func FuzzDirectory(f *testing.F) {
	f.Fuzz(func(t *testing.T, edits []byte, name string, how uint8) {
		s := makeSample().copy()
		edits = edits[:min(len(edits), 6*50)]
		for ; len(edits) >= 6; edits = edits[6:] {
			s.edit(edits)
		}
		if len(name) > 0 && len(name) < 30 && name != "." && name != ".." && name != lockName && !strings.Contains(name, "/") && s.files[name] == nil {
			s.files[name] = bytes.Clone(s.files[s.names[0]])
		}
		if how&sealed != 0 {
			s.seal()
		}
		m := vfs.NewMem(64 << 20)
		if err := m.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		total := 0
		for name, p := range s.files {
			total += len(p)
			lay(t, m, name, p)
		}
		o := Options{FS: m, Dir: dir, Capacity: 1 << 20}
		var v *View
		var err error
		most := 1<<20 + 40*uint64(total)
		read := func() {
			if v != nil {
				err = v.Close()
			}
			v, err = Read(o)
		}
		if took := allocs.Least(most, read); took > most {
			t.Fatalf("%d bytes were allocated for files of %d", took, total)
		}
		var found []string
		strange := 0
		if err == nil {
			s.look(t, v, how&sealed != 0)
			checkForged(t, v, most)
			found, strange = allSaid(v.State()), v.State().Unreadable()
			err = v.Close()
		}
		reasonable(t, err)
		if how&repaired != 0 {
			o.Repair = true
			goOn(t, o, found, strange, err)
		}
		if n := m.OpenFiles(); n != 0 {
			t.Fatalf("%d files are still open", n)
		}
	})
}

func reasonable(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrNoStore) {
		t.Fatal(err)
	}
}

// checkForged checks a store, however it was forged. The buffers of a check are not part of the allocations.
func checkForged(t *testing.T, v *View, most uint64) {
	t.Helper()
	var sum Summary
	var err error
	if took := allocs.Least(most, func() {
		var c *Check
		if c, err = v.Check(Scope{Data: true}); err == nil {
			_, err = c.Step(func() bool { return false })
			sum = c.Summary()
		}
	}); took > most {
		t.Fatalf("%d bytes were allocated for a check", took)
	}
	reasonable(t, err)
	for _, f := range sum.Faults {
		if r := f.Row; r != nil && (r.Offset < 0 || r.Bytes < 0 || f.Offset < 0 || f.Bytes < 0) {
			t.Fatalf("%+v, %+v", f, r)
		}
	}
}

// look reads every checkpoint and compares it with its catalog entry.
func (s *sample) look(t *testing.T, v *View, sealed bool) {
	t.Helper()
	end := int64(0)
	for from, to := range v.Occupied() {
		if from < end || to <= from {
			t.Fatalf("what is occupied is not in order: %d to %d behind %d", from, to, end)
		}
		end = to
	}
	if end > v.Space().Capacity() {
		t.Fatalf("occupied up to %d of %d", end, v.Space().Capacity())
	}
	for _, row := range rowsOf(v.State()) {
		if !row.Readable() {
			continue
		}
		off, n, err := v.Place(&row)
		if err != nil {
			t.Fatal(err)
		}
		if off < 0 || n <= 0 || off > end-n {
			t.Fatalf("checkpoint %s lies at %d, %d bytes, where nothing is occupied", row.Key, off, n)
		}
		want, was := s.rows[said(&row)]
		if !sealed && !was {
			t.Fatalf("there never was %+v", row)
		}
		if n > 1<<20 || len(row.Sums) != 1 || len(row.Layout.Spans) != 1 {
			continue
		}
		if !was { // a forged row may claim more plain bytes than fit into memory
			continue
		}
		if p, err := slotOf(v.contents, &row, v.Space().Read); err == nil && checksum.Sum(p) == row.Sums[0] && !bytes.Equal(p, want) {
			t.Fatalf("checkpoint %s has other bytes than it had", row.Key)
		}
	}
}

// goOn opens the directory for writing, adds a checkpoint, and verifies that this one and all earlier ones are there.
func goOn(t *testing.T, o Options, found []string, strange int, unreadable error) {
	t.Helper()
	o, landed, is := watched(o)
	d, err := Open(o)
	if errors.Is(err, journal.ErrExhausted) { // it can only be read
		return
	}
	if strange > 0 { // only a later version may write to it
		if reasonable(t, err); err == nil {
			t.Fatalf("it is written to, with %d checkpoints that nobody here knows", strange)
		}
		return
	}
	if err != nil {
		reasonable(t, err)
		if unreadable == nil {
			t.Fatalf("it can be read, but not repaired: %v", err)
		}
		return
	}
	is(d)
	if unreadable == nil && !slices.Equal(allSaid(d.State()), found) {
		t.Fatal("a repair finds something else")
	}
	free := int64(0)
	for _, to := range d.Occupied() {
		free = to
	}
	if serial := d.State().MaxSerial(); serial < catalog.MostSerial && free < o.Capacity/2 {
		if err := put(d, landed, 1<<40, serial+1, free, pattern(500, 3)); err != nil && !errors.Is(err, journal.ErrExhausted) {
			t.Fatal(err)
		}
	}
	want := allSaid(d.State())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := Read(o)
	if err != nil {
		t.Fatalf("after a repair: %v", err)
	}
	if got := allSaid(v.State()); v.Damage() != nil || !slices.Equal(got, want) {
		t.Fatalf("after a repair: %v\n%q\nwant\n%q", v.Damage(), got, want)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}
