package store

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/copier"
	"velocpy/gocore/cuda"
	"velocpy/gocore/cuda/double"
	"velocpy/gocore/device"
	"velocpy/gocore/plan"
	"velocpy/gocore/status"
)

// lowered is a client whose checkpoints 0 and 1, of size bytes, lie in the host tier; the device's tier has room for one.
func lowered(t *testing.T, b *board, cfg Config, size int) *client {
	t.Helper()
	c := newClient(t, open(t, cfg), "h")
	for k := range int64(3) { // the last one takes the room on the device
		c.mustPutOn(b, k, random(size, uint64(k)))
		b.check(c.wait(0, status.TierHost))
	}
	for k, there := range []bool{false, false, true} {
		if c.lies(int64(k), status.TierDevice) != there {
			t.Fatalf("checkpoint %d lies on the device: %v", k, !there)
		}
	}
	return c
}

func (c *client) lies(k int64, tier int) bool {
	info, err := c.h.Lookup(plan.Key{Number: k})
	return err == nil && info.Tiers&(1<<tier) != 0
}

// A restore of what lies below is given while its load still waits for the device: the room's last reader stands still.
func TestRestoreDoesNotWaitForItsLoad(t *testing.T) {
	const size = 1_300_000
	for name, give := range map[string]func(t *testing.T, b *board, c *client) (seen device.Address){
		"lease": func(t *testing.T, b *board, c *client) device.Address {
			l, _, err := c.lease(0, RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			seen := b.alloc(size)
			b.check(b.dev.Borrow(b.stream).Copy(seen, device.Address(l.Base), size))
			b.check(l.Release(b.stream))
			return seen
		},
		"into": func(t *testing.T, b *board, c *client) device.Address {
			seen := b.alloc(size)
			_, err := c.restoreTo(0, RestoreArgs{Into: []Region{onDevice(seen, size, 0)}, Streams: []uint64{b.stream}})
			b.check(err)
			return seen
		},
		"last": func(t *testing.T, b *board, c *client) device.Address {
			l, _, err := c.lease(0, RestoreArgs{Streams: []uint64{b.stream}, Last: true})
			b.check(err)
			seen, zero := b.alloc(size), b.upload(make([]byte, size))
			lane := b.dev.Borrow(b.stream)
			b.check(lane.Copy(seen, device.Address(l.Base), size))
			if !l.Writable {
				t.Error("the last lease is not the caller's")
			}
			b.check(lane.Copy(device.Address(l.Base), zero, size)) // while it is being verified
			b.check(l.Release(b.stream))
			return seen
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			slow := b.foreign()
			reader, _, err := c.lease(2, RestoreArgs{Streams: []uint64{slow}})
			b.check(err)
			open := gate(slow)
			read := b.alloc(size)
			b.check(b.dev.Borrow(slow).Copy(read, device.Address(reader.Base), size))
			b.check(reader.Release(slow))
			seen := give(t, b, c) // hangs if it waits
			open()
			b.follow(b.dev.Borrow(slow))
			if !bytes.Equal(b.look(read, size), random(size, 2)) {
				t.Error("the load came before the reader of the room that it took")
			}
			if !bytes.Equal(b.look(seen, size), random(size, 0)) {
				t.Error("what was given is not what was captured")
			}
			for range 3 {
				c.mustGetOn(b, 1, random(size, 1))
			}
			b.check(c.wait(0, status.TierHost))
		})
	}
}

const damagedSize = 1_300_000

// What the device finds out after a restore was given: the next restore or wait of the history tells, nothing reads the bad copy any
// more, and it leaves when its reader does.
func TestDamageIsFoundBelatedly(t *testing.T) {
	const size = damagedSize
	for name, next := range map[string]func(c *client) error{
		"restore": func(c *client) error {
			_, err := c.restoreTo(1, RestoreArgs{Into: []Region{{Mem: copier.Strided{Base: unsafe.Pointer(&make([]byte, damagedSize)[0])}, Bytes: damagedSize}}})
			return err
		},
		"wait for the history": func(c *client) error { return c.wait(0, status.TierHost) },
		"wait for the store": func(c *client) error {
			var out Outcome
			op, code, err := c.s.Wait(nil, 0, status.TierNone, c.fd)
			if err == nil {
				err = drive(c.t, op, code, c.fd, &out)
			}
			return err
		},
		"close": func(c *client) error {
			var out Outcome
			return drive(c.t, c.s.Close(c.fd), status.Pending, c.fd, &out)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			b.check(c.h.Corrupt(plan.Key{Number: 0}, status.TierHost, size/2))
			l, _, err := c.lease(0, RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			found := func() bool {
				c.s.mu.Lock()
				defer c.s.mu.Unlock()
				return len(c.s.belated) > 0
			}
			eventually(t, "it is found", found)
			if c.lies(0, status.TierDevice) {
				t.Error("the bad copy counts as one")
			}
			e := wants(t, next(c), status.Belated)
			if e.Tier != status.TierHost || e.Region != 0 || !strings.Contains(e.Message(), `"history":"h","key":0`) {
				t.Errorf("tells %+v", e)
			}
			if found() {
				t.Error("told, and kept")
			}
			if name == "close" {
				b.check(l.Release(b.stream))
				return
			}
			_, _, err = c.lease(0, RestoreArgs{Streams: []uint64{b.stream}}) // past the device, whose room the lease still has
			wants(t, err, status.Corrupt)
			b.check(next(c))
			b.check(l.Release(b.stream))
			c.mustGetOn(b, 1, random(size, 1))
			c.mustPutOn(b, 0, random(size, 7))
			b.check(c.wait(0, status.TierHost))
			c.mustGetOn(b, 0, random(size, 7))
		})
	}
}

// Nobody was given the bytes: nothing is told, and whoever restores them finds out.
func TestDamageThatNobodySawIsNotTold(t *testing.T) {
	const size = 1_300_000
	b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
	b.check(c.h.Corrupt(plan.Key{Number: 0}, status.TierHost, size/2))
	for range 20 { // until the captures are long ago
		c.mustGetOn(b, 2, random(size, 2))
	}
	if !c.lies(2, status.TierDevice) {
		t.Fatal("nothing has to make room")
	}
	_, err := c.h.Hint([]plan.Hint{{Op: plan.Restore, Key: plan.Number(0)}})
	b.check(err)
	eventually(t, "it was brought up and thrown away", func() bool {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		return c.s.eng.Use(0).Used == 0
	})
	b.check(c.wait(0, status.TierHost))
	c.mustGetOn(b, 1, random(size, 1))
}

// Who wants to be certain before waits.
func TestVerifyAlwaysWaitsForTheVerification(t *testing.T) {
	const size = 1_300_000
	b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	cfg := b.config(8<<20, 0, 2<<20)
	cfg.Verify = "always"
	c := lowered(t, b, cfg, size)
	b.check(c.h.Corrupt(plan.Key{Number: 0}, status.TierHost, size/2))
	_, _, err := c.lease(0, RestoreArgs{Streams: []uint64{b.stream}})
	if e := wants(t, err, status.Corrupt); e.Tier != status.TierHost || e.Region != 0 {
		t.Errorf("tells %+v", e)
	}
	b.check(c.wait(0, status.TierHost))
	c.mustGetOn(b, 1, random(size, 1))
}

// A load that fails before it is under way is the error of the restore that waits for it.
func TestLoadFailsBeforeItIsQueued(t *testing.T) {
	const size = 1_300_000
	for _, call := range []string{"Copy", "Launch", "RecordEvent"} {
		t.Run(call, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			b.driver.Fail(call, cuda.InvalidValue, 0, 1)
			_, _, err := c.lease(0, RestoreArgs{Streams: []uint64{b.stream}})
			wants(t, err, status.IO)
			b.check(c.wait(0, status.TierHost))
			c.mustGetOn(b, 0, random(size, 0))
		})
	}
}
