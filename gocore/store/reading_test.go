package store

import (
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/transfer/workers"
)

// onDiskAlone returns a store with n checkpoints on disk only, and room for them in host memory.
func onDiskAlone(t *testing.T, c config.Config, n int64, size int) *client {
	h := newClient(t, open(t, c), "h")
	for k := range n {
		h.putDown(k, random(size, uint64(k)))
	}
	for k := range n {
		h.evict(k, int(*c.Host/4))
	}
	for k := int64(1000); h.h.h.Get(model.NumberKey(k)) != nil; k++ {
		h.drop(k)
	}
	return h
}

func (c *client) prefetch() {
	c.t.Helper()
	if err := c.h.Prefetch(); err != nil {
		c.t.Fatal(err)
	}
}

// Exactly Config.Workers loads are read ahead at once. One that a restore waits for is read in parallel. No load that no restore waits for takes its
// worker.
func TestWhatIsWaitedForIsReadBesideWhatIsNot(t *testing.T) {
	const size = 100_000 // too large for a batch
	fs, gate := blocked(vfs.OpRead, 64<<20)
	c := cached(2<<20, 32<<20, fs)
	c.Workers = 2
	h := onDiskAlone(t, c, 6, size)
	defer gate.Release()
	gate.Enable()
	stays := func(n int) {
		t.Helper()
		eventually(t, "so many are read", func() bool { return gate.Blocked() == n })
		time.Sleep(20 * time.Millisecond)
		if now := gate.Blocked(); now != n {
			t.Fatalf("%d are read at once, not %d", now, n)
		}
	}
	h.hint(0, 1, 2, 3)
	h.prefetch()
	stays(2)
	var all []func() error
	for i, k := range []int64{0, 5} { // one that is being read, and one that is not prefetched
		fd, out := eventfd(t), &operation.Outcome{}
		op, code, err := h.h.Restore(&operation.RestoreArgs{Key: model.NumberKey(k), Into: []model.Region{region(make([]byte, size), 0)}, FD: fd}, out)
		if err != nil || code != status.Pending {
			t.Fatal(code, err)
		}
		all = append(all, func() error { return drive(t, op, code, fd, out) })
		stays(2 + i)
	}
	gate.Release()
	for _, end := range all {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	for k := range int64(6) {
		h.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
	}
	drained(t, h.s)
}

// Small checkpoints that are read ahead, and that are adjacent on disk in a few places, are read many at a time.
func TestSmallLoadsAheadComeByManyAtATime(t *testing.T) {
	const n, size = 320, 8192
	for name, c := range map[string]struct {
		key         func(i int64) int64
		least, most int64 // reads
	}{
		"upwards":   {func(i int64) int64 { return i }, 1, 4},
		"backwards": {func(i int64) int64 { return n - 1 - i }, 1, 4},
		"by turns":  {func(i int64) int64 { return i%2*n/2 + i/2 }, 1, 5},
		"apart":     {func(i int64) int64 { return i * 7 % n }, n / 2, n},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewFaulty(vfs.NewMem(256 << 20))
			cfg := cached(64<<20, 160<<20, fs)
			cfg.Workers = 1
			h := onDiskAlone(t, cfg, n, size)
			var keys []int64
			for i := range int64(n) {
				keys = append(keys, c.key(i))
			}
			before := fs.Calls(vfs.OpRead)
			h.hint(keys...)
			h.prefetch()
			for _, k := range keys {
				eventually(t, "all are there", func() bool { return h.inHost(k) })
			}
			if calls := int64(fs.Calls(vfs.OpRead) - before); calls < c.least || calls > c.most {
				t.Errorf("%d reads for %d", calls, n)
			}
			for k := range int64(n) {
				h.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
			}
			drained(t, h.s)
		})
	}
}

// A batch has few checkpoints that lie apart on disk. A restore that waits for one of them, or for another checkpoint, does not wait for hundreds of
// reads.
func TestFewThatLieApartAreReadInOneGo(t *testing.T) {
	fs, gate := blocked(vfs.OpRead, 64<<20)
	c := cached(8<<20, 32<<20, fs)
	c.Workers = 1
	const n, size = 300, 4000
	h := onDiskAlone(t, c, n, size)
	defer gate.Release()
	gate.Enable()
	var keys []int64
	for i := range int64(n) {
		keys = append(keys, i*7%n)
	}
	h.hint(keys...)
	h.prefetch()
	eventually(t, "a batch is being read", func() bool { return gate.Blocked() == 1 })
	h.s.Lock()
	batch := h.s.Disk.Figures().Pending.Requests
	h.s.Unlock()
	if batch < 2 || batch > workers.BatchApart+1 {
		t.Errorf("%d are read in one go", batch)
	}
	gate.Release()
	for _, k := range keys {
		h.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
	}
	drained(t, h.s)
}

// Small loads that have been read are complete although a large load that a worker took with them is still being read.
func TestSmallOnesDoNotWaitForALargeOneBehindThem(t *testing.T) {
	fs, gate := blocked(vfs.OpRead, 64<<20)
	c := cached(16<<20, 64<<20, fs)
	c.Workers = 1
	h := onDiskAlone(t, c, 4, 5000)
	defer gate.Release()
	h.putDown(9, random(3<<20, 9))
	h.evict(9, 4<<20)
	h.s.Lock()
	gate.From = h.s.Engine.Fragment(h.h.h.Get(model.NumberKey(9)), 1).Offset
	h.s.Unlock()
	gate.Enable()
	h.hint(0, 1, 2, 3, 9)
	h.prefetch()
	eventually(t, "the large one is being read", func() bool { return gate.Blocked() > 0 })
	eventually(t, "the small ones are there", func() bool { return h.inHost(0) && h.inHost(3) })
	h.s.Lock()
	reading := h.s.Disk.Figures().Pending.Requests
	h.s.Unlock()
	if h.inHost(9) || reading != 1 {
		t.Errorf("the large one is being read, by one worker: not by %d", reading)
	}
	gate.Release()
	h.mustGet(9, random(3<<20, 9), operation.RestoreArgs{})
	drained(t, h.s)
}
