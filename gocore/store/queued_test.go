package store

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/plan"
)

// lowered returns a client whose checkpoints 0 and 1, of size bytes, are in the host tier. The device's tier has room for one.
func lowered(t *testing.T, b *board, cfg config.Config, size int) *client {
	t.Helper()
	c := newClient(t, open(t, cfg), "h")
	c.pinned()
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

// pinned waits until the host tier is pinned. Copies from it then need not wait until the device has read the source.
func (c *client) pinned() {
	c.t.Helper()
	eventually(c.t, "the host tier is pinned", func() bool { return c.s.Host.Watermark().End() == c.s.Host.Size() })
}

// hold keeps loads from writing the only slot on the device: a stream that reads the checkpoint in it is stalled until the gate opens.
func (c *client) hold(b *board, gate func(uint64) func(), k int64) (open func()) {
	c.t.Helper()
	slow := b.foreign()
	reader, _, err := c.lease(k, operation.RestoreArgs{Streams: []uint64{slow}})
	b.check(err)
	open = gate(slow)
	b.check(reader.Release(slow))
	return open
}

// doubts returns the number of checkpoints whose latest load is known to be damaged.
func (c *client) doubts() int {
	c.s.Lock()
	defer c.s.Unlock()
	return c.s.Findings.Suspects()
}

// loading tells whether a load of a checkpoint to the first tier is in progress.
func (c *client) loading(number int64) bool {
	c.s.Lock()
	defer c.s.Unlock()
	return c.s.Engine.Loading(c.h.h.Get(model.Key{Number: number}), 0)
}

func (c *client) found() bool {
	c.s.Lock()
	defer c.s.Unlock()
	return c.s.Findings.Found() > 0
}

func (c *client) lies(k int64, tier int) bool {
	info, err := c.h.Lookup(model.Key{Number: k})
	return err == nil && info.Tiers&(1<<tier) != 0
}

// A restore of a checkpoint from the host tier returns while its load still waits for the device, where the last reader of the slot is stalled.
func TestRestoreDoesNotWaitForItsLoad(t *testing.T) {
	const size = 1_300_000
	for name, give := range map[string]func(t *testing.T, b *board, c *client) (seen device.Address){
		"lease": func(t *testing.T, b *board, c *client) device.Address {
			l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			seen := b.alloc(size)
			b.check(b.dev.Borrow(b.stream).Copy(seen, device.Address(l.Base), size))
			b.check(l.Release(b.stream))
			return seen
		},
		"into": func(t *testing.T, b *board, c *client) device.Address {
			seen := b.alloc(size)
			_, err := c.restoreTo(0, operation.RestoreArgs{Into: []model.Region{onDevice(seen, size, 0)}, Streams: []uint64{b.stream}})
			b.check(err)
			return seen
		},
		"last": func(t *testing.T, b *board, c *client) device.Address {
			l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}, Last: true})
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
			reader, _, err := c.lease(2, operation.RestoreArgs{Streams: []uint64{slow}})
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

const slotSize = 1_300_000

// early returns a client with a lease of checkpoint 0 whose load is held up until the gate opens.
func early(t *testing.T) (b *board, c *client, l *operation.Lease, open func()) {
	t.Helper()
	b, gate := gated(t, double.Config{})
	c = lowered(t, b, b.config(8<<20, 0, 2<<20), slotSize)
	open = c.hold(b, gate, 2)
	l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
	b.check(err)
	return b, c, l, open
}

// A stream that is named after the restore waits for the bytes as well.
func TestLeaseIsReadOnOneMoreStream(t *testing.T) {
	const size = slotSize
	b, c, l, open := early(t)
	other, seen := b.foreign(), b.alloc(size)
	b.check(l.Use(other))
	b.check(b.dev.Borrow(other).Copy(seen, device.Address(l.Base), size))
	b.check(l.Release(b.stream, other))
	open()
	b.follow(b.dev.Borrow(other))
	if !bytes.Equal(b.look(seen, size), random(size, 0)) {
		t.Error("it was read too early")
	}
	elsewhere := newClient(t, c.s, "on the host")
	if _, err := elsewhere.put(0, random(1000, 5)); err != nil {
		t.Fatal(err)
	}
	host := elsewhere.mustLease(0, operation.RestoreArgs{})
	b.check(host.Use(other))
	b.check(host.Release())
}

// The device finds damage after a restore has returned. The next restore or wait of the history returns the error. No later restore reads the damaged
// copy, and the copy is evicted when its reader has finished.
func TestDamageIsFoundByDeferredVerification(t *testing.T) {
	const size = slotSize
	for name, next := range map[string]func(c *client) error{
		"restore": func(c *client) error {
			_, err := c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{{Mem: model.Strided{Base: unsafe.Pointer(&make([]byte, slotSize)[0])}, Bytes: slotSize}}})
			return err
		},
		"wait for the history": func(c *client) error { return c.wait(0, status.TierHost) },
		"wait for the store": func(c *client) error {
			var out operation.Outcome
			op, code, err := c.s.Wait(nil, 0, status.TierNone, c.fd)
			if err == nil {
				err = drive(c.t, op, code, c.fd, &out)
			}
			return err
		},
		"close": func(c *client) error {
			var out operation.Outcome
			return drive(c.t, c.s.Close(c.fd), status.Pending, c.fd, &out)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, size/2))
			open := c.hold(b, gate, 2)
			l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			open()
			eventually(t, "it is found", c.found)
			if c.lies(0, status.TierDevice) {
				t.Error("the bad copy counts as one")
			}
			e := wants(t, next(c), status.Belated)
			if e.Tier != status.TierHost || e.Region != 0 || !strings.Contains(e.Message(), `"history":"h","key":0`) {
				t.Errorf("tells %+v", e)
			}
			if name != "close" && c.found() {
				t.Error("told, and kept")
			}
			if name == "close" {
				b.check(l.Release(b.stream))
				return
			}
			_, _, err = c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}}) // past the device, whose slot the lease still has
			wants(t, err, status.Corrupt)
			b.check(next(c))
			b.check(l.Release(b.stream))
			for range 3 { // known to be damaged: it is verified before any caller gets it
				_, _, err = c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}, Last: true})
				wants(t, err, status.Corrupt)
				_, err = c.restoreTo(0, operation.RestoreArgs{Into: []model.Region{onDevice(b.alloc(size), size, 0)}, Streams: []uint64{b.stream}})
				wants(t, err, status.Corrupt)
			}
			b.check(next(c))
			c.mustGetOn(b, 1, random(size, 1))
			c.mustPutOn(b, 0, random(size, 7))
			b.check(c.wait(0, status.TierHost))
			c.mustGetOn(b, 0, random(size, 7))
		})
	}
}

// No caller has the damaged bytes. No wait returns the error, and a restore of them does.
func TestDamageThatNoCallerHasIsNotReported(t *testing.T) {
	const size = 1_300_000
	b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
	b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, size/2))
	for range 20 { // until the captures are long ago
		c.mustGetOn(b, 2, random(size, 2))
	}
	if !c.lies(2, status.TierDevice) {
		t.Fatal("nothing has to make room")
	}
	_, err := c.h.Hint([]plan.Hint{{Op: plan.Restore, Key: model.NumberKey(0)}})
	b.check(err)
	eventually(t, "it was brought up and thrown away", func() bool {
		c.s.Lock()
		defer c.s.Unlock()
		return c.s.Engine.Use(0).Used == 0
	})
	b.check(c.wait(0, status.TierHost))
	c.mustGetOn(b, 1, random(size, 1))
}

// With VerifyAlways a restore waits for the verification.
func TestVerifyAlwaysWaitsForTheVerification(t *testing.T) {
	const size = 1_300_000
	b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	cfg := b.config(8<<20, 0, 2<<20)
	cfg.Verify = "always"
	c := lowered(t, b, cfg, size)
	b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, size/2))
	_, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
	if e := wants(t, err, status.Corrupt); e.Tier != status.TierHost || e.Region != 0 {
		t.Errorf("tells %+v", e)
	}
	b.check(c.wait(0, status.TierHost))
	c.mustGetOn(b, 1, random(size, 1))
}

// A prefetch is copied cut by cut. Once a restore waits for it, the rest is copied in one piece.
func TestAwaitedLoadGoesInOnePiece(t *testing.T) {
	const size, piece = 1_300_000, 100_000
	for name, tc := range map[string]struct {
		waits  bool
		copies int
	}{"nobody waits": {false, 13}, "somebody waits": {true, 3}} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{})
			cfg := b.config(8<<20, 0, 2<<20)
			cfg.Cut, cfg.Guess = piece, false
			c := lowered(t, b, cfg, size)
			for range 20 { // until the captures are long ago
				c.mustGetOn(b, 2, random(size, 2))
			}
			open := c.hold(b, gate, 2)
			before := b.driver.Calls("Copy")
			_, err := c.h.Hint([]plan.Hint{{Op: plan.Restore, Key: model.NumberKey(0)}})
			b.check(err)
			eventually(t, "two cuts are in the lane", func() bool { return b.driver.Calls("Copy") == before+2 })
			at := b.alloc(size)
			a := operation.RestoreArgs{Key: model.Key{Number: 0}, FD: c.fd, Into: []model.Region{onDevice(at, size, 0)}, Streams: []uint64{b.stream}}
			var out operation.Outcome
			if tc.waits {
				op, code, err := c.h.Restore(&a, &out)
				if code != status.Pending || err != nil {
					t.Fatal(code, err)
				}
				open()
				b.check(drive(t, op, code, c.fd, &out))
			} else {
				open()
				eventually(t, "it is there", func() bool { return c.lies(0, status.TierDevice) })
				b.check(c.wait(0, status.TierHost))
			}
			if n := b.driver.Calls("Copy") - before; n != tc.copies && n != tc.copies+1 { // one more: into the destination
				t.Errorf("%d copies", n)
			}
			c.mustGetOn(b, 0, random(size, 0))
		})
	}
}

// A load that fails before its copies are queued fails the restore that waits for it.
func TestLoadFailsBeforeItIsQueued(t *testing.T) {
	const size = 1_300_000
	for _, call := range []string{"Copy", "Launch", "RecordEvent"} {
		t.Run(call, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			b.driver.Fail(call, cuda.InvalidValue, 0, 1)
			_, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
			wants(t, err, status.IO)
			b.check(c.wait(0, status.TierHost))
			c.mustGetOn(b, 0, random(size, 0))
		})
	}
}

// A restore whose caller continues late does not return bytes that were found damaged meanwhile, and the checkpoint stays.
func TestDamageFoundInTimeIsNotGiven(t *testing.T) {
	const size = 1_300_000
	for name, into := range map[string]bool{"lease": false, "into": true} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, size/2))
			a := operation.RestoreArgs{Key: model.Key{Number: 0}, FD: c.fd, Lease: !into, Streams: []uint64{b.stream}, Last: true}
			if into {
				a.Into = []model.Region{onDevice(b.alloc(size), size, 0)}
			}
			var out operation.Outcome
			op, code, err := c.h.Restore(&a, &out)
			if code != status.Pending || err != nil {
				t.Fatal(code, err)
			}
			eventually(t, "the device has looked", func() bool { return c.doubts() > 0 })
			wants(t, drive(t, op, code, c.fd, &out), status.Corrupt)
			b.check(c.wait(0, status.TierHost)) // no caller had it: no error is returned
			if _, err := c.h.Lookup(model.Key{Number: 0}); err != nil {
				t.Errorf("the checkpoint is gone: %v", err)
			}
		})
	}
}

// Other transfers of the same checkpoint end meanwhile. They do not count as verification of the load that was lent.
func TestDamageIsFoundBesideOtherTransfers(t *testing.T) {
	const size = 1_300_000
	b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	cfg := b.config(8<<20, 64<<20, 2<<20)
	cfg.Durable = false // a durable tier would find it during the flush
	c := lowered(t, b, cfg, size)
	b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, size/2))
	open := c.hold(b, gate, 2)
	l, out, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
	b.check(err)
	b.check(c.wait(out.Ticket, status.TierDisk)) // of this one alone
	open()
	b.check(l.Release(b.stream))
	wants(t, c.wait(0, status.TierNone), status.Belated)
}

// A load that is verified after a damaged one clears the doubt.
func TestDoubtsEnd(t *testing.T) {
	const size = 1_300_000
	b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
	flip := func() { b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, size/2)) }
	flip()
	open := c.hold(b, gate, 2)
	l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
	b.check(err)
	open()
	b.check(l.Release(b.stream))
	wants(t, c.wait(0, status.TierNone), status.Belated)
	_, err = c.restoreTo(0, operation.RestoreArgs{Into: []model.Region{onDevice(b.alloc(size), size, 0)}, Streams: []uint64{b.stream}})
	wants(t, err, status.Corrupt)
	if c.doubts() != 1 {
		t.Errorf("%d checkpoints are doubted", c.doubts())
	}
	flip()
	c.mustGetOn(b, 0, random(size, 0))
	if c.doubts() != 0 {
		t.Error("what is right is doubted")
	}
	flip()
	c.mustGetOn(b, 1, random(size, 1))
	open = c.hold(b, gate, 1)
	l, _, err = c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}}) // lent at once, because the previous load was verified
	b.check(err)
	open()
	b.check(l.Release(b.stream))
	wants(t, c.wait(0, status.TierNone), status.Belated)
	if c.doubts() != 1 {
		t.Errorf("%d checkpoints are doubted", c.doubts())
	}
	b.check(c.h.Drop(model.Key{Number: 0}))
	eventually(t, "what is gone is not doubted", func() bool { return c.doubts() == 0 })
}

// Only callers that were given damaged bytes get the error, and only once.
func TestDamageIsReportedToCallersThatHaveIt(t *testing.T) {
	const size, half = 1_300_032, 650_016
	for name, tc := range map[string]struct {
		ask  operation.RestoreArgs
		want status.Code
	}{
		"the other region":      {operation.RestoreArgs{Lease: true, Select: []int32{0}}, status.OK},
		"no region":             {operation.RestoreArgs{Lease: true, Select: []int32{}, Peek: true}, status.OK},
		"the region":            {operation.RestoreArgs{Lease: true, Select: []int32{1}}, status.Belated},
		"both":                  {operation.RestoreArgs{Lease: true}, status.Belated},
		"brought to the host":   {operation.RestoreArgs{Into: []model.Region{{}}}, status.Corrupt},
		"cancelled in the wait": {operation.RestoreArgs{Lease: true, Last: true}, status.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
			c.pinned()
			for k := range int64(2) {
				at := b.alloc(size)
				b.fill(at, random(size, uint64(k)))
				_, err := c.write(&operation.CheckpointArgs{
					Key: model.Key{Number: k}, Layout: []byte{2}, Slot: size, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream},
					Regions: []model.Region{onDevice(at, half, 0), onDevice(at+half, half, half)},
				})
				b.check(err)
				b.check(c.wait(0, status.TierHost))
			}
			b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, half+5))
			a, got := tc.ask, make([]byte, size)
			a.Key, a.FD, a.Streams = model.Key{Number: 0}, c.fd, []uint64{b.stream}
			if !a.Lease {
				a.Into = []model.Region{{Mem: model.Strided{Base: unsafe.Pointer(&got[0])}, Bytes: half}, {Mem: model.Strided{Base: unsafe.Pointer(&got[half])}, Bytes: half}}
			}
			open := c.hold(b, gate, 1)
			var out operation.Outcome
			op, code, err := c.h.Restore(&a, &out)
			switch {
			case err == nil && tc.want == status.Timeout:
				eventually(t, "the load begins", func() bool { return c.loading(0) }) // otherwise the load is cancelled
				op.Cancel()
			case err == nil && tc.want == status.Corrupt: // the bytes have to arrive first
				open()
				err = drive(t, op, code, c.fd, &out)
			case err == nil:
				err = drive(t, op, code, c.fd, &out)
			}
			open()
			if tc.want == status.Corrupt {
				wants(t, err, status.Corrupt)
			} else {
				b.check(err)
			}
			if out.Lease != nil {
				b.check(out.Lease.Release(b.stream))
			}
			eventually(t, "the device has looked", func() bool { return c.doubts() > 0 })
			err = c.wait(0, status.TierNone)
			if tc.want == status.Belated {
				if e := wants(t, err, status.Belated); e.Region != 1 {
					t.Errorf("tells of region %d", e.Region)
				}
				err = c.wait(0, status.TierNone)
			}
			b.check(err)
		})
	}
}

// A wait for the history does not end before all lent loads have been verified, and then returns their error.
func TestWaitWaitsForTheVerification(t *testing.T) {
	const size = 1_300_000
	for name, damaged := range map[string]bool{"good": false, "bad": true} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			if damaged {
				b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, 7))
			}
			open := c.hold(b, gate, 2)
			l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			var out operation.Outcome
			op, code, err := c.s.Wait(c.h, 0, status.TierNone, c.fd)
			if code != status.Pending || err != nil {
				t.Fatalf("a wait beside what is still to be verified: %v, %v", code, err)
			}
			open()
			if err = drive(t, op, code, c.fd, &out); damaged {
				wants(t, err, status.Belated)
			} else {
				b.check(err)
			}
			b.check(l.Release(b.stream))
			b.check(c.wait(0, status.TierHost))
		})
	}
}

// When the driver first refuses the wait for a lent load, it is waited for again. The holder of the lease may have written into it by then.
func TestWaitForTheVerificationIsTriedAgain(t *testing.T) {
	const size = 1_300_000
	for name, damaged := range map[string]bool{"good": false, "bad": true} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{Delay: 100 * time.Microsecond})
			c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
			if damaged {
				b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, 7))
			}
			open := c.hold(b, gate, 2)
			b.driver.Fail("SynchronizeEvent", cuda.InvalidValue, 0, 1)
			l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}, Last: true})
			b.check(err)
			b.check(b.dev.Borrow(b.stream).Copy(device.Address(l.Base), b.upload(make([]byte, size)), size))
			open()
			err = c.wait(0, status.TierNone)
			if !damaged {
				b.check(err)
			} else if e := wants(t, err, status.Belated); strings.Contains(e.Message(), "unverified") {
				t.Errorf("it was verified: %s", e.Message())
			}
			b.check(l.Release(b.stream))
		})
	}
}

// The device is lost before it has verified a lent load. A wait returns that error.
func TestWaitBehindALostDevice(t *testing.T) {
	const size = slotSize
	b, c, l, open := early(t)
	b.driver.Lose(0, 0)
	open()
	wants(t, c.wait(0, status.TierNone), status.DeviceLost)
	_ = l.Release(b.stream) // it returns an error, too
	got, _, err := c.get(1, size, operation.RestoreArgs{})
	b.check(err)
	if !bytes.Equal(got, random(size, 1)) {
		t.Error("what lay in the host tier differs")
	}
}

// A copy on the device is damaged, and a caller has it. Its source in the host tier is exact by now. Other restores are given the source.
func TestRestorePastASpoiledCopy(t *testing.T) {
	const size = 1_300_000
	b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
	b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, 7))
	open := c.hold(b, gate, 2)
	bad, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
	b.check(err)
	open()
	wants(t, c.wait(0, status.TierNone), status.Belated)
	b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, 7))
	c.mustGetOn(b, 0, random(size, 0))
	l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
	b.check(err)
	read := make([]byte, size)
	b.check(l.Read(read, 0))
	if !bytes.Equal(read, random(size, 0)) {
		t.Error("the lease differs")
	}
	b.check(l.Release(b.stream))
	b.check(bad.Release(b.stream))
	c.mustGetOn(b, 0, random(size, 0))
	eventually(t, "it lies on the device again", func() bool { return c.lies(0, status.TierDevice) })
}

// A caller continues a restore of damaged bytes after the store was closed.
func TestDamageFoundAndTheStoreClosed(t *testing.T) {
	const size = 1_300_000
	b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
	c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
	b.check(c.h.Corrupt(model.Key{Number: 0}, status.TierHost, 7))
	var out operation.Outcome
	op, code, err := c.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 0}, FD: c.fd, Lease: true, Streams: []uint64{b.stream}}, &out)
	if code != status.Pending || err != nil {
		t.Fatal(code, err)
	}
	eventually(t, "the device has looked", func() bool { return c.doubts() > 0 })
	shut(t, c.s)
	if e := wants(t, drive(t, op, code, c.fd, &out), status.Corrupt); e.Region != 0 || e.Tier != status.TierHost {
		t.Errorf("%+v", e)
	}
}

// If a load could not be verified, the callers that have its bytes get an error. The source of its copy stays until the copy has ended.
func TestWhatCannotBeVerified(t *testing.T) {
	const size = 1_300_000
	for verify, failures := range map[string]int{"first": 2, "off": 1} {
		t.Run(verify, func(t *testing.T) {
			b, gate := gated(t, double.Config{})
			cfg := b.config(8<<20, 0, 2<<20)
			cfg.Verify = verify
			c := lowered(t, b, cfg, size)
			open := c.hold(b, gate, 2)
			b.driver.Fail("SynchronizeEvent", cuda.InvalidValue, 0, failures)
			l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			var out operation.Outcome
			op, code, err := c.s.Wait(c.h, 0, status.TierNone, c.fd)
			if code != status.Pending || err != nil {
				t.Fatal(code, err)
			}
			open()
			if e := wants(t, drive(t, op, code, c.fd, &out), status.Belated); !strings.Contains(e.Message(), `"unverified":`) || e.Region != status.RegionNone {
				t.Errorf("%+v", e)
			}
			b.check(l.Release(b.stream))
			b.check(c.wait(0, status.TierHost))
			c.mustGetOn(b, 0, random(size, 0))
		})
	}
}
