package store

import (
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/transfer/slots"
)

// damage flips a bit of a checkpoint in host memory, as a write by other code would: the store is not told.
func (c *client) damage(k int64) {
	c.t.Helper()
	c.s.Lock()
	defer c.s.Unlock()
	rec := c.h.h.Get(model.NumberKey(k))
	if rec == nil {
		c.t.Fatalf("no checkpoint %d", k)
	}
	slots.Slot(c.s.Cache, rec, 0)[3] ^= 1
}

// Leases of bytes in the memory where they were captured are verified for every checkpoint with "first". By default they are verified for one of 16, and
// with "off" for none. Bytes that are copied into the caller's memory are verified always, except with "off".
func TestLeasesOfWhatHasNotMovedAreSampled(t *testing.T) {
	const count, size = 640, 1000
	for verify, want := range map[string][2]int{"": {count / 32, count / 8}, "moved": {count / 32, count / 8}, "first": {count, count}, "off": {0, 0}} {
		t.Run("verify "+verify, func(t *testing.T) {
			cfg := cached(4<<20, 0, vfs.NewMem(1<<20))
			cfg.Verify = verify
			c := newClient(t, open(t, cfg), "h")
			leases, copies := 0, 0
			for k := range int64(count) {
				c.mustPut(k, random(size, uint64(k)))
				c.damage(k)
				l, _, err := c.lease(k, operation.RestoreArgs{})
				if leases += corrupt(t, err); err == nil {
					release(t, l)
				}
				_, _, err = c.get(k, size, operation.RestoreArgs{})
				copies += corrupt(t, err)
			}
			if leases < want[0] || leases > want[1] {
				t.Errorf("%d of %d leases found the damage, want %v", leases, count, want)
			}
			if all := map[bool]int{true: 0, false: count}[verify == "off"]; copies != all {
				t.Errorf("%d of %d copies found the damage, want %d", copies, count, all)
			}
		})
	}
}

// corrupt counts an error that reports damaged bytes; any other error fails the test.
func corrupt(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	if status.CodeOf(err) != status.Corrupt {
		t.Fatal(err)
	}
	return 1
}
