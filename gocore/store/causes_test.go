package store

import (
	"testing"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

// causePause is how long the tests of causes let a caller or stream wait.
const causePause = 80 * time.Millisecond

// statsCauses returns the store's waits by cause, and checks that each sum is the sum of its causes.
func statsCauses(t testing.TB, s *Store) figures.WaitCauses {
	t.Helper()
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	c, w := st.Causes, st.Waits
	if c.Capture.Sum() != w.CaptureWait || c.DeviceCapture.Sum() != w.DeviceCapture || c.DeviceRestore.Sum() != w.DeviceRestore {
		t.Errorf("by cause: %+v; in all: %+v", c, w)
	}
	if on := st.Tiers["device"].Streams; len(s.Devices) == 1 && (on.Capture != c.DeviceCapture || on.Restore != c.DeviceRestore) {
		t.Errorf("on the device: %+v; in all: %+v", on, c)
	}
	return c
}

// stopwatch separates the time that a test has slept from the rest of its time.
type stopwatch struct {
	began time.Time
	slept time.Duration
}

func newStopwatch() *stopwatch { return &stopwatch{began: time.Now()} }

func (w *stopwatch) sleep() {
	began := time.Now()
	time.Sleep(causePause)
	w.slept += time.Since(began)
}

// only checks that one cause has the time that the test has slept, and that the other causes have no part of it, however slow the machine is.
func (w *stopwatch) only(t testing.TB, what string, got figures.Causes, cause func(*figures.Causes) *int64) {
	t.Helper()
	rest := time.Since(w.began) - w.slept
	waited := time.Duration(*cause(&got))
	if others := time.Duration(got.Sum()) - waited; waited < causePause*3/4 || others > rest {
		t.Errorf("%s has waited %v for it, and %v for something else in %v that are no pause: %+v", what, waited, others, rest, got)
	}
}

func byFlush(c *figures.Causes) *int64  { return &c.Flush }
func byLoad(c *figures.Causes) *int64   { return &c.Load }
func byReader(c *figures.Causes) *int64 { return &c.Reader }
func byFull(c *figures.Causes) *int64   { return &c.Full }
func byOther(c *figures.Causes) *int64  { return &c.Other }

// inCalls maps each blocker to the cause under which a capture's wait in its call is counted.
var inCalls = map[engine.Blocker]func(*figures.Causes) *int64{engine.ByFlush: byFlush, engine.ByReader: byReader, engine.ByFull: byFull}

// slowFlushes puts a gate before the next copy in a stream of the store, once it is armed, and counts the copies behind the gate.
type slowFlushes struct {
	cuda.Driver
	callers uint64
	gate    func(stream uint64) (open func())
	armed   *atomic.Bool
	behind  *atomic.Int64
	open    chan func()
}

func (d slowFlushes) Copy(c cuda.Context, to, from cuda.Pointer, n int64, s cuda.Stream) error {
	if uint64(s) != d.callers && d.armed.CompareAndSwap(true, false) {
		d.open <- d.gate(uint64(s))
	}
	err := d.Driver.Copy(c, to, from, n, s)
	if uint64(s) != d.callers && len(d.open) > 0 {
		d.behind.Inc()
	}
	return err
}

// The wait of a caller's stream on the device is counted under its cause.
func TestCausesOnTheDevice(t *testing.T) {
	const size = 1_300_000 // the device's tier has room for one
	t.Run("restore behind a flush", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		var armed atomic.Bool
		var behind atomic.Int64
		opens := make(chan func(), 1)
		cfg := b.config(8<<20, 0, 4<<20)
		cfg.Flush = "eager"
		cfg.OpenDevice = func(ordinal int, _ string) (device.Device, error) {
			return cuda.Open(slowFlushes{b.driver, b.stream, gate, &armed, &behind, opens}, ordinal, []byte("twins"))
		}
		c := newClient(t, open(t, cfg), "h")
		c.pinned()
		armed.Store(true)
		watch := newStopwatch()
		c.mustPutOn(b, 1, random(size, 1))
		eventually(t, "the flush is queued", func() bool { return behind.Load() > 1 }) // its checksums, and its bytes
		lease, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{b.stream}, Last: true})
		b.check(err)
		watch.sleep()
		(<-opens)()
		b.check(lease.Release(b.stream))
		b.look(b.alloc(8), 8)
		watch.only(t, "the stream of the lease", statsCauses(t, c.s).DeviceRestore, byFlush)
	})
	t.Run("restore behind a load", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
		watch, open := newStopwatch(), c.hold(b, gate, 2)
		lease, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
		b.check(err)
		watch.sleep()
		open()
		b.check(lease.Release(b.stream))
		b.look(b.alloc(8), 8)
		watch.only(t, "the stream of the lease", statsCauses(t, c.s).DeviceRestore, byLoad)
	})
	t.Run("capture behind a reader", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
		c.mustPutOn(b, 0, random(size, 0))
		open := c.hold(b, gate, 0)
		c.drop(0)
		captureBehind(b, c, size, open, byReader)
	})
	t.Run("capture behind a capture", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
		slow := b.foreign()
		open := gate(slow)
		_, err := c.write(&operation.CheckpointArgs{
			Key: model.Key{Number: 0}, Regions: []model.Region{onDevice(b.alloc(size), size, 0)}, Layout: []byte{1, 2}, Slot: size, FD: c.fd,
			Tier: status.TierNone, Streams: []uint64{slow},
		})
		b.check(err)
		c.drop(0)
		captureBehind(b, c, size, open, byOther)
	})
}

// captureBehind lets the stream of a capture wait for its slot until open is called.
func captureBehind(b *board, c *client, size int, open func(), cause func(*figures.Causes) *int64) {
	b.t.Helper()
	watch := newStopwatch()
	out, err := c.putOn(b, 1, b.alloc(size), size)
	b.check(err)
	watch.sleep()
	open()
	b.check(c.wait(out.Ticket, status.TierNone))
	watch.only(b.t, "the stream of the capture", statsCauses(b.t, c.s).DeviceCapture, cause)
}

// The wait of a capture for room, in its call, is counted under its cause.
func TestCausesInTheCall(t *testing.T) {
	countsDiskBytes(t)
	const size = 1_300_000
	// waits lets a capture wait that has begun, and ends its wait. All of the wait must be counted under one cause.
	waits := func(t *testing.T, watch *stopwatch, c *client, op *operation.Op, code status.Code, err error, end func(), by engine.Blocker) {
		t.Helper()
		if err != nil || code != status.Pending {
			t.Fatal(code, err)
		}
		eventually(t, "the capture waits for its cause", func() bool {
			c.s.Lock()
			defer c.s.Unlock()
			for x := range c.s.Blocked {
				if x.Cause() == by {
					return true
				}
			}
			return false
		})
		watch.sleep()
		end()
		if err := drive(t, op, code, c.fd, &operation.Outcome{}); err != nil {
			t.Fatal(err)
		}
		watch.only(t, "the capture", statsCauses(t, c.s).Capture, inCalls[by])
	}
	t.Run("flush from a device", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
		end := gate(b.stream) // the flush cannot begin before the device has copied the bytes to flush
		_, err := c.putOn(b, 0, b.alloc(size), size)
		b.check(err)
		watch := newStopwatch()
		op, code, err := c.h.Checkpoint(&operation.CheckpointArgs{
			Key: model.Key{Number: 1}, Regions: []model.Region{onDevice(b.alloc(size), size, 0)}, Layout: []byte{1, 2}, Slot: size, FD: c.fd,
			Tier: status.TierNone, Streams: []uint64{b.stream},
		}, &operation.Outcome{})
		waits(t, watch, c, op, code, err, end, engine.ByFlush)
	})
	t.Run("flush to the disk", func(t *testing.T) {
		fs, rule := blocked(vfs.OpWrite, 64<<20)
		defer rule.Release()
		c := newClient(t, open(t, cached(2<<20, 16<<20, fs)), "h")
		rule.Enable()
		c.mustPut(0, random(size, 0))
		watch := newStopwatch()
		op, code, err := c.pending(1, random(size, 1), operation.CheckpointArgs{}, &operation.Outcome{})
		waits(t, watch, c, op, code, err, rule.Release, engine.ByFlush)
	})
	t.Run("lease", func(t *testing.T) {
		c := newClient(t, open(t, cached(2<<20, 16<<20, vfs.NewMem(64<<20))), "h")
		c.mustPut(0, random(size, 0))
		lease := c.mustLease(0, operation.RestoreArgs{})
		watch := newStopwatch()
		op, code, err := c.pending(1, random(size, 1), operation.CheckpointArgs{Patient: true}, &operation.Outcome{})
		waits(t, watch, c, op, code, err, func() { release(t, lease) }, engine.ByReader)
	})
	t.Run("the disk is full", func(t *testing.T) {
		c := newClient(t, open(t, cached(2<<20, 2<<20, vfs.NewMem(64<<20))), "h")
		watch := newStopwatch() // the second of these waits for the flush of the first
		for k := range int64(2) {
			c.mustPut(k, random(size, uint64(k)))
		}
		op, code, err := c.pending(2, random(size, 2), operation.CheckpointArgs{Patient: true}, &operation.Outcome{})
		waits(t, watch, c, op, code, err, func() { c.drop(0) }, engine.ByFull)
	})
}

// A wait whose cause changes is divided among its causes.
func TestCausesOfOneWait(t *testing.T) {
	const size = 1_300_000
	fs, rule := blocked(vfs.OpWrite, 64<<20)
	defer rule.Release()
	c := newClient(t, open(t, cached(2<<20, 16<<20, fs)), "h")
	c.mustPut(0, random(size, 0))
	rule.Enable()
	lease := c.mustLease(0, operation.RestoreArgs{})
	watch := newStopwatch()
	op, code, err := c.pending(1, random(size, 1), operation.CheckpointArgs{Patient: true}, &operation.Outcome{})
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	watch.sleep()
	release(t, lease) // now the checkpoint can be flushed, but the disk is stalled
	watch.sleep()
	rule.Release()
	if err := drive(t, op, code, c.fd, &operation.Outcome{}); err != nil {
		t.Fatal(err)
	}
	got, rest := statsCauses(t, c.s).Capture, int64(time.Since(watch.began)-watch.slept)
	if least := int64(causePause * 3 / 4); got.Reader < least || got.Flush < least || got.Full+got.Load+got.Other > rest {
		t.Errorf("%+v, and %d ns that are no pause", got, rest)
	}
}
