package store

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// watched is a disk whose syncs fail while one rule is enabled, and that is full while another is. It records the most bytes that were in use.
type watched struct {
	vfs.FS
	disk  *vfs.Mem
	fails *vfs.Rule
	full  *vfs.Rule

	mu   sync.Mutex
	peak int64
}

const watchedBytes = 1 << 40

func newWatched() *watched {
	w := &watched{
		disk: vfs.NewMem(watchedBytes), fails: &vfs.Rule{Ops: vfs.OpSync, Err: unix.EIO}, full: &vfs.Rule{Ops: vfs.OpWrite | vfs.OpAllocate, Err: unix.ENOSPC},
	}
	w.fails.Disable()
	w.full.Disable()
	w.FS = vfs.NewFaulty(w.disk, w.fails, w.full)
	return w
}

func (w *watched) look() {
	free, _ := w.disk.Free("/")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peak = max(w.peak, watchedBytes-free)
}

func (w *watched) most() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peak
}

func (w *watched) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(w), nil }

func (w *watched) Create(name string, direct bool) (vfs.File, error) {
	f, err := w.FS.Create(name, direct)
	if err != nil {
		return nil, err
	}
	return watchedFile{f, w}, nil
}

type watchedFile struct {
	vfs.File
	w *watched
}

func (f watchedFile) WriteAt(p []byte, off int64) (int, error) {
	defer f.w.look()
	return f.File.WriteAt(p, off)
}

func (f watchedFile) Allocate(off, n int64) error {
	defer f.w.look()
	return f.File.Allocate(off, n)
}

// beside is how much a disk may hold beyond the budget.
const beside = 64 << 20

// A disk on which every sync fails holds no more than the budget, and no descriptors leak. When syncs work again, so does the store.
func TestFailingSyncsKeepToTheBudget(t *testing.T) {
	for _, host := range []int64{0, 8 << 20} {
		for _, before := range []int64{0, 5} {
			w := newWatched()
			c := stored(host, 256<<20, w)
			c.SegmentBytes = 0
			s := reopened(t, c)
			h := newClient(t, s, "h")
			want := map[int64][]byte{}
			put := func(k int64) error {
				p := random(20_000, uint64(k))
				out, err := h.put(k, p)
				if err == nil {
					err = h.wait(out.Ticket, status.TierDisk)
				}
				if err == nil {
					want[k] = p
				}
				return err
			}
			for k := range before {
				if err := put(k); err != nil {
					t.Fatal(err)
				}
			}
			files := w.disk.OpenFiles()
			w.fails.Enable()
			for k := range int64(10) {
				if err := put(100 + k); status.CodeOf(err) != status.IO {
					t.Fatalf("host %d: %v", host, err)
				}
			}
			if most := w.most(); most > 256<<20+beside {
				t.Errorf("host %d, %d before: the disk had %d MiB", host, before, most>>20)
			}
			if n := w.disk.OpenFiles(); n > files+2 {
				t.Errorf("%d files are open, %d were", n, files)
			}
			w.fails.Disable()
			if err := put(200); err != nil {
				t.Fatalf("syncs work again: %v", err)
			}
			if err := h.wait(0, status.TierDisk); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the whole budget is given out", func() bool {
				st, err := s.Stats()
				return err == nil && st.Tiers["disk"].Capacity == 256<<20
			})
			for k, p := range want {
				h.mustGet(k, p, operation.RestoreArgs{})
			}
			x := c
			x.FS = w.disk.Crash(rand.New(rand.NewPCG(1, 1)), 0)
			after := newClient(t, reopened(t, x), "h")
			for k, p := range want {
				after.mustGet(k, p, operation.RestoreArgs{})
			}
			st, err := after.s.Stats()
			if err != nil || st.Tiers["disk"].Capacity != 256<<20 {
				t.Fatalf("%+v, %v", st.Tiers["disk"], err)
			}
		}
	}
}

// Syncs fail and the disk is full at random times, while checkpoints are written, replaced and dropped. The data files keep to the budget, and the
// budget stays usable. All acknowledged checkpoints exist, in the store and after a crash at any such time.
func TestAFailingDiskAtRandom(t *testing.T) {
	const budget, segmentBytes = 2 << 20, 256 << 10
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := newWatched()
		c := stored([]int64{0, 512 << 10}[seed%2], budget, w)
		c.SegmentBytes = segmentBytes
		s := reopened(t, c)
		h := newClient(t, s, "h")
		want := map[int64][]byte{}
		rounds := 150
		if testing.Short() {
			rounds = 50
		}
		for range rounds {
			w.fails.Disable()
			w.full.Disable()
			switch r.IntN(8) {
			case 0, 1:
				w.fails.Enable()
			case 2:
				w.full.Enable()
			}
			k := r.Int64N(8)
			if _, ok := want[k]; ok && r.IntN(3) == 0 {
				h.drop(k)
				delete(want, k)
				continue
			}
			p := random(r.IntN(300_000), r.Uint64())
			out, err := h.put(k, p)
			if err == nil {
				err = h.wait(out.Ticket, status.TierDisk)
			}
			switch {
			case err == nil:
				want[k] = p
			case status.CodeOf(err) != status.IO && status.CodeOf(err) != status.TierFull:
				t.Fatalf("seed %d: %v", seed, err)
			case c.Host != nil: // the new version is in memory; or it was refused, and the previous one is the checkpoint
				if got, _, err := h.get(k, len(p), operation.RestoreArgs{}); err == nil && bytes.Equal(got, p) {
					want[k] = p
				}
			}
			for k, p := range want {
				h.mustGet(k, p, operation.RestoreArgs{})
			}
		}
		w.fails.Disable()
		w.full.Disable()
		if err := h.wait(0, status.TierDisk); err != nil {
			t.Fatalf("seed %d: the disk works again: %v", seed, err)
		}
		x := c
		x.FS = w.disk.Crash(r, 0)
		after := newClient(t, reopened(t, x), "h")
		for k, p := range want {
			after.mustGet(k, p, operation.RestoreArgs{})
		}
		if most := w.most(); most > budget+beside/16 {
			t.Errorf("seed %d: the disk had %d KiB", seed, most>>10)
		}
		for _, h := range []*client{h, after} {
			if err := h.h.Clear(); err != nil {
				t.Fatal(err)
			}
			for k := int64(1000); k < 1000+budget>>12; k++ { // each has its own time: the machine may be busy
				eventually(t, "all of the budget can be used", func() bool {
					if _, err := h.h.Lookup(model.NumberKey(k)); err == nil {
						return true
					}
					out, err := h.put(k, random(4096, 5))
					if err == nil {
						err = h.wait(out.Ticket, status.TierDisk)
					}
					if err != nil {
						time.Sleep(time.Millisecond)
					}
					return err == nil
				})
			}
		}
	}
}
