package segment

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"velocpy/gocore/vfs"

	"golang.org/x/sys/unix"
)

// On a disk that has less than a whole file needs, what there is can be written to, but for what is left to the catalog; what has been written can be
// written again, also by another process; and when there is room again there is no end.
func TestADiskThatHasLessThanAWholeFile(t *testing.T) {
	const disk, step, others = 40 << 20, 256 << 10, 8 << 20
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprint("named ", named), func(t *testing.T) {
			fsys := vfs.NewMem(disk)
			if err := fsys.MkdirAll("/d"); err != nil {
				t.Fatal(err)
			}
			filler, err := fsys.Create("/d/others", false)
			if err == nil {
				err = filler.Allocate(0, others)
			}
			if err != nil {
				t.Fatal(err)
			}
			o := Options{FS: fsys, Dir: "/d", Capacity: 1 << 30, Named: named}
			s := mustOpen(t, o)
			p, end := random(buffer(step, 0)), int64(0)
			for err = nil; err == nil; end += step {
				err = s.Write(end, p)
			}
			end -= step
			free, _ := fsys.Free("/d")
			if !errors.Is(err, unix.ENOSPC) || end != disk-others-spareBytes || free != spareBytes {
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

// What fails for another reason than room is not tried with less.
func TestRoomIsNotSoughtWhereItIsNotMissing(t *testing.T) {
	fsys := vfs.NewFaulty(vfs.NewMem(1 << 20))
	o := small(fsys, false)
	s := mustOpen(t, o)
	fails := fsys.Add(&vfs.Rule{Ops: vfs.OpAllocate, Err: unix.EIO})
	if err := s.Write(0, buffer(Block, 0)); !errors.Is(err, unix.EIO) || fails.Fired() != 1 {
		t.Errorf("%v, after %d attempts", err, fails.Fired())
	}
}
