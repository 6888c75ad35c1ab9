package durable

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// site is a store that a test makes and damages.
type site struct {
	t      *testing.T
	fs     *vfs.Mem
	o      Options
	d      *Dir
	landed chan *Change
	serial uint64
	next   int64  // offset of the next checkpoint
	meta   string // meta of the checkpoints that are put
	part   int64  // plain bytes of their containers; 0: they are raw

	compression codec.Compression // of their containers
	even        bool              // their bytes are easy to encode
	drafts      *drafts           // not nil: they are differences of this lineage, and most of their bytes are those of other ones
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOf(t, madeWhole)
}

// newSiteOf is a store with data files of the given layout.
func newSiteOf(t *testing.T, made made) *site {
	t.Helper()
	s := &site{t: t, fs: vfs.NewMem(64 << 20)}
	s.o = Options{FS: s.fs, Dir: dir, Capacity: 32 << 20, SegmentBytes: 1 << 20, Direct: true, made: made}
	s.open()
	return s
}

// siteFront is the number of bytes before the segment in its data files.
var siteFront = front(madeWhole, 1<<20)

func (s *site) open() {
	s.t.Helper()
	o, landed, is := watched(s.o)
	s.d, s.landed = mustOpen(s.t, o), landed
	is(s.d)
}

func (s *site) close() {
	s.t.Helper()
	if err := s.d.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) do(c *Change) {
	s.t.Helper()
	s.d.Commit(c)
	if err := (<-s.landed).Err; err != nil {
		s.t.Fatal(err)
	}
}

// put writes a checkpoint of regions of these sizes, page by page, and returns its offset.
func (s *site) put(history string, key model.Key, sizes ...int64) (at int64) {
	s.t.Helper()
	l := &catalog.Layout{Layout: model.Layout{Text: fmt.Sprint(sizes)}}
	s.serial++
	row := &catalog.Row{Key: key, Serial: s.serial, Layout: l, Align: 64, Sums: []uint64{}, Leaves: []uint64{}, Meta: s.meta}
	var slot []byte
	for _, n := range sizes {
		p := make([]byte, n)
		r := rand.NewChaCha8([32]byte{byte(s.serial), byte(len(slot))})
		if _, err := r.Read(p); err != nil {
			s.t.Fatal(err)
		}
		if s.drafts != nil {
			_, _ = rand.NewChaCha8([32]byte{byte(len(slot))}).Read(p)
			for i := int(s.serial) * 64 % 4096; i < len(p); i += 64 << 10 {
				copy(p[i:min(i+100, len(p))], pattern(100, byte(s.serial)))
			}
		}
		for i := range p {
			if s.even {
				p[i] = byte(s.serial) + byte(i>>16)
			}
		}
		l.Spans = append(l.Spans, model.Span{Offset: int64(len(slot)), Bytes: n})
		row.Sums = append(row.Sums, checksum.Sum(p))
		if checksum.Leaves(n) > 1 {
			for rest := p; len(rest) > 0; rest = rest[min(len(rest), checksum.LeafBytes):] {
				row.Leaves = append(row.Leaves, checksum.Leaf(rest[:min(len(rest), checksum.LeafBytes)]))
			}
		}
		slot = append(slot, p...)
		slot = append(slot, make([]byte, -len(slot)&4095)...)
	}
	l.Slot = int64(len(slot))
	stored := slot
	if s.part > 0 {
		row.Encoding, stored = encoded(l, slot, s.part, codec.Int16, s.compression)
		stored = append(stored, make([]byte, -len(stored)&4095)...)
	}
	if s.drafts != nil {
		row.Encoding = nil
		row.Difference, stored = s.drafts.object(l, slot)
		s.drafts.lies(row.Difference, s.next)
	}
	row.Content = catalog.ContentOf(row.Encoding, row.Difference)
	at = s.next
	s.next += row.Bytes()
	if err := s.d.Space().Write(at, stored); err != nil {
		s.t.Fatal(err)
	}
	s.do(&Change{History: history, Put: row, Off: at})
	return at
}

// flip flips one bit of a file.
func (s *site) flip(name string, off int64) {
	s.t.Helper()
	f, err := s.fs.Open(filepath.Join(dir, name), true, false)
	if err != nil {
		s.t.Fatal(err)
	}
	var p [1]byte
	if _, err := f.ReadAt(p[:], off); err != nil {
		s.t.Fatal(err)
	}
	p[0] ^= 1 << (off % 8)
	if _, err := f.WriteAt(p[:], off); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// lies maps an offset of the space to a data file and the offset in it.
func (s *site) lies(at int64) (file string, off int64) {
	off = at % s.o.SegmentBytes
	off += front(s.o.made, s.o.SegmentBytes)
	return segment.FileName(uint64(at/s.o.SegmentBytes) + 1), off
}

// flipAt flips one bit of the space.
func (s *site) flipAt(at int64) (file string, off int64) {
	file, off = s.lies(at)
	s.flip(file, off)
	return file, off
}

func (s *site) names(prefix string) (all []string) {
	s.t.Helper()
	names, err := s.fs.List(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			all = append(all, n)
		}
	}
	return all
}

func (s *site) check(scope Scope) Summary {
	s.t.Helper()
	return checkOf(s.t, s.o, scope)
}

func checkOf(t *testing.T, o Options, scope Scope) Summary {
	t.Helper()
	v, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.Check(scope)
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, c)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if n := memory.InUse(checkPurpose); n != 0 {
		t.Errorf("%d bytes of buffers are left", n)
	}
	return c.Summary()
}

func mustEnd(t *testing.T, c *Check) {
	t.Helper()
	for {
		done, err := c.Step(func() bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
	}
}

func TestCheckOfASoundStore(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 100, 0, 5000)
	s.put("a", model.TextKey("x"), 3<<20+17)
	s.put("b", model.NumberKey(1), 0)
	s.put("b", model.NumberKey(2))
	for _, scope := range []Scope{{}, {Data: true}, {Share: 1}, {Parts: 1}} {
		sum := s.check(scope)
		if sum.Checkpoints != 4 || sum.Bytes != 5100+3<<20+17 || len(sum.Faults) > 0 || sum.Damaged > 0 || len(sum.Unused) > 0 {
			t.Errorf("%+v: %+v", scope, sum)
		}
		if all := scope != (Scope{}); all && (sum.Chosen != 4 || sum.Read != sum.Bytes) || !all && (sum.Chosen != 0 || sum.Read != 0) {
			t.Errorf("%+v: %+v", scope, sum)
		}
	}
	s.close()
}

func TestDamageHasAnExactRadius(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 100, 5000)
	big := s.put("a", model.TextKey("x"), 3<<20+17, 40)
	s.put("b", model.NumberKey(1), 700)
	s.close()
	last := int64(3 << 20)
	for _, c := range []struct {
		at            int64
		key           model.Key
		region        int
		offset, bytes int64
	}{
		{99, model.NumberKey(1), 0, 0, 100},
		{4096, model.NumberKey(1), 1, 0, 5000},
		{big + last + 16, model.TextKey("x"), 0, last, 17},
		{big + 3*checksum.LeafBytes, model.TextKey("x"), 0, 3 * checksum.LeafBytes, checksum.LeafBytes},
		{big + (last+17+4095)/4096*4096 + 39, model.TextKey("x"), 1, 0, 40},
	} {
		file, off := s.flipAt(c.at)
		if sum := s.check(Scope{}); len(sum.Faults) != 0 {
			t.Errorf("bytes were not to be read: %v", sum.Faults)
		}
		sum := s.check(Scope{Data: true})
		var covered int64
		for _, f := range sum.Faults {
			if f.Kind != Changed || f.Harmless || f.Fleeting || f.Row == nil || f.Row.History != "a" || f.Row.Key != c.key || f.Row.Region != c.region {
				t.Fatalf("byte %d: %+v", c.at, f)
			}
			covered += f.Row.Bytes
		}
		first := sum.Faults[0]
		if sum.Damaged != 1 || first.Row.Offset != c.offset || covered != c.bytes {
			t.Errorf("byte %d: %v", c.at, sum.Faults)
		}
		hit := false
		for _, f := range sum.Faults {
			hit = hit || f.File == file && f.Offset <= off && off < f.Offset+f.Bytes
		}
		if !hit {
			t.Errorf("byte %d of %s is in none of %v", off, file, sum.Faults)
		}
		s.flipAt(c.at)
	}
	if sum := s.check(Scope{Data: true}); len(sum.Faults) > 0 {
		t.Errorf("%v", sum.Faults)
	}
}

func TestMissingFilesAreFoundWithoutReading(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 3<<20) // files 1 to 3
	s.put("a", model.NumberKey(2), 100)   // file 4
	s.close()
	if err := s.fs.Remove(filepath.Join(dir, segment.FileName(2))); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []Scope{{}, {Data: true}} {
		sum := s.check(scope)
		if len(sum.Faults) != 1 || sum.Damaged != 1 {
			t.Fatalf("%v", sum.Faults)
		}
		f := sum.Faults[0]
		if f.Kind != Missing || f.File != segment.FileName(2) || f.Offset != siteFront || f.Bytes != 1<<20 || f.Row.Offset != 1<<20 || f.Row.Bytes != 1<<20 {
			t.Errorf("%+v", f)
		}
	}
	f, err := s.fs.Open(filepath.Join(dir, segment.FileName(4)), true, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(siteFront+99), f.Close()); err != nil {
		t.Fatal(err)
	}
	sum := s.check(Scope{})
	if len(sum.Faults) != 2 || sum.Faults[1].Row.Key != model.NumberKey(2) || sum.Faults[1].Offset != siteFront+99 || sum.Faults[1].Bytes != 1 {
		t.Errorf("%v", sum.Faults)
	}
}

func TestUnreadableBytes(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 600<<10)
	s.close()
	bad := errors.New("the medium fails")
	faulty := vfs.NewFaulty(s.fs)
	faulty.Add(&vfs.Rule{Ops: vfs.OpRead, Name: segment.FileName(1), From: siteFront + 300<<10, To: siteFront + 300<<10 + 1, Err: bad})
	o := s.o
	o.FS = faulty
	sum := checkOf(t, o, Scope{Data: true})
	if len(sum.Faults) != 1 || sum.Faults[0].Kind != Unreadable || sum.Faults[0].Row.Offset != checksum.LeafBytes || sum.Faults[0].Row.Bytes != checksum.LeafBytes {
		t.Errorf("%v", sum.Faults)
	}
}

func TestSubsets(t *testing.T) {
	s := newSite(t)
	for i := range int64(40) {
		s.put("a", model.NumberKey(i), 10)
	}
	total := 0
	for part := range uint64(7) {
		total += s.check(Scope{Part: part, Parts: 7}).Chosen
	}
	if total != 40 {
		t.Errorf("seven parts have %d of 40", total)
	}
	for share, want := range map[float64]int{0.01: 1, 0.5: 20, 0.51: 21} {
		if got := s.check(Scope{Share: share, Seed: 3}).Chosen; got != want {
			t.Errorf("a share of %g has %d, not %d", share, got, want)
		}
	}
	s.flipAt(0)
	one := s.check(Scope{Parts: 40, Part: 1})
	if len(one.Faults) != 1 || one.Chosen != 1 {
		t.Errorf("%+v", one)
	}
	s.close()
	v, err := Read(s.o)
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []Scope{{Share: -1}, {Share: math.NaN()}, {Share: 1.1}, {Part: 1}, {Part: 2, Parts: 2}, {Data: true, Parts: 3}, {Share: 0.1, Parts: 2}} {
		if _, err := v.Check(scope); !errors.Is(err, ErrScope) {
			t.Errorf("%+v: %v", scope, err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint that is dropped and overwritten while a check runs is no damage.
func TestNoFalseAlarmBesideAWriter(t *testing.T) {
	alarm(t, 0, codec.NoCompression)
	alarm(t, model.PartGrain, codec.NoCompression)
	alarm(t, model.PartGrain, codec.Zstd)
}

func alarm(t *testing.T, part int64, compression codec.Compression) {
	s := newSite(t)
	s.part, s.compression = part, compression
	s.put("a", model.NumberKey(1), 5000)
	s.put("a", model.NumberKey(2), 5000)
	s.put("b", model.NumberKey(1), 5000)
	v, err := Read(s.o)
	if err != nil {
		t.Fatal(err)
	}
	s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: 1, Drop: true})
	end := s.next
	s.next = 0
	s.put("a", model.NumberKey(3), 4000)
	s.next = end
	s.put("a", model.NumberKey(2), 10) // a new version
	s.next = 2 * 4096
	s.put("c", model.NumberKey(1), 3000) // at the offset of its old version
	s.flipAt(4 * 4096)                   // real damage to another checkpoint
	c, err := v.Check(Scope{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, c)
	sum := c.Summary()
	if sum.Superseded != 2 || sum.Damaged != 1 || len(sum.Faults) != 1 || sum.Faults[0].Row.History != "b" {
		t.Errorf("%+v", sum)
	}
	s.close()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryStepMayStop(t *testing.T) {
	s := newSite(t)
	for i := range int64(20) {
		s.put("a", model.NumberKey(i), 1_200_000)
	}
	s.flipAt(7 * 1200128)
	s.close()
	v, err := Read(s.o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.Check(Scope{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for done := false; !done; steps++ {
		asked := make(chan struct{}, 1) // about one piece per step
		done, err = c.Step(func() bool {
			select {
			case asked <- struct{}{}:
				return false
			default:
				return true
			}
		})
		if err != nil || steps > 100 {
			t.Fatal(steps, err)
		}
	}
	if sum := c.Summary(); steps < 6 || sum.Read != 20*1_200_000 || sum.Damaged != 1 {
		t.Errorf("%d steps, %+v", steps, sum)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAnIdentityIsRepaired(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 10)
	s.close()
	damage := map[string][]func(){
		"first":           {func() { s.flip(identityName, 20) }},
		"second":          {func() { s.flip(identityName, identityCopy+20) }},
		"third":           {func() { s.flip(copyName, 20) }},
		"first and third": {func() { s.flip(identityName, 20) }, func() { s.flip(copyName, 20) }},
		"both of a file":  {func() { s.flip(identityName, 20) }, func() { s.flip(identityName, identityCopy+20) }},
		"a file":          {func() { s.remove(identityName) }},
	}
	for name, some := range damage {
		for _, do := range some {
			do()
		}
		sum := s.check(Scope{Data: true})
		if len(sum.Faults) != len(some) || sum.Faults[0].Kind != Identity || !sum.Faults[0].Harmless || sum.Damaged != 0 {
			t.Fatalf("%s: %v", name, sum.Faults)
		}
		if done, err := Repair(s.o, Mending{}); err != nil || done != (Repaired{Identity: true}) {
			t.Fatalf("%s: %+v, %v", name, done, err)
		}
		if sum := s.check(Scope{Data: true}); len(sum.Faults) > 0 {
			t.Fatalf("%s: %v", name, sum.Faults)
		}
	}
	for _, c := range identityCopies {
		s.flip(c.file, c.at+20)
	}
	if _, err := Repair(s.o, Mending{}); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// A store of an older version, or one whose maker died, gets its third copy at the next open for writing.
func TestTheThirdCopyIsAdded(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 10)
	s.close()
	whole := s.read(copyName)
	for _, left := range []int{-1, 0, 100, identityCopy} {
		s.remove(copyName)
		if left >= 0 {
			f, err := s.fs.Create(filepath.Join(dir, copyName), false)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(append(slices.Clone(whole[:left/2]), make([]byte, left-left/2)...)[:left%identityCopy], 0); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Truncate(int64(left)), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if sum := s.check(Scope{}); len(sum.Faults) > 0 {
			t.Fatalf("%d bytes: %v", left, sum.Faults)
		}
		s.open()
		s.close()
		if !bytes.Equal(s.read(copyName), whole) {
			t.Errorf("%d bytes: it is not written", left)
		}
	}
}

func (s *site) remove(name string) {
	s.t.Helper()
	if err := s.fs.Remove(filepath.Join(dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

// A catalog with a damaged batch keeps its other rows, also after a repair. That includes rows that rely on definitions in the damaged batch, unless no
// other batch repeats these.
func TestACatalogIsRepaired(t *testing.T) {
	for _, batch := range []int{0, 1, 2} {
		for _, again := range []bool{true, false} {
			left, faults := 3, 1
			if !again {
				left, faults = 2, 2
			}
			s := newSiteOf(t, madeIndexed) // each commit is a batch of the catalog
			for i := range int64(3) {
				s.put(fmt.Sprint("h", i), model.NumberKey(i), 1000+i) // each with a history and a layout of its own
				if i == int64(batch) {
					if !again {
						s.d.tail.spare = -1 << 40
					}
					s.put(fmt.Sprint("h", i), model.NumberKey(7), 1000+i) // which relies on those
				}
			}
			s.close()
			name := s.names("catalog-")[0]
			text := s.read(name)
			at := bytes.Index(text, []byte(fmt.Sprint("h", batch))) // in the record that names the history
			s.flip(name, int64(at))
			if _, err := Open(s.o); !errors.Is(err, ErrDamaged) {
				t.Fatalf("opened: %v", err)
			}
			if _, err := Collect(s.o, false); !errors.Is(err, ErrDamaged) {
				t.Fatalf("collected: %v", err)
			}
			sum := s.check(Scope{Data: true})
			if sum.Checkpoints != left || len(sum.Faults) != faults || sum.Faults[0].Kind != Catalog || sum.Faults[0].Harmless {
				t.Fatalf("batch %d: %+v", batch, sum)
			}
			if done, err := Repair(s.o, Mending{}); err != nil || done != (Repaired{Catalog: true}) {
				t.Fatalf("%+v, %v", done, err)
			}
			sum = s.check(Scope{Data: true})
			if sum.Checkpoints != left || len(sum.Faults) != 0 {
				t.Fatalf("batch %d after the repair: %+v", batch, sum)
			}
			s.open()
			s.close()
		}
	}
}

// If a drop is missing, the dropped checkpoint and the one that reuses its range overlap: the later one counts.
func TestWhatWasDroppedInAMissingPartDoesNotCount(t *testing.T) {
	s := newSiteOf(t, madeIndexed) // each commit is a batch of the catalog
	s.put("a", model.NumberKey(1), 5000)
	s.do(&Change{History: "a", Key: model.NumberKey(1), Serial: 1, Drop: true})
	s.next = 0
	s.put("a", model.NumberKey(2), 5000)
	s.close()
	name := s.names("catalog-")[0]
	text := s.read(name)
	frames := bytes.Split(text, []byte("VFJ1")) // the third is the drop
	s.flip(name, int64(len(frames[0])+4+len(frames[1])+4+len(frames[2])+50))
	sum := s.check(Scope{Data: true})
	if sum.Checkpoints != 1 || len(sum.Faults) != 2 || sum.Faults[0].Kind != Catalog || sum.Faults[1].Kind != Catalog {
		t.Fatalf("%+v", sum)
	}
	if _, err := Repair(s.o, Mending{}); err != nil {
		t.Fatal(err)
	}
	s.open()
	id, _ := s.d.State().History("a")
	if _, ok := s.d.State().Find(id, model.NumberKey(2)); !ok || s.d.State().Histories()[0].Rows != 1 {
		t.Error("the later one is to count")
	}
	s.close()
}

func TestDamagedCheckpointsAreDroppedOnRequest(t *testing.T) {
	s := newSite(t)
	s.put("a", model.NumberKey(1), 5000)
	s.put("a", model.NumberKey(2), 5000)
	if _, err := Repair(s.o, Mending{}); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	if _, err := Collect(s.o, false); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	s.close()
	s.flipAt(0)
	if done, err := Repair(s.o, Mending{}); err != nil || done != (Repaired{}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if sum := s.check(Scope{Data: true}); sum.Damaged != 1 {
		t.Fatalf("%+v", sum)
	}
	victims := []Victim{{"a", model.NumberKey(1), 1}, {"a", model.NumberKey(2), 1}, {"none", model.NumberKey(1), 1}}
	if done, err := Repair(s.o, Mending{Drop: victims}); err != nil || done != (Repaired{Dropped: 1}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if sum := s.check(Scope{Data: true}); sum.Checkpoints != 1 || sum.Damaged != 0 {
		t.Fatalf("%+v", sum)
	}
}

// A repair does not drop a checkpoint that could not be read, or that is right when it is read again: the medium may become readable.
func TestOnlyDamageIsDropped(t *testing.T) {
	dropping(t, 0, codec.NoCompression)
	dropping(t, model.PartGrain, codec.NoCompression)
	dropping(t, model.PartGrain, codec.Zstd)
}

func dropping(t *testing.T, part int64, compression codec.Compression) {
	s := newSite(t)
	s.part, s.compression = part, compression
	at := map[int64]int64{}
	var victims []Victim
	for key := range int64(6) {
		at[key] = s.put("a", model.NumberKey(key), 5000, 600<<10)
		victims = append(victims, Victim{"a", model.NumberKey(key), uint64(key) + 1})
	}
	s.close()
	s.flipAt(at[1])
	s.flipAt(at[2] + 300<<10)
	s.flipAt(at[4] + 8192)
	o := s.o
	unreadable := func(key, off int64) *vfs.Rule {
		name, in := s.lies(at[key] + off)
		return &vfs.Rule{Ops: vfs.OpRead, Name: name, From: in, To: in + 512, Err: unix.EIO}
	}
	o.FS = vfs.NewFaulty(s.fs, unreadable(3, 200<<10), unreadable(4, 500<<10)) // another part of 4 is changed
	if sum := checkOf(t, o, Scope{Data: true}); sum.Damaged != 4 {
		t.Fatalf("%v", sum.Faults)
	}
	if done, err := Repair(o, Mending{Drop: victims}); err != nil || done != (Repaired{Dropped: 3, Spared: 3}) {
		t.Fatalf("%+v, %v", done, err)
	}
	view, err := Read(s.o)
	if err != nil {
		t.Fatal(err)
	}
	if got := serials(view.State()); !slices.Equal(got, []uint64{1, 4, 6}) {
		t.Errorf("%v are left", got)
	}
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	if sum := s.check(Scope{Data: true}); sum.Damaged != 0 {
		t.Errorf("%v", sum.Faults)
	}
}

// read returns the content of a file of the store.
func (s *site) read(name string) []byte {
	s.t.Helper()
	f, err := s.fs.Open(filepath.Join(dir, name), false, false)
	if err != nil {
		s.t.Fatal(err)
	}
	size, _ := f.Size()
	text := make([]byte, size)
	if _, err := f.ReadAt(text, 0); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
	return text
}
