package durable

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/dataindex"
	"velocpy/gocore/tier/disk/segment"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// busySite is a store whose writer never becomes idle, however slow the machine is.
func busySite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.close()
	s.o.idle = time.Hour
	s.open()
	return s
}

// died returns the store of a writer that died after it had committed n checkpoints of 3,000 bytes, each alone. The catalog has the first, and the commit
// area of the data file the others. Every other one is encoded.
func died(t *testing.T, n int64) *site {
	t.Helper()
	s := busySite(t)
	for k := range n {
		s.part, s.compression = k%2*model.PartGrain, codec.Zstd
		s.put("a", model.NumberKey(k), 3000)
	}
	h := s.copied()
	s.close()
	return h
}

// areaFrames returns the frames in the commit area of a data file, with their offsets in the file.
func (s *site) areaFrames(number uint64) (all []dataindex.Frame) {
	s.t.Helper()
	f, err := readIdentity(&s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	at := f.headBytes() + f.indexBytes()
	text := s.read(segment.FileName(number))
	for frame := range (dataindex.File{Area: dataindex.Commits, Store: f.store, Number: number}).Frames(text[at:at+f.commitBytes()], 0) {
		frame.From, frame.End = frame.From+at, frame.End+at
		all = append(all, frame)
	}
	return all
}

// batches returns the offsets of the batches in the newest catalog file.
func (s *site) batches() (name string, at []int64) {
	s.t.Helper()
	names := s.names("catalog-")
	name = names[len(names)-1]
	for _, f := range framesOf(s.read(name)) {
		if f.kind == batchKind {
			at = append(at, f.from)
		}
	}
	if len(at) == 0 {
		s.t.Fatal("no batch is there")
	}
	return name, at
}

// A commit takes one sync. The first one in a data file takes more, and so does a later one whenever the catalog gets the records of the commit area.
func TestACommitTakesOneSync(t *testing.T) {
	s := busySite(t)
	s.close()
	syncs := &vfs.Rule{Ops: vfs.OpSync}
	s.o.FS = vfs.NewFaulty(s.fs, syncs)
	s.open()
	s.put("a", model.NumberKey(-1), 3000)
	const commits = 200
	before := syncs.Seen()
	for k := range int64(commits) {
		s.put("a", model.NumberKey(k), 3000)
	}
	taken := syncs.Seen() - before
	t.Logf("%d syncs for %d commits", taken, commits)
	if taken < commits || taken > commits+commits/3 { // the area of such a short data file has room for four frames
		t.Errorf("%d syncs", taken)
	}
	s.close()
	s.sound()
}

// The commits of a writer that died are there: for readers, for the next writer, and after a loss of power then.
func TestWhatACommitAreaSaysCounts(t *testing.T) {
	for n := range int64(9) {
		h := died(t, n)
		want := h.rows()
		if len(want) != int(n) {
			t.Fatalf("%d of %d are there", len(want), n)
		}
		h.sound()
		h.open()
		image := h.image()
		h.close()
		h.fs, h.o.FS = image, image
		h.has(want, true)
		h.sound()
	}
}

// Each damaged or unreadable frame costs only its own records, and is reported. A damaged last frame counts as unacknowledged, unless the medium refuses to
// read it.
func TestAFrameOfACommitArea(t *testing.T) {
	h := died(t, 5)
	want := h.rows()
	frames := h.areaFrames(1)
	if len(frames) != 4 {
		t.Fatalf("%d frames", len(frames))
	}
	for i, frame := range frames {
		for _, unreadable := range []bool{false, true} {
			t.Run(fmt.Sprint(i, unreadable), func(t *testing.T) {
				x := h.copied()
				x.t = t
				if unreadable {
					x.o.FS = vfs.NewFaulty(x.fs, &vfs.Rule{Ops: vfs.OpRead, Name: segment.FileName(1), From: frame.From, To: frame.From + segment.Block, Err: unix.EIO})
				} else {
					x.flip(segment.FileName(1), frame.From+70)
				}
				left := maps.Clone(want)
				delete(left, fmt.Sprint("a/", i+1))
				if got := x.rows(); len(got) != len(left) {
					t.Fatalf("%d are left, not %d", len(got), len(left))
				}
				last := i == len(frames)-1 && !unreadable
				faults := x.check(Scope{Data: true}).Faults
				if last != (len(faults) == 0) {
					t.Fatalf("%v", faults)
				}
				_, err := Open(x.o)
				if last != (err == nil) || err != nil && !errors.Is(err, ErrDamaged) {
					t.Fatalf("%v", err)
				}
			})
		}
	}
}

// If bytes of the last frame's checkpoint did not reach the medium, it was not acknowledged: the earlier version counts, and its range is not written to.
func TestAFrameWithoutItsBytes(t *testing.T) {
	for i, part := range []int64{0, model.PartGrain, model.PartGrain} {
		s := busySite(t)
		s.put("a", model.NumberKey(1), 3000)
		s.part, s.compression = part, compressions[i/2]
		s.put("a", model.NumberKey(2), 3000)
		want := s.rows()
		at := s.put("a", model.NumberKey(2), 3000)
		h := s.copied()
		s.close()
		if whole := h.rows()["a/2"]; whole.Serial != 3 {
			t.Fatalf("%+v", whole)
		}
		h.flipAt(at)
		h.has(want, true)
		for range 2 {
			h.keeps(want, true)
			h.sound()
		}
	}
}

// A reader verifies the bytes of the last frame, so a checkpoint that takes little room, and long to decode, is not committed in a commit area.
func TestACommitAreaHasLittleToDecode(t *testing.T) {
	s := busySite(t)
	for k, size := range []int64{3000, 3000, mostAheadBytes, mostAheadBytes + 1} {
		l := &catalog.Layout{Layout: model.Layout{Slot: size, Spans: []model.Span{{Bytes: size}}}}
		row := &catalog.Row{
			Key: model.NumberKey(int64(k)), Serial: uint64(k + 1), Layout: l, Sums: []uint64{0}, Content: catalog.Encoded,
			Encoding: &model.Encoding{Part: 32 << 20, Lengths: []uint32{96}},
		}
		at := int64(k) * segment.Block
		if err := s.d.Space().Write(at, make([]byte, segment.Block)); err != nil {
			t.Fatal(err)
		}
		s.do(&Change{History: "a", Put: row, Off: at})
		if frames := len(s.areaFrames(1)); frames != min(k, 2) {
			t.Errorf("%d frames after %d", frames, k)
		}
	}
	s.close()
}

// If the catalog's last batch is damaged, the frames of the commit area that continue it prove that it existed, and they count. That also holds if a frame
// is damaged, or if bytes of the last frame's checkpoint are missing.
func TestTheCommitAreaKnowsOfALostBatch(t *testing.T) {
	for how, lost := range map[string]int{"nothing else": 1, "a frame": 2, "bytes of the last frame": 2} {
		t.Run(how, func(t *testing.T) {
			h := died(t, 5)
			h.t = t
			rows := len(h.rows())
			switch how {
			case "a frame":
				h.flip(segment.FileName(1), h.areaFrames(1)[1].From+70)
			case "bytes of the last frame":
				h.flipAt(h.next - segment.Block)
			}
			name, batches := h.batches()
			for _, at := range batches {
				h.flip(name, at+41)
			}
			sum := h.check(Scope{})
			if len(sum.Faults) == 0 || sum.Faults[0].Kind != Catalog || sum.Faults[0].Harmless {
				t.Errorf("%v", sum.Faults)
			}
			if _, err := Open(h.o); !errors.Is(err, ErrDamaged) {
				t.Errorf("%v", err)
			}
			left := h.rows()
			if len(left) != rows-lost {
				t.Errorf("%d of %d are left", len(left), rows)
			}
			if _, err := Repair(h.o, Mending{}); err != nil {
				t.Fatal(err)
			}
			h.open()
			h.serial, h.next = 100, 1<<19
			for k := range int64(4) {
				h.put("b", model.NumberKey(k), 3000)
			}
			want := h.rows()
			x := h.copied() // frames that continue a batch of the same number may still be in the area
			h.close()
			x.has(want, true)
			x.has(left, true)
			x.sound()
		})
	}
}

// If the batch that names the next area is damaged, the frames in the earlier area count too.
func TestTwoCommitAreasBehindALostBatch(t *testing.T) {
	s := busySite(t)
	for k := range int64(6) {
		if k == 3 {
			s.next = s.o.SegmentBytes
		}
		s.put("a", model.NumberKey(k), 3000)
	}
	want := s.rows()
	h := s.copied()
	s.close()
	name, batches := h.batches()
	if len(batches) != 2 || len(h.areaFrames(1)) != 2 || len(h.areaFrames(2)) != 2 {
		t.Fatal("other batches and frames")
	}
	h.flip(name, batches[1]+41)
	delete(want, "a/3")
	h.has(want, false)
	if _, err := Open(h.o); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	if _, err := Repair(h.o, Mending{}); err != nil {
		t.Fatal(err)
	}
	h.has(want, false)
	h.keeps(want, false)
	h.sound()
}

// Damage to the last frame does not cost the records of the frame before it, although the ranges of their checkpoints may have been reused since.
func TestTheFrameBeforeADamagedOne(t *testing.T) {
	s := busySite(t)
	s.put("a", model.NumberKey(1), 3000)
	at := s.put("a", model.NumberKey(2), 3000)
	want := s.rows()
	s.put("a", model.NumberKey(2), 3000)
	frames := s.areaFrames(1)
	for _, off := range []int64{48, 70} { // in the head, and after it
		for _, over := range []bool{false, true} {
			h := s.copied()
			h.flip(segment.FileName(1), frames[1].From+off)
			if over {
				h.flipAt(at)
			}
			h.has(want, false)
			for range 2 {
				if faults := h.check(Scope{Data: true}).Faults; over != (len(faults) > 0) {
					t.Errorf("%v", faults)
				}
				h.keeps(want, false)
			}
		}
	}
	s.close()
}

// A writer that could not write the area's records to the catalog does not mark the catalog as closed. An area that cannot be read is damage then.
func TestACatalogThatLacksSomethingIsNotClosed(t *testing.T) {
	s := busySite(t)
	s.put("a", model.NumberKey(1), 3000)
	s.put("a", model.NumberKey(2), 3000)
	want := s.rows()
	s.close()
	for _, fails := range []bool{false, true} {
		h := s.copied()
		mem := h.o.FS
		lock := &dimLock{}
		h.o.FS = dimDisk{mem, lock}
		h.open()
		h.serial = 100
		h.next = s.next
		h.put("b", model.NumberKey(1), 3000)
		h.put("b", model.NumberKey(2), 3000)
		lock.fails.Store(fails)
		h.close()
		h.o.FS = mem
		if len(h.rows()) != len(want)+2 {
			t.Errorf("%d are there", len(h.rows()))
		}
		h.o.FS = vfs.NewFaulty(mem, &vfs.Rule{Ops: vfs.OpOpen, Name: segment.FileName(1), Err: unix.EIO})
		v, err := Read(h.o)
		if err != nil {
			t.Fatal(err)
		}
		if (v.Damage() != nil) != fails {
			t.Errorf("fails: %v, damage: %v", fails, v.Damage())
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// tiredDisk fails syncs of catalog files, except the next few.
type tiredDisk struct {
	vfs.FS
	passes, failed atomic.Int64
}

func (d *tiredDisk) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(d), nil }

func (d *tiredDisk) Create(name string, direct bool) (vfs.File, error) {
	f, err := d.FS.Create(name, direct)
	return tiredFile{f, d, name}, err
}

func (d *tiredDisk) Open(name string, write, direct bool) (vfs.File, error) {
	f, err := d.FS.Open(name, write, direct)
	return tiredFile{f, d, name}, err
}

type tiredFile struct {
	vfs.File
	d    *tiredDisk
	name string
}

func (f tiredFile) Sync() error {
	if strings.Contains(f.name, "catalog-") && f.d.passes.Dec() < 0 {
		f.d.failed.Inc()
		return unix.EIO
	}
	return f.File.Sync()
}

// If the area's records leave no room in a batch for the one that ends the uncertainty, two batches are needed. Whichever of their syncs fails, changes
// that are acknowledged afterwards are there.
func TestUncertaintyThatEndsInTwoBatches(t *testing.T) {
	meta, failed := 16_000, int64(0)
	for passes := int64(-1); passes < 12; passes++ {
		disk := &tiredDisk{FS: vfs.NewMem(128 << 20)}
		disk.passes.Store(1 << 30)
		s := &site{t: t, fs: disk.FS.(*vfs.Mem)}
		s.o = Options{FS: disk, Dir: dir, Capacity: 32 << 20, SegmentBytes: 32 << 20, Direct: true, idle: time.Hour}
		s.open()
		s.put("a", model.NumberKey(1), 3000)
		s.meta = strings.Repeat("m", meta)
		s.put("a", model.NumberKey(2), 3000)
		s.meta = ""
		if passes < 0 { // measures the room that is left in a batch
			meta += batchBytes - 1 - s.d.tail.area.bytes
			s.close()
			continue
		}
		if s.d.tail.area.bytes != batchBytes-1 {
			t.Fatal(s.d.tail.area.bytes)
		}
		say := func(c *Change) { // the directory may end the uncertainty by itself first
			for s.d.Commit(c); c != <-s.landed; {
			}
		}
		for _, n := range []int64{0, passes} { // the first drop makes later changes uncertain
			disk.passes.Store(n)
			say(&Change{History: "a", Key: model.NumberKey(1), Serial: s.serial, Drop: true})
			failed += disk.failed.Swap(0)
		}
		disk.passes.Store(1 << 30)
		say(&Change{Clarify: true})
		s.put("a", model.NumberKey(3), 3000)
		s.put("a", model.NumberKey(4), 3000)
		h := s.copied()
		s.close()
		rows := h.rows()
		for _, key := range []string{"a/2", "a/3", "a/4"} {
			if _, ok := rows[key]; !ok {
				t.Errorf("%d syncs pass: %s is not there", passes, key)
			}
		}
	}
	if failed < 10 {
		t.Errorf("only %d syncs have failed", failed)
	}
}

// dimLock is a lock whose state can once not be determined.
type dimLock struct {
	vfs.Lock
	fails atomic.Bool
}

func (l *dimLock) Held() error {
	if l.fails.Swap(false) {
		return unix.EIO
	}
	return l.Lock.Held()
}

type dimDisk struct {
	vfs.FS
	lock *dimLock
}

func (d dimDisk) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(d), nil }

func (d dimDisk) Lock(name string) (lock vfs.Lock, err error) {
	d.lock.Lock, err = d.FS.Lock(name)
	return d.lock, err
}

// If a commit area cannot be written, nothing is lost: the catalog gets each commit at once.
func TestACommitAreaThatCannotBeWritten(t *testing.T) {
	s := busySite(t)
	mem := s.fs
	s.close()
	i := madeWhole.identity(s.o.SegmentBytes)
	s.o.FS = vfs.NewFaulty(mem, &vfs.Rule{Ops: vfs.OpWrite, Name: segment.FileName(1), From: i.headBytes() + i.indexBytes(), To: siteFront, Err: unix.EIO})
	s.open()
	for k := range int64(6) {
		s.put("a", model.NumberKey(k), 3000)
	}
	want := s.rows()
	if len(want) != 6 {
		t.Errorf("%d are there", len(want))
	}
	h := s.copied()
	s.close()
	h.has(want, true)
	h.sound()
}

// A view that looks again sees later commits, also while only the commit area has them.
func TestAViewLearnsOfWhatTheCommitAreaSays(t *testing.T) {
	s := busySite(t)
	s.put("a", model.NumberKey(1), 3000)
	for k := range int64(12) {
		first := s.serial
		v, err := Read(s.o)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := v.Current("a", model.NumberKey(1), first); err != nil || !is {
			t.Fatalf("%d: %v, %v", k, is, err)
		}
		s.put("a", model.NumberKey(1), 3000)
		if is, err := v.Current("a", model.NumberKey(1), first); err != nil || is {
			t.Fatalf("%d: what was replaced is current: %v, %v", k, is, err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
}

// A view that cannot read the commit area does not report its own state as current.
func TestAViewThatCannotReadTheCommitArea(t *testing.T) {
	s := busySite(t)
	s.put("a", model.NumberKey(1), 3000)
	first := s.serial
	rule := &vfs.Rule{Ops: vfs.OpRead, Name: segment.FileName(1), From: siteFront - 4*segment.Block, To: siteFront, Err: unix.EIO}
	rule.Disable()
	o := s.o
	o.FS = vfs.NewFaulty(s.fs, rule)
	v, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	s.put("a", model.NumberKey(1), 3000)
	rule.Enable()
	if is, err := v.Current("a", model.NumberKey(1), first); err == nil {
		t.Errorf("what was replaced is current: %v", is)
	}
	if rule.Fired() == 0 {
		t.Error("the area was not read")
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	s.close()
}

// If the catalog of a killed writer is lost too, the indexes and the commit areas have all acknowledged checkpoints.
func TestACatalogThatIsLostWithItsWriter(t *testing.T) {
	for _, n := range []int64{1, 2, 4, 5, 6, 10, 23} {
		h := died(t, n)
		want := h.rows()
		if len(want) != int(n) {
			t.Fatalf("%d of %d are there", len(want), n)
		}
		h.withoutCatalog()
		h.rebuild()
		h.has(want, false)
		h.sound()
	}
}

// If the data file with the catalog's current commit area cannot be opened, its commits are reported missing, and no writer overwrites them.
func TestACommitAreaThatCannotBeOpened(t *testing.T) {
	h := died(t, 4)
	want := h.rows()
	rule := &vfs.Rule{Ops: vfs.OpOpen, Name: segment.FileName(1), Err: unix.EIO}
	mem := h.o.FS
	h.o.FS = vfs.NewFaulty(mem, rule)
	v, err := Read(h.o)
	if err != nil {
		t.Fatal(err)
	}
	if v.Damage() == nil {
		t.Error("no damage")
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(h.o); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	h.o.FS = mem
	h.has(want, false)
	h.sound()
}

// Frames that a repair has moved to the catalog do not count again, even when a torn end makes a reader look into all areas.
func TestFramesCountOnce(t *testing.T) {
	h := died(t, 7)
	name, batches := h.batches()
	h.flip(name, batches[0]+41)
	if _, err := Repair(h.o, Mending{}); err != nil {
		t.Fatal(err)
	}
	want := h.rows()
	if len(want) == 0 {
		t.Fatal("nothing is left")
	}
	h.open()
	h.serial, h.next = 100, 1<<19
	h.put("b", model.NumberKey(1), 3000)
	x := h.copied()
	h.close()
	name, batches = x.batches()
	x.flip(name, batches[len(batches)-1]+41) // as if the power had failed during its write
	x.has(want, false)
	x.sound()
	x.keeps(want, false)
}

// A change that ends uncertainty does not cover changes that become uncertain together with it.
func TestClarifyingComesFirst(t *testing.T) {
	s := newSiteOf(t, madeIndexed)
	mem := s.fs
	s.put("a", model.NumberKey(1), 3000)
	s.close()
	fails := &vfs.Rule{Ops: vfs.OpSync, Name: "catalog-0000000000000002", Skip: 1, Err: unix.EIO} // the first sync is that of the file's begin
	again := &vfs.Rule{Ops: vfs.OpSync, Name: "catalog-0000000000000003", Skip: 1, Err: unix.EIO}
	s.o.FS = vfs.NewFaulty(mem, fails, again)
	s.open()
	row := &catalog.Row{Key: model.NumberKey(2), Serial: 9, Layout: &catalog.Layout{Layout: model.Layout{Text: "[]"}}, Align: 64, Sums: []uint64{}, Leaves: []uint64{}}
	if err := s.d.Space().Write(1<<16, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	s.d.Commit(&Change{History: "a", Put: row, Off: 1 << 16}, &Change{Clarify: true})
	if first := <-s.landed; !first.Clarify || first.Err != nil {
		t.Errorf("%+v", first)
	}
	if second := <-s.landed; second.Put == nil || second.Err == nil || !second.Uncertain {
		t.Errorf("%+v", second)
	}
	fails.Disable()
	again.Disable()
	s.close()
}

// writeAgain skips unreadable blocks, and writes all others.
func TestBytesAreWrittenAgainAroundWhatCannotBeRead(t *testing.T) {
	const n, bad = againBytes + 40<<10, 16 << 10 // more blocks follow the unreadable one in the second piece, too
	mem := vfs.NewMem(1 << 40)
	written := make([]bool, n/segment.Block)
	unreadable := []*vfs.Rule{
		{Ops: vfs.OpRead, From: bad, To: bad + 1, Err: unix.EIO, Short: true, ShortBytes: bad},
		{Ops: vfs.OpRead, From: againBytes, To: againBytes + 1, Err: unix.EIO},
	}
	f, err := vfs.NewFaulty(seen{mem, written}, unreadable...).Create("/f", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, n), 0); err != nil {
		t.Fatal(err)
	}
	clear(written)
	if err := writeAgain(f, run{0, n}, againBytes); err != nil {
		t.Fatal(err)
	}
	for i, is := range written {
		if lost := int64(i) == bad/segment.Block || int64(i) == againBytes/segment.Block; is == lost {
			t.Errorf("block %d: written: %v", i, is)
		}
	}
}

// seen is a file system that records which blocks are written.
type seen struct {
	vfs.FS
	written []bool
}

func (s seen) Create(name string, direct bool) (vfs.File, error) {
	f, err := s.FS.Create(name, direct)
	return seenFile{f, s.written}, err
}

type seenFile struct {
	vfs.File
	written []bool
}

func (f seenFile) WriteAt(p []byte, off int64) (int, error) {
	for at := off; at < off+int64(len(p)); at += segment.Block {
		f.written[at/segment.Block] = true
	}
	return f.File.WriteAt(p, off)
}
