package store

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/transfer/slots"
)

const piece = 100_000

// fill writes checkpoints until one fails. It returns how many succeeded, and the error.
func (c *client) fill(from int64) (n int64, err error) {
	for n = 0; n < 1000; n++ {
		if _, err = c.put(from+n, random(piece, uint64(from+n))); err != nil {
			return n, err
		}
	}
	c.t.Fatal("it never gets full")
	return 0, nil
}

func TestFailingDiskIsAnErrorWhereItMattersAndIsForgottenWhenItRecovers(t *testing.T) {
	for name, how := range map[string]*vfs.Rule{
		"EIO":               {Ops: vfs.OpWrite, Err: syscall.EIO},
		"ENOSPC":            {Ops: vfs.OpWrite, Err: syscall.ENOSPC},
		"ENOSPC after some": {Ops: vfs.OpWrite, Err: syscall.ENOSPC, Short: true, ShortBytes: 4096},
		"no space reserved": {Ops: vfs.OpAllocate, Err: syscall.ENOSPC},
		"no file":           {Ops: vfs.OpOpen, Skip: 1, Err: syscall.EMFILE},
	} {
		for _, patient := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				rule := &vfs.Rule{Ops: how.Ops, Err: how.Err, Skip: how.Skip, Short: how.Short, ShortBytes: how.ShortBytes}
				fs := vfs.NewFaulty(vfs.NewMem(64<<20), rule)
				s := open(t, cached(1<<20, 16<<20, fs))
				h := newClient(t, s, "h")
				out := h.mustPut(0, random(piece, 0))
				e := wants(t, h.wait(out.Ticket, status.TierDisk), status.IO)
				if e.Tier != status.TierDisk || !errors.Is(e, rule.Err) || e.Errno == 0 {
					t.Fatalf("%+v", e)
				}
				if st, err := s.Ticket(out.Ticket); err != nil || st.Failed != 1<<status.TierDisk || !st.Captured || st.Gone {
					t.Fatalf("%+v %v", st, err)
				}
				n, err := h.fill(1)
				if e := wants(t, err, status.IO); n < 8 || !errors.Is(e, rule.Err) || e.Tier != status.TierDisk {
					t.Fatalf("after %d: %+v", n, e)
				}
				for k := range n + 1 {
					h.mustGet(k, random(piece, uint64(k)), operation.RestoreArgs{})
				}
				_, err = h.putArgs(500, random(piece, 500), operation.CheckpointArgs{Patient: patient})
				wants(t, err, status.IO)
				rule.Disable()
				for k := int64(500); k < 530; k++ {
					if _, err := h.putArgs(k, random(piece, uint64(k)), operation.CheckpointArgs{Patient: patient}); err != nil {
						t.Fatalf("the disk has recovered, but: %v", err)
					}
				}
				if err := h.wait(out.Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
				for k := range n + 1 {
					h.mustGet(k, random(piece, uint64(k)), operation.RestoreArgs{})
				}
				for k := int64(500); k < 530; k++ {
					h.mustGet(k, random(piece, uint64(k)), operation.RestoreArgs{})
				}
				drained(t, s)
			})
		}
	}
}

func TestDiskOnlyStoreOnAFailingDisk(t *testing.T) {
	rule := &vfs.Rule{Ops: vfs.OpWrite, Err: syscall.EIO}
	s := open(t, cached(0, 16<<20, vfs.NewFaulty(vfs.NewMem(64<<20), rule)))
	h := newClient(t, s, "h")
	p := random(piece, 1)
	_, err := h.put(1, p)
	if e := wants(t, err, status.IO); e.Tier != status.TierDisk || e.Errno != int(syscall.EIO) {
		t.Fatalf("%+v", e)
	}
	out, err := h.putArgs(2, p, operation.CheckpointArgs{SourceStays: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // during the capture, and later
		if e := wants(t, h.wait(out.Ticket, status.TierNone), status.IO); e.Errno != int(syscall.EIO) {
			t.Fatalf("%+v", e)
		}
	}
	if st, err := s.Ticket(out.Ticket); err != nil || st.Captured || st.Failed == 0 || !st.Gone {
		t.Fatalf("%+v %v", st, err)
	}
	rule.Disable()
	h.mustPut(1, p)
	h.mustGet(1, p, operation.RestoreArgs{})
	drained(t, s)
}

func TestFailingReads(t *testing.T) {
	for name, host := range map[string]int64{"by the cache": 1 << 20, "past it": 0} {
		for what, rule := range map[string]*vfs.Rule{
			"EIO":       {Ops: vfs.OpRead, Err: syscall.EIO},
			"too short": {Ops: vfs.OpRead, Short: true, ShortBytes: 4096},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				rule.Disable()
				s := open(t, cached(host, 16<<20, vfs.NewFaulty(vfs.NewMem(64<<20), rule)))
				h := newClient(t, s, "h")
				h.putDown(1, random(piece, 1))
				if host > 0 {
					h.evict(1, piece)
				}
				rule.Enable()
				code := status.IO
				if rule.Err == nil { // the bytes are missing
					code = status.Corrupt
				}
				for range 3 {
					_, _, err := h.get(1, piece, operation.RestoreArgs{})
					if e := wants(t, err, code); e.Tier != status.TierDisk || rule.Err != nil && e.Errno != int(syscall.EIO) {
						t.Fatalf("%+v", e)
					}
					_, _, err = h.lease(1, operation.RestoreArgs{Last: true})
					wants(t, err, code)
				}
				h.mustPut(2, random(piece, 2))
				if host > 0 {
					h.mustGet(2, random(piece, 2), operation.RestoreArgs{})
				}
				rule.Disable()
				h.mustGet(1, random(piece, 1), operation.RestoreArgs{Last: true})
				drained(t, s)
			})
		}
	}
}

func TestFlippedBitsOnDiskAreFoundAndHarmNoOther(t *testing.T) {
	for name, host := range map[string]int64{"by the cache": 1 << 20, "past it": 0} {
		t.Run(name, func(t *testing.T) {
			s := open(t, cached(host, 16<<20, vfs.NewMem(64<<20)))
			h := newClient(t, s, "h")
			sizes := []int{1000, 0, 50_000, 7}
			for k := range int64(3) {
				regions, _, slot := wide(sizes, uint64(k))
				a := operation.CheckpointArgs{Key: model.Key{Number: k}, Regions: regions, Layout: []byte("wide"), Slot: slot, FD: h.fd, Tier: status.TierNone}
				var out operation.Outcome
				op, code, err := h.h.Checkpoint(&a, &out)
				if err == nil {
					err = drive(t, op, code, h.fd, &out)
				}
				if err == nil {
					err = h.wait(out.Ticket, status.TierDisk)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if host > 0 {
				for k := range int64(3) {
					h.evict(k, piece)
				}
			}
			regions, want, _ := wide(sizes, 1)
			if err := h.h.Corrupt(model.Key{Number: 1}, status.TierDisk, regions[2].Offset+33_333); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, _, err := h.lease(1, operation.RestoreArgs{})
				if e := wants(t, err, status.Corrupt); e.Tier != status.TierDisk || e.Region != 2 {
					t.Fatalf("%+v", e)
				}
			}
			// A region that is not damaged can still be restored.
			l := h.mustLease(1, operation.RestoreArgs{Select: []int32{0, 3}})
			if !bytes.Equal(view(l, 1000), want[0]) {
				t.Fatal("region 0 differs")
			}
			release(t, l)
			for _, k := range []int64{0, 2} {
				checkWide3(t, h, k, sizes)
			}
			drained(t, s)
		})
	}
}

func checkWide3(t *testing.T, h *client, k int64, sizes []int) {
	t.Helper()
	regions, want, _ := wide(sizes, uint64(k))
	l, out, err := h.lease(k, operation.RestoreArgs{})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, l)
	for i, p := range want {
		at := regions[i].Offset
		if !bytes.Equal(view(l, int(out.Slot))[at:at+int64(len(p))], p) {
			t.Fatalf("checkpoint %d, region %d differs", k, i)
		}
	}
}

func TestFlippedBitInTheHost(t *testing.T) {
	for _, verify := range []string{"first", "always", "off"} {
		t.Run(verify, func(t *testing.T) {
			c := cached(8<<20, 0, nil)
			c.Verify = verify
			s := open(t, c)
			h := newClient(t, s, "h")
			h.mustPut(1, random(piece, 1))
			release(t, h.mustLease(1, operation.RestoreArgs{}))
			s.Lock() // not by Corrupt, which makes the store verify again
			r := h.h.h.Get(model.Key{Number: 1})
			slots.Slot(s.Cache, r, 0)[77] ^= 4
			s.Unlock()
			l, _, err := h.lease(1, operation.RestoreArgs{})
			if verify == "always" {
				if e := wants(t, err, status.Corrupt); e.Tier != status.TierHost || e.Region != 0 {
					t.Fatalf("%+v", e)
				}
			} else if err != nil {
				t.Fatalf("a lease that was verified is verified again: %v", err)
			} else {
				release(t, l)
			}
			_, _, err = h.get(1, piece, operation.RestoreArgs{})
			if verify == "off" {
				if err != nil {
					t.Fatal(err)
				}
			} else {
				wants(t, err, status.Corrupt)
			}
			drained(t, s)
		})
	}
}

func TestBlockedDiskDelaysOnlyCallersThatNeedIt(t *testing.T) {
	fs, rule := blocked(vfs.OpRead|vfs.OpWrite, 64<<20)
	c := cached(2<<20, 16<<20, fs)
	c.Prefetch = false // with it, a capture would wait for the stalled flush rather than break the promise to a prefetched checkpoint
	s := open(t, c)
	defer rule.Release()
	h, w := newClient(t, s, "h"), newClient(t, s, "h")
	h.putDown(1, random(piece, 1))
	h.evict(1, piece)
	if err := h.h.Clear(); err != nil {
		t.Fatal(err)
	}
	h.putDown(1, random(piece, 1))
	for k := int64(2); h.inHost(1); k++ {
		h.putDown(k, random(piece, uint64(k)))
	}
	rule.Enable()
	began := time.Now()
	needs, code, err := w.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, Lease: true, FD: w.fd}, &operation.Outcome{})
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	for k := int64(200); k < 205; k++ {
		h.mustPut(k, random(piece, uint64(k)))
		h.mustGet(k, random(piece, uint64(k)), operation.RestoreArgs{})
		release(t, h.mustLease(k, operation.RestoreArgs{}))
		h.drop(k)
	}
	if _, err := s.Stats(); err != nil {
		t.Fatal(err)
	}
	if time.Since(began) > hang/2 {
		t.Error("it was held up")
	}
	rule.Release()
	var out operation.Outcome
	if err := drive(t, needs, code, w.fd, &out); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(view(out.Lease, piece), random(piece, 1)) {
		t.Fatal("differs")
	}
	release(t, out.Lease)
	drained(t, s)
}

func TestFullHostOnlyStore(t *testing.T) {
	s := open(t, cached(1<<20, 0, nil))
	h := newClient(t, s, "h")
	n, err := h.fill(0)
	if e := wants(t, err, status.TierFull); n != 10 || e.Tier != status.TierHost {
		t.Fatalf("after %d: %+v", n, e)
	}
	for k := range n {
		h.mustGet(k, random(piece, uint64(k)), operation.RestoreArgs{})
	}
	// A rewrite takes the room of the old version, unless the new one is larger: then it does not evict the old one.
	for i, stays := range []bool{false, true} {
		p := random(piece, uint64(33+i))
		if _, err = h.putArgs(3, p, operation.CheckpointArgs{SourceStays: stays}); err != nil {
			t.Fatal(err)
		}
		h.mustGet(3, p, operation.RestoreArgs{})
		_, err = h.putArgs(3, random(2*piece, 3), operation.CheckpointArgs{SourceStays: stays})
		wants(t, err, status.TierFull)
		h.mustGet(3, p, operation.RestoreArgs{})
	}
	// A patient capture waits until another call makes room.
	op, code, err := h.pending(99, random(piece, 99), operation.CheckpointArgs{Patient: true}, &operation.Outcome{})
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	other := newClient(t, s, "h")
	l := other.mustLease(4, operation.RestoreArgs{})
	other.drop(4)
	if rung(h.fd, 20) {
		t.Fatal("woken though the lease still has the room")
	}
	release(t, l)
	if err := drive(t, op, code, h.fd, &operation.Outcome{}); err != nil {
		t.Fatal(err)
	}
	h.mustGet(99, random(piece, 99), operation.RestoreArgs{})
	st, err := s.Stats()
	if err != nil || st.Waits.CaptureWait < 10e6 {
		t.Fatalf("the wait for room is not accounted: %+v, %v", st.Waits, err)
	}
	drained(t, s)
}

func TestDropEndsTheWaitForOneTicketButNotForAll(t *testing.T) {
	fs, rule := blocked(vfs.OpWrite, 64<<20)
	s := open(t, cached(2<<20, 16<<20, fs))
	defer rule.Release()
	h, w, all := newClient(t, s, "h"), newClient(t, s, "h"), newClient(t, s, "h")
	out := h.mustPut(1, random(piece, 1))
	rule.Enable()
	op, code, err := s.Wait(w.h, out.Ticket, status.TierDisk, w.fd)
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	opAll, codeAll, err := s.Wait(all.h, 0, status.TierDisk, all.fd)
	if err != nil || codeAll != status.Pending {
		t.Fatal(codeAll, err)
	}
	h.drop(1)
	wants(t, drive(t, op, code, w.fd, &operation.Outcome{}), status.Dropped)
	if err := drive(t, opAll, codeAll, all.fd, &operation.Outcome{}); err != nil {
		t.Fatalf("what was dropped owes nothing, but: %v", err)
	}
	rule.Release()
	drained(t, s)
}
