package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

func TestLeasesStayExactThroughDropRewriteAndClose(t *testing.T) {
	c := cached(1<<20, 16<<20, jitter{vfs.NewMem(32 << 20), time.Millisecond})
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	h := newClient(t, s, "h")
	const n, size = 12, 100_000
	var leases []*operation.Lease
	var want [][]byte
	lend := func(k int64, p []byte, a operation.RestoreArgs) {
		l, _, err := h.lease(k, a)
		if err != nil {
			if wants(t, err, status.TierFull); len(leases) < 4 {
				t.Fatal("full too early")
			}
			return
		}
		leases, want = append(leases, l), append(want, p)
	}
	for k := range int64(n) {
		if _, err := h.put(k, random(size, uint64(k))); err != nil {
			if wants(t, err, status.TierFull); len(leases) < 4 {
				t.Fatal("full too early")
			}
			continue
		}
		lend(k, random(size, uint64(k)), operation.RestoreArgs{})
		switch k % 4 {
		case 0:
			h.drop(k)
		case 1:
			_, err := h.put(k, random(size, uint64(k+100)))
			if err == nil {
				lend(k, random(size, uint64(k+100)), operation.RestoreArgs{})
			}
		case 2:
			lend(k, random(size, uint64(k)), operation.RestoreArgs{Last: true})
		}
	}
	shut(t, s)
	if memory.Total() == 0 {
		t.Fatal("the memory went with leases out")
	}
	for i, l := range leases {
		if !bytes.Equal(view(l, size), want[i]) {
			t.Fatalf("lease %d differs after close", i)
		}
	}
	var all sync.WaitGroup
	for i, l := range leases {
		all.Add(1)
		go func() {
			defer all.Done()
			if !bytes.Equal(view(l, size), want[i]) {
				t.Errorf("lease %d differs", i)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	gone(t, c)
}

func TestLastLeaseIsTheCallersAlone(t *testing.T) {
	s := open(t, cached(8<<20, 16<<20, vfs.NewMem(32<<20)))
	h := newClient(t, s, "h")
	p := random(1<<20, 1)
	h.mustPut(1, p)
	shared := h.mustLease(1, operation.RestoreArgs{})
	last := h.mustLease(1, operation.RestoreArgs{Last: true})
	if shared.Writable || !last.Writable || shared.Base == last.Base {
		t.Fatalf("shared %+v, last %+v", shared, last)
	}
	clear(view(last, len(p)))
	if !bytes.Equal(view(shared, len(p)), p) {
		t.Fatal("writing into a lease for the last time shows in another one")
	}
	if _, err := h.h.Lookup(model.Key{Number: 1}); err == nil {
		t.Fatal("not consumed")
	}
	release(t, last)
	release(t, shared)
	h.mustPut(2, p)
	alone := h.mustLease(2, operation.RestoreArgs{Last: true})
	if !alone.Writable || alone.Reads == nil {
		t.Fatal("a lease for the last time that nobody shares needs no copy")
	}
	release(t, alone)
	drained(t, s)
}

// blocked returns a disk that can be stalled.
func blocked(ops vfs.Op, capacity int64) (*vfs.Faulty, *vfs.Rule) {
	r := &vfs.Rule{Ops: ops, Block: true}
	r.Disable()
	return vfs.NewFaulty(vfs.NewMem(capacity), r), r
}

// putDown writes a checkpoint and leaves it on disk only.
func (c *client) putDown(k int64, p []byte) {
	c.t.Helper()
	out := c.mustPut(k, p)
	if err := c.wait(out.Ticket, status.TierDisk); err != nil {
		c.t.Fatal(err)
	}
}

// evict fills the host tier with other checkpoints until the copy of k that it has now is gone. By then the prefetcher may have loaded k from the disk again, if a
// restore has started it and the guess expects k.
func (c *client) evict(k int64, size int) {
	c.t.Helper()
	copied := c.copiedToHost(k)
	for i := int64(1000); copied != 0 && c.copiedToHost(k) == copied; i++ {
		if i > 1100 {
			c.t.Fatal("it stays in the host tier")
		}
		c.putDown(i, random(size, uint64(i)))
	}
}

// copiedToHost is a number that no other copy of k in the host tier has, or 0 if the tier has none.
func (c *client) copiedToHost(k int64) uint32 {
	c.t.Helper()
	c.s.Lock()
	defer c.s.Unlock()
	rec := c.h.h.Get(model.NumberKey(k))
	if rec == nil {
		c.t.Fatalf("there is no checkpoint %d", k)
	}
	if host := c.s.HostTier(); c.s.Engine.Complete(rec, host) {
		return c.s.Engine.Fragment(rec, host).Born
	}
	return 0
}

func (c *client) inHost(k int64) bool {
	c.t.Helper()
	i, err := c.h.Lookup(model.Key{Number: k})
	if err != nil {
		c.t.Fatal(err)
	}
	return i.Ready
}

// foreign opens another file under the number of a closed descriptor. written tells whether any goroutine has written to it.
func foreign(t *testing.T, fd int32) (written func() bool) {
	t.Helper()
	other := eventfd(t)
	if err := unix.Dup3(int(other), int(fd), unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	return func() bool { return rung(fd, 20) }
}

// Every kind of wait is ended early, by Cancel or by Close. Afterwards no goroutine may access the caller's memory or descriptor.
func TestEndingEarlyInEveryState(t *testing.T) {
	const size = 300_000
	type situation struct {
		stop  vfs.Op // the operation at which the disk is stalled
		host  int64
		begin func(h *client, mem []byte) (*operation.Op, status.Code, error)
	}
	restore := func(lease bool, n int) func(h *client, mem []byte) (*operation.Op, status.Code, error) {
		return func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			a := operation.RestoreArgs{Key: model.Key{Number: 1}, FD: h.fd, Lease: lease}
			if n > size {
				a.Key.Number = 2
			}
			if !lease {
				a.Into = []model.Region{region(mem[:n], 0)}
			}
			return h.h.Restore(&a, &operation.Outcome{})
		}
	}
	situations := map[string]situation{
		"waiting for a load":             {vfs.OpRead, 1 << 20, restore(true, 0)},
		"waiting for a load into arrays": {vfs.OpRead, 1 << 20, restore(false, size)},
		"direct fetch":                   {vfs.OpRead, 0, restore(true, 0)},
		"direct fetch into arrays":       {vfs.OpRead, 0, restore(false, size)},
		"fetches queued": {vfs.OpRead, 0, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			for range 3 {
				other := newClient(h.t, h.s, "h")
				op, _, err := restore(true, 0)(other, nil)
				if err != nil {
					return nil, 0, err
				}
				defer op.Cancel()
			}
			return restore(true, 0)(h, mem)
		}},
		"waiting for room": {vfs.OpWrite, 1 << 20, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			for k := int64(10); ; k++ {
				op, code, err := h.pending(k, mem[:size], operation.CheckpointArgs{}, &operation.Outcome{})
				if err != nil || code == status.Pending {
					return op, code, err
				}
			}
		}},
		"waiting for room with patience": {vfs.OpWrite, 1 << 20, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			for k := int64(10); ; k++ {
				op, code, err := h.pending(k, mem[:size], operation.CheckpointArgs{Patient: true}, &operation.Outcome{})
				if err != nil || code == status.Pending {
					return op, code, err
				}
			}
		}},
		"rewriting while its flush runs": {vfs.OpWrite, 1 << 20, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			for k := int64(10); k < 12; k++ {
				h.mustPut(k, mem[:size])
				op, _, err := h.s.Wait(h.h, 0, status.TierDisk, h.fd) // its flush runs, and is stalled
				if err != nil {
					return nil, 0, err
				}
				op.Cancel()
			}
			return h.pending(11, mem[:3*size], operation.CheckpointArgs{Patient: true}, &operation.Outcome{})
		}},
		"spill running": {vfs.OpWrite, 0, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			return h.pending(10, mem[:size], operation.CheckpointArgs{}, &operation.Outcome{})
		}},
		"spill queued": {vfs.OpWrite, 0, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			for k := range int64(4) {
				other := newClient(h.t, h.s, "h")
				op, _, err := other.pending(20+k, mem[:size], operation.CheckpointArgs{}, &operation.Outcome{})
				if err != nil {
					return nil, 0, err
				}
				defer op.Cancel()
			}
			return h.pending(10, mem[:size], operation.CheckpointArgs{}, &operation.Outcome{})
		}},
		"waiting for a ticket": {vfs.OpWrite, 1 << 20, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			out := h.mustPut(10, mem[:size])
			return h.s.Wait(h.h, out.Ticket, status.TierDisk, h.fd)
		}},
		"copying in slices": {vfs.OpPunch, 256 << 20, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			return h.pending(10, mem, operation.CheckpointArgs{}, &operation.Outcome{})
		}},
		"copying out in slices": {vfs.OpPunch, 256 << 20, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			h.mustPut(2, mem)
			return restore(false, len(mem))(h, mem)
		}},
		"a capture that nobody waits for": {vfs.OpWrite, 1 << 20, func(h *client, mem []byte) (*operation.Op, status.Code, error) {
			out, err := h.putArgs(10, mem[:size], operation.CheckpointArgs{SourceStays: true})
			if err != nil {
				return nil, 0, err
			}
			h.drop(10)
			if st, err := h.s.Ticket(out.Ticket); err != nil || !st.Gone {
				h.t.Errorf("%+v %v", st, err)
			}
			return h.s.Wait(h.h, 0, status.TierDisk, h.fd)
		}},
	}
	for name, x := range situations {
		for _, closing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, close %v", name, closing), func(t *testing.T) {
				fs, rule := blocked(x.stop, 256<<20)
				s := open(t, cached(x.host, 64<<20, fs))
				defer rule.Release()
				h := newClient(t, s, "h")
				p := random(size, 1)
				h.putDown(1, p)
				if x.host == 1<<20 {
					h.evict(1, size)
				}
				mem, err := unix.Mmap(-1, 0, 200<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
				if err != nil {
					t.Fatal(err)
				}
				rule.Enable()
				op, code, err := x.begin(h, mem)
				if err != nil {
					t.Fatal(err)
				}
				var closer *operation.Op
				cfd := eventfd(t)
				if closing {
					closer = s.Close(cfd)
				}
				switch began := time.Now(); {
				case code == status.Pending && closing:
					if !rung(h.fd, 1000) {
						t.Error("close does not wake who waits")
					}
					_, err := op.Step(&operation.Outcome{})
					wants(t, err, status.Closed)
				case code == status.Pending || code == status.Again:
					op.Cancel()
					if time.Since(began) > hang/2 {
						t.Error("cancel waits")
					}
				default:
					t.Logf("ended at once: %v", code)
				}
				// The memory and the descriptor are the caller's again.
				if err := unix.Munmap(mem); err != nil {
					t.Fatal(err)
				}
				written := foreign(t, h.fd)
				rule.Release()
				if closing {
					if err := driveClose(t, closer, cfd); err != nil {
						t.Fatal(err)
					}
				} else {
					other := newClient(t, s, "h")
					other.mustGet(1, p, operation.RestoreArgs{})
					other.mustPut(99, p)
					other.mustGet(99, p, operation.RestoreArgs{})
					drained(t, s)
				}
				if written() {
					t.Fatal("somebody wrote to a descriptor of an operation that had ended")
				}
			})
		}
	}
}

func TestCancelledRewriteKeepsTheOldVersion(t *testing.T) {
	s := open(t, cached(128<<20, 0, nil))
	h := newClient(t, s, "h")
	p := random(1000, 1)
	h.mustPut(1, p)
	big := make([]byte, 48<<20)
	op, code, err := h.pending(1, big, operation.CheckpointArgs{}, &operation.Outcome{})
	if err != nil {
		t.Fatal(err)
	}
	if code != status.Again {
		t.Skip("this machine copies 48 MiB in one slice")
	}
	op.Cancel()
	h.mustGet(1, p, operation.RestoreArgs{})
	drained(t, s)
}

func TestClosingManyTimesFromManyGoroutinesWithWorkInFlight(t *testing.T) {
	for i := range 20 {
		c := cached(1<<20, 16<<20, jitter{vfs.NewMem(32 << 20), 300 * time.Microsecond})
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for g := range 4 {
			h := newClient(t, s, fmt.Sprint(g%2))
			all.Add(1)
			go func() {
				defer all.Done()
				h.until(rand.New(rand.NewPCG(uint64(i), uint64(g))))
			}()
		}
		time.Sleep(rand.N(5 * time.Millisecond))
		for range 2 {
			fd := eventfd(t)
			all.Add(1)
			go func() {
				defer all.Done()
				if err := driveClose(t, s.Close(fd), fd); err != nil {
					t.Error(err)
				}
			}()
		}
		all.Wait()
		gone(t, c)
		if _, err := s.History("x"); err == nil {
			t.Fatal("a closed store takes work")
		}
	}
}

// until makes random calls until the store is closed.
func (c *client) until(r *rand.Rand) {
	for {
		k, n := r.Int64N(20), r.IntN(200_000)
		var err error
		switch r.IntN(4) {
		case 0, 1:
			_, err = c.put(k, make([]byte, n))
		case 2:
			var l *operation.Lease
			if l, _, err = c.lease(k, operation.RestoreArgs{Last: r.IntN(2) == 0}); err == nil {
				defer func() { _ = l.Release() }() // after the close
			}
		default:
			err = c.h.Drop(model.Key{Number: k})
		}
		if status.CodeOf(err) == status.Closed && err != nil {
			return
		}
	}
}

func TestDebugModeFindsWriters(t *testing.T) {
	c := cached(8<<20, 0, nil)
	c.Debug = true
	s := open(t, c)
	h := newClient(t, s, "h")
	h.mustPut(1, random(1000, 1))
	l := h.mustLease(1, operation.RestoreArgs{})
	view(l, 1000)[500] ^= 1
	e := wants(t, l.Release(), status.Corrupt)
	if e.Tier != status.TierHost || e.Region != 0 {
		t.Fatalf("%+v", e)
	}
	_, _, err := h.lease(1, operation.RestoreArgs{})
	wants(t, err, status.Corrupt)
	h.mustPut(1, random(1000, 2))
	release(t, h.mustLease(1, operation.RestoreArgs{}))
	own := h.mustLease(1, operation.RestoreArgs{Last: true})
	view(own, 1000)[500] ^= 1
	release(t, own)
	drained(t, s)
}

// Without checksums of the captures, debug mode compares with the bytes that were lent.
func TestDebugModeFindsWritersWithoutChecksums(t *testing.T) {
	c := cached(8<<20, 0, nil)
	c.Debug, c.Checksum = true, false
	s := open(t, c)
	h := newClient(t, s, "h")
	h.mustPut(1, random(1000, 1))
	release(t, h.mustLease(1, operation.RestoreArgs{}))
	l := h.mustLease(1, operation.RestoreArgs{})
	view(l, 1000)[500] ^= 1
	e := wants(t, l.Release(), status.Corrupt)
	if e.Tier != status.TierHost || e.Region != 0 {
		t.Fatalf("%+v", e)
	}
	own := h.mustLease(1, operation.RestoreArgs{Last: true})
	view(own, 1000)[500] ^= 1
	release(t, own)
	drained(t, s)
}

func TestEmptyBaseIsNotNull(t *testing.T) {
	inAllShapes(t, func(t *testing.T, s *Store) {
		h := newClient(t, s, "h")
		for _, stays := range []bool{false, true} {
			out, err := h.putArgs(1, nil, operation.CheckpointArgs{SourceStays: stays})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.wait(out.Ticket, status.TierNone); err != nil {
				t.Fatal(err)
			}
			l := h.mustLease(1, operation.RestoreArgs{})
			if l.Base == unsafe.Pointer(nil) {
				t.Fatal("null")
			}
			release(t, l)
			h.mustGet(1, nil, operation.RestoreArgs{Last: true})
		}
		drained(t, s)
	})
}
