package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"velocpy/gocore/base/vfs"

	"golang.org/x/sys/unix"
)

// scarce is a disk of limited size, with a space on it whose files are larger.
func scarce(t *testing.T, disk int64) (*vfs.Mem, Options) {
	t.Helper()
	fsys := vfs.NewMem(disk)
	if err := fsys.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	return fsys, Options{FS: fsys, Dir: "/d", Capacity: 1 << 30, Named: true}
}

// On a disk without room for a whole file, all room except the catalog's reserve can be written. Written ranges can be rewritten, also by another process.
// When there is room again, the file can grow.
func TestADiskThatHasLessThanAWholeFile(t *testing.T) {
	const disk, step, others, left = 40 << 20, 256 << 10, 8 << 20, 4 << 20
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprint("named ", named), func(t *testing.T) {
			fsys, o := scarce(t, disk)
			filler, err := fsys.Create("/d/others", false)
			if err == nil {
				err = filler.Allocate(0, others)
			}
			if err != nil {
				t.Fatal(err)
			}
			o.Named = named
			s := mustOpen(t, o)
			s.Leave(left)
			p, end := random(buffer(step, 0)), int64(0)
			for err = nil; err == nil; end += step {
				err = s.Write(end, p)
			}
			end -= step
			free := free(t, fsys)
			if !errors.Is(err, unix.ENOSPC) || end != disk-others-left || free != left {
				t.Fatalf("%d bytes were written, %d are left, %v", end, free, err)
			}
			again := func(s *Space) {
				t.Helper()
				random(p)
				if err := s.Write(end-step, p); err != nil {
					t.Error(err)
				}
				if err := s.Write(end, p); !errors.Is(err, unix.ENOSPC) {
					t.Error("behind the end:", err)
				}
				got := buffer(step, 0)
				if err := s.Read(end-step, got); err != nil || !bytes.Equal(got, p) {
					t.Error("not what was written:", err)
				}
			}
			again(s)
			if named {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, o)
				s.Leave(left)
				again(s)
			}
			if err := filler.Truncate(0); err != nil {
				t.Fatal(err)
			}
			if err := s.Write(end, p); err != nil {
				t.Error("there is room again:", err)
			}
			if err := filler.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func free(t *testing.T, fsys vfs.FS) int64 {
	t.Helper()
	n, err := fsys.Free("/d")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A range far from the beginning needs no room before it.
func TestRoomFarFromTheBeginning(t *testing.T) {
	const far, left = 100 << 20, 2 << 20
	fsys, o := scarce(t, 32<<20)
	s := mustOpen(t, o)
	s.Leave(left)
	p := random(buffer(1<<20, 0))
	if err := s.Write(far, p); err != nil || free(t, fsys) != 31<<20 {
		t.Fatal(err, free(t, fsys))
	}
	got := buffer(1<<20, 0)
	if err := s.Read(far, got); err != nil || !bytes.Equal(got, p) {
		t.Fatal("not what was written:", err)
	}
	if err := s.Read(far+1<<20, got); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	var err error
	for off := int64(0); err == nil; off += 1 << 20 {
		err = s.Write(off, p)
	}
	if !errors.Is(err, unix.ENOSPC) || free(t, fsys) != left {
		t.Errorf("%v, and %d are left", err, free(t, fsys))
	}
	if err := s.Read(far, got); err != nil || !bytes.Equal(got, p) {
		t.Fatal("not what was written:", err)
	}

	// a process that reopens the file determines its room once
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	calls := &vfs.Rule{Ops: vfs.OpAllocate}
	o.FS = vfs.NewFaulty(fsys, calls)
	file, err := fsys.Open("/d/"+FileName(1), true, false)
	if err == nil {
		err = errors.Join(file.Truncate(16<<20), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	s.Leave(30 << 20)
	for off := int64(0); off < 16<<20; off += 1 << 20 {
		if err := s.Write(off, p); err != nil {
			t.Error(err)
		}
	}
	if calls.Fired() != 1 {
		t.Errorf("%d requests for room", calls.Fired())
	}
}

// Holes in a file are filled as long as the disk has more than the reserve. Ranges that were not punched can be written even then.
func TestHolesAreFilledAsFarAsThereIsRoom(t *testing.T) {
	const whole, hole, others, left = 32 << 20, 20 << 20, 10 << 20, 4 << 20
	fsys, o := scarce(t, 34<<20)
	s := mustOpen(t, o)
	p := random(buffer(1<<20, 0))
	for off := int64(0); off < whole; off += 1 << 20 {
		if err := s.Write(off, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := fsys.Open("/d/"+FileName(1), true, false)
	if err == nil {
		err = errors.Join(file.PunchHole(1<<20, hole), file.Close())
	}
	filler, failed := fsys.Create("/d/others", false)
	if failed == nil {
		failed = errors.Join(filler.Allocate(0, others), filler.Close())
	}
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	s = mustOpen(t, o)
	s.Leave(left)
	for off := int64(0); off < whole; off += 1 << 20 {
		before := free(t, fsys)
		err := s.Write(off, p)
		inHole := off >= 1<<20 && off < hole+1<<20
		if room := !inHole || before-1<<20 >= left; room != (err == nil) || err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Errorf("1 MiB at %d, in a hole %v, %d free before: %v", off, inHole, before, err)
		}
		if free(t, fsys) < left {
			t.Fatalf("%d are left", free(t, fsys))
		}
	}
	if free(t, fsys) != left {
		t.Errorf("%d are left of %d", free(t, fsys), left)
	}
}

// limited is a disk on which this user may have less than is free.
type limited struct{ vfs.FS }

func (l limited) Free(string) (int64, error) { return 1 << 40, nil }

func (l limited) Create(name string, direct bool) (vfs.File, error) {
	f, err := l.FS.Create(name, direct)
	return quota{f}, err
}

func (l limited) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(l), nil }

type quota struct{ vfs.File }

func (q quota) Allocate(off, n int64) error {
	err := q.File.Allocate(off, n)
	if errors.Is(err, unix.ENOSPC) {
		return unix.EDQUOT
	}
	return err
}

// The reserve holds for a quota as for a disk, and ranges that are already allocated need no further room.
func TestAQuotaIsNotUsedUp(t *testing.T) {
	const left = 4 << 20
	fsys, o := scarce(t, 33<<20)
	calls := &vfs.Rule{Ops: vfs.OpAllocate}
	o.FS = vfs.NewFaulty(limited{fsys}, calls)
	s := mustOpen(t, o)
	s.Leave(left)
	p, end := random(buffer(1<<20, 0)), int64(0)
	var err error
	for ; err == nil; end += 1 << 20 {
		err = s.Write(end, p)
	}
	if !errors.Is(err, unix.EDQUOT) || free(t, fsys) != left || end != 30<<20 {
		t.Errorf("%v, %d are left behind %d", err, free(t, fsys), end)
	}
	before := calls.Fired()
	for off := int64(0); off < 20<<20; off += 1 << 20 {
		if err := s.Write(off, p); err != nil {
			t.Error(err)
		}
	}
	if calls.Fired() != before {
		t.Errorf("%d requests for what there is", calls.Fired()-before)
	}
}

// late reports an outdated number of free bytes.
type late struct{ vfs.FS }

func (l late) Free(dir string) (int64, error) {
	n, err := l.FS.Free(dir)
	time.Sleep(5 * time.Millisecond)
	return n, err
}

func (l late) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(l), nil }

// Files that grow concurrently respect the reserve together.
func TestFilesThatGrowAtOnceLeaveEnough(t *testing.T) {
	const left, file = 2 << 20, 8 << 20
	fsys, o := scarce(t, 24<<20)
	o.SegmentBytes = file
	o.FS = late{fsys}
	s := mustOpen(t, o)
	s.Leave(left)
	filler, err := fsys.Create("/d/others", false)
	if err == nil {
		err = filler.Allocate(0, 17<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := random(buffer(1<<20, 0))
	var all sync.WaitGroup
	for g := range int64(8) {
		all.Go(func() {
			for off := g * file; off < (g+1)*file; off += 1 << 20 {
				if err := s.Write(off, p); err != nil && !errors.Is(err, unix.ENOSPC) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if free(t, fsys) != left {
		t.Errorf("%d are left of %d", free(t, fsys), left)
	}
	if err := filler.Close(); err != nil {
		t.Error(err)
	}
}

// After a failure for another reason than room, no smaller allocation is tried.
func TestRoomIsNotSoughtWhereItIsNotMissing(t *testing.T) {
	fsys := vfs.NewFaulty(vfs.NewMem(1 << 20))
	o := small(fsys, false)
	s := mustOpen(t, o)
	fails := fsys.Add(&vfs.Rule{Ops: vfs.OpAllocate, Err: unix.EIO})
	if err := s.Write(0, buffer(Block, 0)); !errors.Is(err, unix.EIO) || fails.Fired() != 1 {
		t.Errorf("%v, after %d attempts", err, fails.Fired())
	}
}
