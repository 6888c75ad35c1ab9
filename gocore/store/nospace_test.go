package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/disk/durable"
)

// fill occupies all free space of a disk. release frees it again.
func fill(t *testing.T, disk *vfs.Mem) (release func()) {
	t.Helper()
	name := "/filler"
	for i := 0; ; i++ {
		if _, err := disk.Stat(name); err != nil {
			break
		}
		name = fmt.Sprint("/filler ", i)
	}
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

// lateFull is a disk that, while it is full, has space for a catalog file only until the file is synced.
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

func (l *lateFull) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(l), nil }

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

// filesOf counts the files of a store by the prefix of their names.
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

// Other processes fill the disk, so that the catalog cannot be written, either at once or when it is synced. However often it is tried, the space of
// failed checkpoints is released, no files are left over, and the error is that of the disk. When there is space again, the next attempt succeeds,
// and the store closes.
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
				for k := range int64(38) { // all data files have their space before the disk is full
					if err := put(k); err != nil {
						t.Fatal(err)
					}
				}
				for k := int64(10); k < 38; k++ {
					h.drop(k)
				}
				eventually(t, "the drops are durable", func() bool {
					s.Lock()
					defer s.Unlock()
					return s.Disk.Figures().Pending.Releases == 0
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
						ok++ // the catalog's file had some space left
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
					after.mustGet(k, random(100_000, uint64(k)), operation.RestoreArgs{})
				}
			})
		}
	}
}

// crashedAndFull returns a store with checkpoints 0 to 5 whose process died, on a disk with no free space.
func crashedAndFull(t *testing.T, rule model.Retention) (disk *vfs.Mem, c config.Config, release func()) {
	t.Helper()
	first := vfs.NewMem(64 << 20)
	c = stored(1<<20, 48<<20, first)
	h := newClient(t, reopened(t, c), "h")
	for k := range int64(6) {
		if err := h.wait(h.mustPut(k, random(100_000, uint64(k))).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	h.drop(5)
	if err := h.wait(h.mustPut(6, random(100_000, 6)).Ticket, status.TierDisk); err != nil { // durable behind the drop
		t.Fatal(err)
	}
	h.s.Lock()
	h.s.Disk.SetRule("h", &rule) // the store does not know the rule, and drops nothing
	h.s.Unlock()
	if err := h.wait(h.mustPut(4, random(100_000, 4)).Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	disk = first.Crash(rand.New(rand.NewPCG(1, 1)), 1)
	c.FS = disk
	return disk, c, fill(t, disk)
}

// With no byte free a store can be opened for writing, several times without being closed. What is dropped then is gone.
func TestAFullDiskHasRoomToDrop(t *testing.T) {
	disk, c, _ := crashedAndFull(t, model.Retention{})
	for k := range int64(3) {
		s, err := Open(c)
		if err != nil {
			t.Fatalf("opened %d times: %v", k, err)
		}
		h := newClient(t, s, "h")
		h.drop(k)
		eventually(t, "the drop is durable", func() bool {
			s.Lock()
			defer s.Unlock()
			p := s.Disk.Figures().Pending
			return p.Releases+p.Retries+p.Tombstones == 0
		})
		disk = disk.Crash(rand.New(rand.NewPCG(1, uint64(k))), 1)
		shut(t, s)
		c.FS = disk
	}
	h := newClient(t, reopened(t, c), "h")
	if got := h.numbers(); !slices.Equal(got, []int64{3, 6, 4}) {
		t.Fatalf("%v are there", got)
	}
}

// … and it can be cleaned up.
func TestAFullDiskCanBeClearedUp(t *testing.T) {
	disk, c, _ := crashedAndFull(t, model.Retention{Last: 2})
	for i := range 3 {
		got, err := durable.Collect(durable.Options{FS: disk, Dir: c.Path}, false)
		if err != nil {
			t.Fatalf("attempt %d: %+v, %v", i, got, err)
		}
		if want := []int{4, 0, 0}[i]; got.Dropped != want || (got.Files > 0) != (want > 0) {
			t.Errorf("attempt %d: %+v", i, got)
		}
	}
}

// A store without ballast, and without space, fails to open with an error that says so. It leaves no file behind however often it is tried. When
// there is space, a ballast is made again.
func TestAttemptsToOpenOnAFullDiskLeaveNothing(t *testing.T) {
	disk, c, release := crashedAndFull(t, model.Retention{})
	if err := disk.Remove(c.Path + "/ballast"); err != nil {
		t.Fatal(err)
	}
	again := fill(t, disk)
	before := filesOf(t, disk, c.Path)
	for range 5 {
		_, err := Open(c)
		if e := wants(t, err, status.IO); e.Errno != int(unix.ENOSPC) {
			t.Fatal(err)
		}
		if _, err := durable.Collect(durable.Options{FS: disk, Dir: c.Path}, false); !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	if after := filesOf(t, disk, c.Path); !maps.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
	release()
	again()
	h := newClient(t, reopened(t, c), "h")
	if err := h.wait(h.mustPut(7, random(1000, 7)).Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	if n := filesOf(t, disk, c.Path)["ballast"]; n != 1 {
		t.Errorf("%d files of ballast", n)
	}
}

// A drop that a full disk has refused is committed for a capture that needs its space as soon as there is space: the capture does not wait for the
// end of the pause.
func TestRoomOfARefusedDropIsMadeForCallersThatNeedIt(t *testing.T) {
	disk := vfs.NewMem(24 << 20)
	fs := &lateFull{FS: disk}
	c := stored(0, 8*4096, fs)
	c.RetryAfter = 24 * time.Hour // no pause ends
	h := newClient(t, reopened(t, c), "h")
	for k := range int64(8) {
		h.mustPut(k, random(4000, uint64(k)))
	}
	fs.full.Store(true)
	h.drop(0)
	h.awaitOwed(1)
	fs.full.Store(false)
	eventually(t, "who needs the room has it", func() bool {
		_, err := h.put(9, random(4000, 9))
		return err == nil
	})
}
