package store

import (
	"bytes"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/operation"
)

const slotBytes = 1 << 20

// Every tier is full of checkpoints that have no other copy. Each of them can be lent all the same.
func TestLeasePassesAHostThatCannotBeEmptied(t *testing.T) {
	s := open(t, cached(4*slotBytes, 4*slotBytes, vfs.NewMem(8*slotBytes)))
	c := newClient(t, s, "h")
	for k := range 8 {
		if _, err := c.put(int64(k), random(slotBytes, uint64(k))); err != nil {
			t.Fatalf("checkpoint %d: %v", k, err)
		}
	}
	for k := range 8 {
		l, _, err := c.lease(int64(k), operation.RestoreArgs{})
		if err != nil {
			t.Fatalf("lease of %d: %v", k, err)
		}
		got := view(l, slotBytes)
		if !bytes.Equal(got, random(slotBytes, uint64(k))) {
			t.Fatalf("checkpoint %d differs", k)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// A store without room for two versions of a slot replaces the old one, but not while it is being read.
func TestRewriteInAFullHost(t *testing.T) {
	s := open(t, cached(4*slotBytes, 0, nil))
	c := newClient(t, s, "h")
	for k := range 4 {
		if _, err := c.put(int64(k), random(slotBytes, uint64(k))); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 20 {
		if _, err := c.put(int64(round%4), random(slotBytes, uint64(100+round))); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got, _, err := c.get(int64(round%4), slotBytes, operation.RestoreArgs{})
		if err != nil || !bytes.Equal(got, random(slotBytes, uint64(100+round))) {
			t.Fatalf("round %d: another version, or %v", round, err)
		}
	}
	l, _, err := c.lease(0, operation.RestoreArgs{})
	if err != nil {
		t.Fatal(err)
	}
	before := append([]byte(nil), view(l, slotBytes)...)
	if _, err := c.put(0, random(slotBytes, 7)); status.CodeOf(err) != status.TierFull {
		t.Fatalf("a slot that is lent was taken, or %v", err)
	}
	if got, _, err := c.get(0, slotBytes, operation.RestoreArgs{}); err != nil || !bytes.Equal(got, before) || !bytes.Equal(view(l, slotBytes), before) {
		t.Fatalf("the lent version changed, or %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
