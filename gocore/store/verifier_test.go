package store

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/plan"
)

// verified tells whether a lease of a key would be given without verifying its bytes.
func (c *client) verified(k int64) bool {
	c.s.Lock()
	defer c.s.Unlock()
	rec := c.h.h.Get(model.NumberKey(k))
	return rec != nil && c.s.Engine.Complete(rec, 0) && c.s.Engine.Fragment(rec, 0).Verified
}

// verifierRests waits until the background verifier has verified every copy that it has to.
func (c *client) verifierRests() {
	c.t.Helper()
	eventually(c.t, "the background verifier rests", func() bool {
		c.s.Lock()
		defer c.s.Unlock()
		return c.s.workers.VerifierRests() && !c.s.Engine.HasUnverified()
	})
}

// hint hints restores of keys in the given order.
func (c *client) hint(keys ...int64) {
	c.t.Helper()
	hints := make([]plan.Hint, len(keys))
	for i, k := range keys {
		hints[i] = plan.Hint{Op: plan.Restore, Key: model.NumberKey(k)}
	}
	if _, err := c.h.Hint(hints); err != nil {
		c.t.Fatal(err)
	}
}

// Checkpoints that are lent next have been verified before. Damage before that, or since, is still found.
func TestLeasesAreComparedAhead(t *testing.T) {
	h := newClient(t, open(t, cached(12<<20, 0, nil)), "h")
	for k := range int64(8) {
		h.mustPut(k, random(1_100_000, uint64(k)))
	}
	corrupt := func(k int64) {
		t.Helper()
		if err := h.h.Corrupt(model.NumberKey(k), status.TierHost, 77_777); err != nil {
			t.Fatal(err)
		}
	}
	corrupt(5)
	h.hint(7, 6, 5, 4, 3, 2, 1, 0)
	release(t, h.mustLease(7, operation.RestoreArgs{}))
	for _, k := range []int64{6, 4, 3, 2, 1, 0} {
		eventually(t, "what is hinted is compared", func() bool { return h.verified(k) })
	}
	h.verifierRests()
	if h.verified(5) {
		t.Fatal("damage was not noticed")
	}
	corrupt(3)
	for _, k := range []int64{6, 5, 4, 3, 2, 1, 0} {
		l, _, err := h.lease(k, operation.RestoreArgs{})
		if k == 5 || k == 3 {
			wants(t, err, status.Corrupt)
			continue
		}
		if err != nil || !bytes.Equal(view(l, 1_100_000), random(1_100_000, uint64(k))) {
			t.Fatalf("checkpoint %d: %v", k, err)
		}
		release(t, l)
	}
	drained(t, h.s)
}

// If the disk has the bytes, damage that the background verifier found costs the lease a read from a lower tier and nothing else.
func TestAProofThatFailsLeavesTheRestoreToFindOthers(t *testing.T) {
	c := stored(8<<20, 16<<20, vfs.NewMem(64<<20))
	h := newClient(t, open(t, c), "h")
	p := random(1_100_000, 1)
	for k := range int64(3) {
		if err := h.wait(h.mustPut(k, p).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.h.Corrupt(model.NumberKey(1), status.TierHost, 5); err != nil {
		t.Fatal(err)
	}
	h.hint(0, 1, 2)
	release(t, h.mustLease(0, operation.RestoreArgs{}))
	eventually(t, "what is hinted is compared", func() bool { return h.verified(2) })
	h.verifierRests()
	l := h.mustLease(1, operation.RestoreArgs{})
	if !bytes.Equal(view(l, len(p)), p) {
		t.Fatal("a lease shows the wrong bytes")
	}
	release(t, l)
	drained(t, h.s)
}

// The background verifier runs beside captures that replace the copies it reads, drops, evictions, leases that are written into, and Close.
func TestProofsBesideEverythingElse(t *testing.T) {
	const size, keys, clients, rounds = 1_200_000, 8, 3, 10
	s := open(t, cached(keys*clients*size/2, 64<<20, vfs.NewMem(128<<20)))
	var all sync.WaitGroup
	for n := range clients {
		h := newClient(t, s, string(rune('a'+n)))
		all.Add(1)
		go func() {
			defer all.Done()
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for round := range uint64(rounds) {
				for k := range int64(keys) {
					h.mustPut(k, random(size, round<<8|uint64(k)))
				}
				order := r.Perm(keys)
				for _, k := range order {
					h.hint(int64(k))
				}
				for _, k := range order {
					if r.IntN(8) == 0 {
						h.drop(int64(k))
						continue
					}
					last := r.IntN(3) == 0
					l := h.mustLease(int64(k), operation.RestoreArgs{Last: last})
					if !bytes.Equal(view(l, size), random(size, round<<8|uint64(k))) {
						t.Errorf("round %d: checkpoint %d differs", round, k)
					}
					if last && l.Writable {
						clear(view(l, size))
					}
					release(t, l)
				}
			}
		}()
	}
	all.Wait()
	h := newClient(t, s, "last") // the store closes during its verifications
	var order []int64
	for k := range int64(keys) {
		h.mustPut(k, random(size, uint64(k)))
		order = append(order, k)
	}
	h.hint(order...)
	release(t, h.mustLease(0, operation.RestoreArgs{}))
}
