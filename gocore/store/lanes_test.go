package store

import (
	"testing"
	"time"

	"velocpy/gocore/plan"
	"velocpy/gocore/status"
	"velocpy/gocore/vfs"
)

// onDiskAlone is a store in which so many checkpoints lie on disk and nowhere else, and room in host memory for them.
func onDiskAlone(t *testing.T, c Config, n int64, size int) *client {
	h := newClient(t, open(t, c), "h")
	for k := range n {
		h.putDown(k, random(size, uint64(k)))
	}
	for k := range n {
		h.evict(k, int(*c.Host/4))
	}
	for k := int64(1000); h.h.h.Get(plan.Number(k)) != nil; k++ {
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

// As many are read ahead at once as there are to be; what a restore waits for is not behind them.
func TestWhatIsWaitedForIsReadBesideWhatIsNot(t *testing.T) {
	const size = 100_000 // goes alone
	fs, gate := blocked(vfs.OpRead, 64<<20)
	c := cached(2<<20, 32<<20, fs)
	c.Workers = 2
	h := onDiskAlone(t, c, 6, size)
	defer gate.Release()
	gate.Enable()
	h.hint(0, 1, 2, 3)
	h.prefetch()
	eventually(t, "two are read", func() bool { return gate.Blocked() == 2 })
	time.Sleep(20 * time.Millisecond)
	if n := gate.Blocked(); n != 2 {
		t.Fatalf("%d are read ahead at once", n)
	}
	var out Outcome
	back := make([]byte, size)
	op, code, err := h.h.Restore(&RestoreArgs{Key: plan.Number(5), Into: []Region{region(back, 0)}, FD: h.fd}, &out)
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	eventually(t, "what is waited for is read beside them", func() bool { return gate.Blocked() == 3 })
	gate.Release()
	if err := drive(t, op, code, h.fd, &out); err != nil {
		t.Fatal(err)
	}
	for k := range int64(6) {
		h.mustGet(k, random(size, uint64(k)), RestoreArgs{})
	}
	drained(t, h.s)
}

// The next one is read while what has been read is still being compared.
func TestReadingGoesOnWhileBytesAreCompared(t *testing.T) {
	h := onDiskAlone(t, cached(2<<20, 32<<20, vfs.NewMem(64<<20)), 1, 100_000)
	c := h.s.crews[1]
	w := &worker{s: h.s, crew: c}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	for range c.lanes {
		(&worker{s: h.s, crew: c}).begin()
	}
	if !c.busy(h.s.eng) {
		t.Fatal("all lanes are taken")
	}
	c.reading--
	w.begin()
	h.s.mu.Unlock()
	w.hasRead()
	w.hasRead() // what is told twice counts once
	h.s.mu.Lock()
	if c.busy(h.s.eng) || c.reading != c.lanes-1 {
		t.Fatalf("%d of %d lanes are taken", c.reading, c.lanes)
	}
	w.end()
	c.reading -= c.lanes - 1
}

// Small checkpoints that nobody waits for yet come many at a time.
func TestSmallLoadsAheadComeByManyAtATime(t *testing.T) {
	fs := vfs.NewFaulty(vfs.NewMem(64 << 20))
	c := cached(8<<20, 32<<20, fs)
	c.Workers = 1
	const n, size = 320, 9000
	h := onDiskAlone(t, c, n, size)
	var keys []int64
	for k := range int64(n) {
		keys = append(keys, k)
	}
	before := fs.Calls(vfs.OpRead)
	h.hint(keys...)
	h.prefetch()
	for _, k := range keys {
		eventually(t, "all are there", func() bool { return h.inHost(k) })
	}
	if calls := fs.Calls(vfs.OpRead) - before; calls > 16 { // … in pieces; batches of 1 MiB would be a read each as well
		t.Errorf("%d reads for %d", calls, n)
	}
	for k := range int64(n) {
		h.mustGet(k, random(size, uint64(k)), RestoreArgs{})
	}
	drained(t, h.s)
}
