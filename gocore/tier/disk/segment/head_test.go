package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/vfs"

	"golang.org/x/sys/unix"
)

// withHeads is a space in an in-memory directory whose files have heads.
func withHeads(t *testing.T, disk int64, store byte) (*vfs.Mem, Options) {
	t.Helper()
	fsys, o := scarce(t, disk)
	o.Store, o.SegmentBytes, o.Direct = &[16]byte{store}, 1<<20, true
	return fsys, o
}

// mustHave reads a range that must equal p, and must be proved to be the store's.
func mustHave(t *testing.T, s *Space, off int64, p []byte) {
	t.Helper()
	got := buffer(len(p), 0)
	if err := errors.Join(s.Holds(off, int64(len(p))), s.Read(off, got), s.Proves(off, int64(len(p)))); err != nil || !bytes.Equal(got, p) {
		t.Error("not what was written:", err)
	}
}

func mustClose(t *testing.T, s *Space) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// The bytes of a segment follow its head. Reads find them by offsets in the segment, whatever the alignment.
func TestBytesLieBehindTheHead(t *testing.T) {
	fsys, o := withHeads(t, 64<<20, 1)
	s := mustOpen(t, o)
	p := random(buffer(3<<20+777, 0))
	if err := errors.Join(s.Write(4096, p), s.Sync(0), s.Sync(3)); err != nil {
		t.Fatal(err)
	}
	mustHave(t, s, 4096, p)
	mustClose(t, s)
	for number := range uint64(4) {
		h := Head{Store: *o.Store, Number: number + 1, SegmentBytes: o.SegmentBytes}
		if err := h.Look(fsys, "/d/"+FileName(number+1)); err != nil {
			t.Error(err)
		}
		if info, err := fsys.Stat("/d/" + FileName(number+1)); err != nil || info.Size != o.SegmentBytes+HeadBytes {
			t.Errorf("%+v, %v", info, err)
		}
	}
	o.OpenFiles = 1 // files are closed and opened again
	s = mustOpen(t, o)
	mustHave(t, s, 4096, p)
	if err := s.Read(5001, p[:1000]); err != nil {
		t.Error(err)
	}
	mustHave(t, s, 5001, p[:1000])
	if err := s.Punch(0, 1<<20); err != nil {
		t.Error(err)
	}
	mustHave(t, s, 1<<20, p[1<<20-4096:][:1000])
	mustClose(t, s)
}

// Close returns allocated room that was never written, except the part that was in use before. All room stays if a sync has failed, or if another process
// owns the space by now.
func TestTheUnusedEndGoesBack(t *testing.T) {
	const chunk = 64 << 10               // allocation unit of the disk; the last one has only the end of the file, and stays
	for _, files := range []int{1, 64} { // with and without closing files meanwhile
		fails := &vfs.Rule{Ops: vfs.OpSync, Name: FileName(2), Err: unix.EIO}
		fsys, o := withHeads(t, 64<<20, 1)
		o.FS, o.OpenFiles = vfs.NewFaulty(fsys, fails), files
		all := o.SegmentBytes/chunk + 1
		hold := func(want ...int64) {
			t.Helper()
			for number, chunks := range want {
				info, err := fsys.Stat("/d/" + FileName(uint64(number)+1))
				if err != nil || info.Size != HeadBytes+o.SegmentBytes || info.Held != chunks*chunk {
					t.Errorf("file %d: %+v, not %d chunks, %v", number, info, chunks, err)
				}
			}
		}
		write := func(s *Space, number int64, p []byte) {
			t.Helper()
			if err := s.Write(number*o.SegmentBytes, p); err != nil {
				t.Fatal(err)
			}
			if err := s.Sync(number); (err != nil) != (number == 1) {
				t.Fatal(err)
			}
		}
		s := mustOpen(t, o)
		p := random(buffer(100_000, 0))
		for number := range int64(3) {
			write(s, number, p)
		}
		hold(all, all, all)
		mustClose(t, s)
		hold(3, all, 3)

		o.Occupied = func(yield func(from, end int64) bool) {
			_ = yield(2*o.SegmentBytes, 2*o.SegmentBytes+Blocks(100_000)) && yield(2*o.SegmentBytes+8*chunk, 2*o.SegmentBytes+9*chunk)
		}
		s = mustOpen(t, o)
		mustHave(t, s, 0, p)
		write(s, 0, p[:5000]) // nothing was in use there
		write(s, 2, p[:5000])
		mustClose(t, s)
		hold(2, all, 11)

		o.Occupied = nil // the used ranges are unknown
		s = mustOpen(t, o)
		write(s, 0, p[:5000])
		mustClose(t, s)
		hold(all, all, 11)

		o.Occupied = func(func(from, end int64) bool) {}
		s = mustOpen(t, o)
		write(s, 0, p)
		s.Bar(unix.EROFS)
		mustClose(t, s)
		hold(all, all, 11)
	}
}

// An empty range needs no file.
func TestARangeWithoutBytesNeedsNoFile(t *testing.T) {
	_, o := withHeads(t, 64<<20, 1)
	s := mustOpen(t, o)
	mustHave(t, s, 5000, nil)
	if err := s.Proves(5000, 1); !errors.Is(err, ErrUnwritten) {
		t.Error(err)
	}
	mustClose(t, s)
}

// After a failure to write a head, the next write writes it first.
func TestAHeadThatCouldNotBeWritten(t *testing.T) {
	for name, short := range map[string]int{"nothing of it": 0, "a part of it": 512} {
		t.Run(name, func(t *testing.T) {
			fsys, o := withHeads(t, 64<<20, 1)
			rule := &vfs.Rule{Ops: vfs.OpWrite, Name: FileName(1), Err: unix.EIO, Times: 1, Short: short > 0, ShortBytes: short}
			o.FS = vfs.NewFaulty(fsys, rule)
			o.OpenFiles, o.Direct = 1, short == 0
			s := mustOpen(t, o)
			p := random(buffer(1000, 0))
			if err := s.Write(0, p); !errors.Is(err, unix.EIO) {
				t.Error(err)
			}
			if err := s.Write(1<<20, p); err != nil { // lets files be closed
				t.Error(err)
			}
			if err := s.Write(0, p); err != nil {
				t.Error(err)
			}
			mustHave(t, s, 0, p)
			mustClose(t, s)
			s = mustOpen(t, o)
			mustHave(t, s, 0, p)
			mustClose(t, s)
		})
	}
}

// Heads respect the reserve of a scarce disk. A file that got no room gets its head when there is some.
func TestHeadsOnAScarceDisk(t *testing.T) {
	const left = 2 << 20
	fsys, o := withHeads(t, 8<<20, 1)
	s := mustOpen(t, o)
	s.Leave(left)
	p := random(buffer(128<<10, 0))
	var err error
	end := int64(0)
	for ; err == nil; end += int64(len(p)) {
		err = s.Write(end, p)
	}
	end -= int64(len(p))
	for off := end; off < end+20<<20; off += 1 << 20 { // each in its own file
		if err := s.Write(off, p); !errors.Is(err, unix.ENOSPC) {
			t.Error(err)
		}
	}
	if !errors.Is(err, unix.ENOSPC) || free(t, fsys) < left || end < 4<<20 {
		t.Errorf("%v: %d bytes were written, %d are free", err, end, free(t, fsys))
	}
	mustHave(t, s, end-int64(len(p)), p)
	s.Leave(0)
	at := (end + 5<<20) &^ (1<<20 - 1)
	if err := s.Write(at, p); err != nil {
		t.Error(err)
	}
	mustHave(t, s, at, p)
	mustClose(t, s)
}

// After Discard, the new file has its own head.
func TestADiscardedFileGetsAHeadAgain(t *testing.T) {
	_, o := withHeads(t, 64<<20, 1)
	s := mustOpen(t, o)
	p := random(buffer(5000, 0))
	for range 3 {
		if err := errors.Join(s.Write(0, p), s.Sync(0)); err != nil {
			t.Fatal(err)
		}
		mustHave(t, s, 0, p)
		if err := s.Discard(0); err != nil {
			t.Fatal(err)
		}
		if err := s.Read(0, p); !errors.Is(err, ErrUnwritten) {
			t.Error(err)
		}
	}
	mustClose(t, s)
}

// A new file in the place of a closed and discarded one has its name synced before its bytes count.
func TestTheNameOfAFileBegunAnewIsSynced(t *testing.T) {
	fsys, o := withHeads(t, 64<<20, 1)
	o.OpenFiles = 1
	if err := fsys.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, o)
	old, p := random(buffer(5000, 0)), random(buffer(5000, 0))
	copy(p, "new")
	err := errors.Join(s.Write(0, old), s.Sync(0), s.Write(1<<20, old), s.Sync(1)) // the first file is closed for the second one
	if err = errors.Join(err, s.Discard(0), s.Write(0, p), s.Sync(0)); err != nil {
		t.Fatal(err)
	}
	o.FS = fsys.Crash(rand.New(rand.NewPCG(1, 1)), 0)
	mustClose(t, s)
	s = mustOpen(t, o)
	mustHave(t, s, 0, p)
	mustHave(t, s, 1<<20, old)
	mustClose(t, s)
}

// The names of many files take one sync of their directory, also where files were closed meanwhile. If it fails, syncs of all of them fail.
func TestNamesOfManyFiles(t *testing.T) {
	const files = 5
	for name, err := range map[string]error{"synced": nil, "failing": unix.EIO} {
		fsys, o := withHeads(t, 64<<20, 1)
		o.OpenFiles = 1
		if err := fsys.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		calls := &vfs.Rule{Ops: vfs.OpSyncDir, Err: err}
		o.FS = vfs.NewFaulty(fsys, calls)
		s := mustOpen(t, o)
		all := []int64{0, 1, 2, 3, 4}
		for _, number := range all {
			if err := errors.Join(s.Make(number), s.SyncBytes(number)); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.SyncNames(all...); !errors.Is(got, err) {
			t.Errorf("%s: %v", name, got)
		}
		for _, number := range all {
			if got := s.Sync(number); !errors.Is(got, err) || (err != nil) != errors.Is(got, ErrSuspect) {
				t.Errorf("%s, and then a sync: %v", name, got)
			}
		}
		if calls.Fired() != 1 {
			t.Errorf("%s: the directory is synced %d times", name, calls.Fired())
		}
		left, listed := fsys.Crash(rand.New(rand.NewPCG(1, 1)), 0).List(o.Dir)
		if want := map[bool]int{true: files}[err == nil]; listed != nil || len(left) != want {
			t.Errorf("%s: a power loss leaves %v: %v", name, left, listed)
		}
		_ = s.Close()
	}
}

// A file of another store is refused, for reading and for writing.
func TestForeignFiles(t *testing.T) {
	fsys, o := withHeads(t, 64<<20, 1)
	s := mustOpen(t, o)
	p := random(buffer(5000, 0))
	if err := s.Write(0, p); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	o.Store = &[16]byte{2}
	s = mustOpen(t, o)
	for name, err := range map[string]error{
		"read": s.Read(0, buffer(10, 0)), "write": s.Write(0, p), "holds": s.Holds(0, 10), "proves": s.Proves(0, 10),
	} {
		if !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := Head{Store: *o.Store, Number: 1, SegmentBytes: o.SegmentBytes}
	if err := h.Restore(fsys, "/d/"+FileName(1)); !errors.Is(err, ErrForeign) {
		t.Errorf("restored: %v", err)
	}
	mustClose(t, s)
	o.Store = &[16]byte{1}
	s = mustOpen(t, o)
	mustHave(t, s, 0, p)
	mustClose(t, s)
}
