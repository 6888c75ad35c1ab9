package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/status"
	"velocpy/gocore/vfs"
)

// fill takes all that a disk has left, and gives back what takes it away again.
func fill(t *testing.T, disk *vfs.Mem) (release func()) {
	t.Helper()
	const name = "/filler"
	f, err := disk.Create(name, false)
	if err != nil {
		t.Fatal(err)
	}
	for step, at := int64(1<<20), int64(0); step >= 64<<10; {
		if err := f.Allocate(at, step); err != nil {
			step /= 2
			continue
		}
		at += step
	}
	if free, err := disk.Free("/"); err != nil || free != 0 {
		t.Fatalf("%d bytes are free, %v", free, err)
	}
	return func() {
		if err := errors.Join(f.Close(), disk.Remove(name)); err != nil {
			t.Error(err)
		}
	}
}

// lateFull is a disk that has room for a catalog file only until it is synced, while it is full.
type lateFull struct {
	vfs.FS
	full atomic.Bool
}

func (l *lateFull) Create(name string, direct bool) (vfs.File, error) {
	f, err := l.FS.Create(name, direct)
	if err == nil && strings.Contains(name, "catalog-") {
		f = lateFile{f, l}
	}
	return f, err
}

type lateFile struct {
	vfs.File
	l *lateFull
}

func (f lateFile) Sync() error {
	if f.l.full.Load() {
		return unix.ENOSPC
	}
	return f.File.Sync()
}

// filesOf counts the files of a store by what their names begin with.
func filesOf(t *testing.T, fs vfs.FS, dir string) map[string]int {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, "-")
		n[kind]++
	}
	return n
}

// Others fill the disk, so that the catalog cannot be written, at once or only when it is synced. However often it is tried, the rooms of what failed come back, no
// files are left over, and the error is that of the disk; when there is space again the next attempt succeeds, and the store closes.
func TestAFullDiskTakesNoRoomFromTheStore(t *testing.T) {
	for _, host := range []int64{0, 8 << 20} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint("host ", host, " late ", late), func(t *testing.T) {
				disk := vfs.NewMem(24 << 20)
				fs := &lateFull{FS: disk}
				c := stored(host, 4<<20, fs)
				s, err := Open(c)
				if err != nil {
					t.Fatal(err)
				}
				h := newClient(t, s, "h")
				put := func(k int64) error {
					out, err := h.put(k, random(100_000, uint64(k)))
					if err == nil {
						err = h.wait(out.Ticket, status.TierDisk)
					}
					return err
				}
				for k := range int64(38) { // all data files have their room before the disk is full
					if err := put(k); err != nil {
						t.Fatal(err)
					}
				}
				for k := int64(10); k < 38; k++ {
					h.drop(k)
				}
				eventually(t, "the drops are durable", func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return len(s.stall.drops) == 0
				})
				release := func() {}
				if late {
					fs.full.Store(true)
				} else {
					release = fill(t, disk)
				}
				before := filesOf(t, disk, c.Path)
				ok, errs := 0, 0
				for i := range int64(800) {
					err := put(100 + i%10)
					if err == nil {
						ok++ // the catalog's file had some room left
						continue
					}
					errs++
					if e := wants(t, err, status.IO); e.Errno != int(unix.ENOSPC) {
						t.Fatalf("attempt %d: %v", i, err)
					}
				}
				if errs < 300 {
					t.Errorf("%d attempts have failed", errs)
				}
				st, err := s.Stats()
				if used := st.Tiers["disk"].Used; err != nil || used > 23*102_400 {
					t.Errorf("%d bytes are used, %v", used, err)
				}
				if after := filesOf(t, disk, c.Path); after["catalog"] > before["catalog"]+1 || after["data"] != before["data"] {
					t.Errorf("%v became %v", before, after)
				}
				if release(); late {
					fs.full.Store(false)
				}
				if err := put(200); err != nil {
					t.Fatalf("there is space again: %v", err)
				}
				if err := h.wait(0, status.TierDisk); err != nil {
					t.Fatal(err)
				}
				shut(t, s)
				c.FS = disk.Crash(rand.New(rand.NewPCG(1, 1)), 0)
				after := newClient(t, reopened(t, c), "h")
				for _, k := range append(make([]int64, 0, 11), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 200) {
					after.mustGet(k, random(100_000, uint64(k)), RestoreArgs{})
				}
			})
		}
	}
}

// A drop that a full disk has refused is made for whoever needs its room, as soon as there is space: nobody waits for a pause between attempts to end.
func TestRoomOfADropThatADiskRefusedIsMadeForWhoNeedsIt(t *testing.T) {
	disk := vfs.NewMem(24 << 20)
	fs := &lateFull{FS: disk}
	c := stored(0, 8*4096, fs)
	h := newClient(t, reopened(t, c), "h")
	for k := range int64(8) {
		h.mustPut(k, random(4000, uint64(k)))
	}
	fs.full.Store(true)
	h.drop(0)
	h.awaitOwed(1)
	h.s.mu.Lock()
	h.s.kept.owed.next = 1 << 62 // no pause ends
	h.s.mu.Unlock()
	fs.full.Store(false)
	eventually(t, "who needs the room has it", func() bool {
		_, err := h.put(9, random(4000, 9))
		return err == nil
	})
}
