package store

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// failing returns a durable store with two checkpoints, whose catalog cannot be written while the rule is enabled.
func failing(t *testing.T) (h *client, fails *vfs.Rule, disk *vfs.Mem, c config.Config) {
	t.Helper()
	return failingFor(t, 0)
}

// failingFor is failing with a least pause between two attempts.
func failingFor(t *testing.T, pause time.Duration) (h *client, fails *vfs.Rule, disk *vfs.Mem, c config.Config) {
	t.Helper()
	fails = &vfs.Rule{Ops: vfs.OpSync | vfs.OpOpen, Err: unix.ENOSPC}
	fails.Disable()
	disk = vfs.NewMem(64 << 20)
	c = stored(1<<20, 4<<20, vfs.NewFaulty(disk, fails))
	c.StallAfter, c.RetryAfter = 20*time.Millisecond, pause
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	h = newClient(t, s, "h")
	for k := range int64(2) {
		if err := h.wait(h.mustPut(k, random(4000, uint64(k))).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	fails.Enable()
	h.drop(1)
	h.awaitOwed(1)
	return h, fails, disk, c
}

// awaitOwed waits until n changes have failed and are not in flight again.
func (c *client) awaitOwed(n int) {
	c.t.Helper()
	eventually(c.t, "what failed is owed", func() bool {
		c.s.Lock()
		defer c.s.Unlock()
		return c.s.Disk.Figures().Pending.Retries == n
	})
}

// keysAfter returns the keys that exist when the store is opened again.
func keysAfter(t *testing.T, c config.Config) []int64 {
	t.Helper()
	return newClient(t, reopened(t, c), "h").numbers()
}

// A drop that failed becomes durable as soon as writes succeed again, without another call.
func TestDropThatFailedIsTriedAgainInTime(t *testing.T) {
	h, fails, _, c := failing(t)
	fails.Disable()
	eventually(t, "the drop is durable", func() bool {
		h.s.Lock()
		defer h.s.Unlock()
		p := h.s.Disk.Figures().Pending
		return p.Retries == 0 && p.Releases == 0 && p.Tombstones == 0
	})
	shut(t, h.s)
	if keys := keysAfter(t, c); len(keys) != 1 || keys[0] != 0 {
		t.Fatalf("%v are there", keys)
	}
}

// … and at the latest when the store closes.
func TestDropThatFailedIsTriedWhenTheStoreCloses(t *testing.T) {
	h, fails, _, c := failingFor(t, 24*time.Hour) // no other attempt is made
	fails.Disable()
	shut(t, h.s)
	if keys := keysAfter(t, c); len(keys) != 1 || keys[0] != 0 {
		t.Fatalf("%v are there", keys)
	}
}

// Close returns an error about a drop that never became durable. The dropped checkpoint may exist again.
func TestDropThatIsNotMadeIsToldOf(t *testing.T) {
	h, _, disk, c := failing(t)
	if err := h.h.Retain(model.Retention{Last: 5}); err != nil {
		t.Fatal(err)
	}
	h.awaitOwed(2)
	fd := eventfd(t)
	e := wants(t, driveClose(t, h.s.Close(fd), fd), status.IO)
	if e.Errno != int(unix.ENOSPC) || e.Tier != status.TierDisk || !strings.Contains(e.Error(), "drops 1, rules of retention 1") {
		t.Errorf("%v", e)
	}
	if err := driveClose(t, h.s.Close(fd), fd); err != nil {
		t.Errorf("it is told twice: %v", err)
	}
	c.FS = disk.Crash(rand.New(rand.NewPCG(1, 1)), 0) // otherwise unsynced changes may survive
	if keys := keysAfter(t, c); len(keys) != 2 {
		t.Fatalf("%v are there", keys)
	}
}

// Repeated drops of one key that fail are queued once, and one change makes all of them durable.
func TestDropsOfOneKeyAreOwedOnce(t *testing.T) {
	h, fails, _, c := failing(t)
	for range 50 {
		if _, err := h.putArgs(1, random(4000, 9), operation.CheckpointArgs{Tier: status.TierHost}); err != nil {
			t.Fatal(err)
		}
		h.drop(1)
		if err := h.h.Clear(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all has failed", func() bool {
		h.s.Lock()
		defer h.s.Unlock()
		p := h.s.Disk.Figures().Pending
		return p.Failed == 101 && p.Retries == 2
	})
	fails.Disable()
	if err := h.wait(h.mustPut(5, random(4000, 1)).Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", func() bool {
		h.s.Lock()
		defer h.s.Unlock()
		p := h.s.Disk.Figures().Pending
		return p.Retries+p.Tombstones+p.Releases == 0
	})
	shut(t, h.s)
	if keys := keysAfter(t, c); len(keys) != 1 || keys[0] != 5 {
		t.Fatalf("%v are there", keys)
	}
}
