package segment

import (
	"bytes"
	"errors"
	"testing"

	"velocpy/gocore/base/vfs"

	"golang.org/x/sys/unix"
)

// counted is a disk that counts allocations, with a space on it.
func counted(t *testing.T, disk, segmentBytes int64, named bool) (*vfs.Mem, *vfs.Rule, *Space) {
	t.Helper()
	fsys, o := scarce(t, disk)
	calls := &vfs.Rule{Ops: vfs.OpAllocate}
	o.FS, o.SegmentBytes, o.Named = vfs.NewFaulty(fsys, calls), segmentBytes, named
	return fsys, calls, mustOpen(t, o)
}

// A space that holds one small checkpoint takes little of its disk.
func TestAFileBeginsSmall(t *testing.T) {
	for _, named := range []bool{true, false} {
		fsys, _, s := counted(t, 1<<30, 0, named)
		if err := s.Write(0, buffer(800, 0)); err != nil {
			t.Fatal(err)
		}
		if taken := 1<<30 - free(t, fsys); taken != growFirst {
			t.Errorf("named %v: 800 bytes take %d", named, taken)
		}
	}
}

// Files that a stream fills are completely allocated, in a few steps. No step allocates more than was already written.
func TestAStreamFillsWholeFiles(t *testing.T) {
	const file, files, step = 32 << 20, 3, 64 << 10
	for _, named := range []bool{true, false} {
		fsys, calls, s := counted(t, 1<<30, file, named)
		p, got := random(buffer(step, 0)), buffer(step, 0)
		for end := int64(0); end < files*file; {
			if err := s.Write(end, p); err != nil {
				t.Fatal(err)
			}
			end += step
			whole := (end - 1) / file * file
			if taken := 1<<30 - free(t, fsys); taken > whole+max(2*(end-whole), growFirst) || taken < end {
				t.Fatalf("named %v: %d bytes take %d", named, end, taken)
			}
		}
		if calls.Fired() != files*5 { // 2, 4, 8, 16, 32 MiB
			t.Errorf("named %v: %d requests for room", named, calls.Fired())
		}
		for off := int64(0); off < files*file; off += step {
			if err := s.Read(off, got); err != nil || !bytes.Equal(got, p) {
				t.Fatalf("named %v: not what was written at %d: %v", named, off, err)
			}
		}
		for number := range uint64(files) {
			info, err := fsys.Stat("/d/" + FileName(number+1))
			if named && (err != nil || info.Size != file || info.Held != file) {
				t.Errorf("file %d: %+v, %v", number, info, err)
			}
		}
	}
}

// A large transfer allocates room for all its pieces at once.
func TestALargeTransferAsksForRoomOnce(t *testing.T) {
	fsys, calls, s := counted(t, 1<<30, 0, true)
	if err := s.Write(0, random(buffer(90<<20, 0))); err != nil {
		t.Fatal(err)
	}
	if taken := 1<<30 - free(t, fsys); calls.Fired() != 1 || taken != 90<<20 {
		t.Errorf("%d requests, %d bytes taken", calls.Fired(), taken)
	}
}

// A quota of unknown size is detected before the reserve is used up, whatever the state of the file is then.
func TestAQuotaIsFoundBeforeItIsUsedUp(t *testing.T) {
	const left, step = 4 << 20, 256 << 10
	for disk := int64(9 << 20); disk < 25<<20; disk += 5 << 20 {
		fsys, o := scarce(t, disk)
		o.FS, o.SegmentBytes = limited{fsys}, 8<<20
		s := mustOpen(t, o)
		s.Leave(left)
		p, end := random(buffer(step, 0)), int64(0)
		var err error
		for ; err == nil; end += step {
			err = s.Write(end, p)
			if free(t, fsys) < left {
				t.Fatalf("of a quota of %d, %d are left behind %d", disk, free(t, fsys), end)
			}
		}
		if !errors.Is(err, unix.EDQUOT) || free(t, fsys) != left {
			t.Errorf("of a quota of %d, %d are left: %v", disk, free(t, fsys), err)
		}
	}
}

// Room that this space has allocated, and that another process has written, stays when the space closes.
func TestWhatAnotherProcessHasWrittenStays(t *testing.T) {
	mem := vfs.NewMem(1 << 30)
	if err := mem.MkdirAll("/s"); err != nil {
		t.Fatal(err)
	}
	id := [16]byte{1}
	s := mustOpen(t, Options{FS: mem, Dir: "/s", Capacity: 64 << 20, SegmentBytes: 64 << 20, Named: true, Store: &id})
	if err := s.Make(0); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(0, random(buffer(Block, 0))); err != nil { // allocates more
		t.Fatal(err)
	}
	file, err := mem.Open("/s/"+FileName(1), true, false)
	if err != nil {
		t.Fatal(err)
	}
	theirs := random(buffer(2*Block, 0))
	if _, err := Behind(file, HeadBytes).WriteAt(theirs, 4*Block); err != nil {
		t.Fatal(err)
	}
	s.Wrote(4*Block, 2*Block)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(theirs))
	if _, err := Behind(file, HeadBytes).ReadAt(got, 4*Block); err != nil || !bytes.Equal(got, theirs) {
		t.Errorf("it is gone: %v", err)
	}
	if err := s.Make(0); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed space: %v", err)
	}
}
