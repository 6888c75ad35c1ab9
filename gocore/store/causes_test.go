package store

import (
	"testing"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/cuda"
	"velocpy/gocore/cuda/double"
	"velocpy/gocore/device"
	"velocpy/gocore/plan"
	"velocpy/gocore/status"
	"velocpy/gocore/vfs"
)

// causePause is how long the tests of causes keep somebody waiting.
const causePause = 80 * time.Millisecond

// causesOf are the store's waits by cause; each sum is that of its causes.
func causesOf(t *testing.T, s *Store) WaitCauses {
	t.Helper()
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	c, w := st.Causes, st.Waits
	if c.Capture.sum() != w.CaptureWait || c.DeviceCapture.sum() != w.DeviceCapture || c.DeviceRestore.sum() != w.DeviceRestore {
		t.Errorf("by cause: %+v; in all: %+v", c, w)
	}
	if on := st.Tiers["device"].Streams; len(s.accelerators) == 1 && (on.Capture != c.DeviceCapture || on.Restore != c.DeviceRestore) {
		t.Errorf("on the device: %+v; in all: %+v", on, c)
	}
	return c
}

// only checks that one cause has the time that was waited, and no other one has a part of it.
func only(t *testing.T, what string, got Causes, cause func(*Causes) *int64) {
	t.Helper()
	waited := time.Duration(*cause(&got))
	if others := time.Duration(got.sum()) - waited; waited < causePause*3/4 || others > causePause/4 {
		t.Errorf("%s has waited %v for it, and %v for something else: %+v", what, waited, others, got)
	}
}

func byFlush(c *Causes) *int64  { return &c.Flush }
func byLoad(c *Causes) *int64   { return &c.Load }
func byReader(c *Causes) *int64 { return &c.Reader }
func byFull(c *Causes) *int64   { return &c.Full }
func byOther(c *Causes) *int64  { return &c.Other }

// slowFlushes puts a gate before the next copy that the store does in a stream of its own, once it is armed, and counts those behind it.
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

// A caller's stream waits on the device: for what, is told apart.
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
		c.mustPutOn(b, 1, random(size, 1))
		eventually(t, "the flush is queued", func() bool { return behind.Load() > 1 }) // its checksums, and its bytes
		lease, _, err := c.lease(1, RestoreArgs{Streams: []uint64{b.stream}, Last: true})
		b.check(err)
		time.Sleep(causePause)
		(<-opens)()
		b.check(lease.Release(b.stream))
		b.look(b.alloc(8), 8)
		only(t, "the stream of the lease", causesOf(t, c.s).DeviceRestore, byFlush)
	})
	t.Run("restore behind a load", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := lowered(t, b, b.config(8<<20, 0, 2<<20), size)
		open := c.hold(b, gate, 2)
		lease, _, err := c.lease(0, RestoreArgs{Streams: []uint64{b.stream}})
		b.check(err)
		time.Sleep(causePause)
		open()
		b.check(lease.Release(b.stream))
		b.look(b.alloc(8), 8)
		only(t, "the stream of the lease", causesOf(t, c.s).DeviceRestore, byLoad)
	})
	t.Run("capture behind a reader", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
		c.mustPutOn(b, 0, random(size, 0))
		open := c.hold(b, gate, 0)
		c.drop(0)
		out, err := c.putOn(b, 1, b.alloc(size), size)
		b.check(err)
		time.Sleep(causePause)
		open()
		b.check(c.wait(out.Ticket, status.TierNone))
		only(t, "the stream of the capture", causesOf(t, c.s).DeviceCapture, byReader)
	})
	t.Run("capture behind a capture", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
		slow := b.foreign()
		open := gate(slow)
		_, err := c.write(&CheckpointArgs{
			Key: plan.Key{Number: 0}, Regions: []Region{onDevice(b.alloc(size), size, 0)}, Layout: []byte{1, 2}, Slot: size, FD: c.fd,
			Tier: status.TierNone, Streams: []uint64{slow},
		})
		b.check(err)
		c.drop(0)
		out, err := c.putOn(b, 1, b.alloc(size), size)
		b.check(err)
		time.Sleep(causePause)
		open()
		b.check(c.wait(out.Ticket, status.TierNone))
		only(t, "the stream of the capture", causesOf(t, c.s).DeviceCapture, byOther)
	})
}

// A capture waits in its call for room: for what, is told apart.
func TestCausesInTheCall(t *testing.T) {
	const size = 1_300_000
	// waited lets a capture wait that has begun, and ends it.
	waited := func(t *testing.T, c *client, op *Op, code status.Code, err error, end func()) Causes {
		t.Helper()
		if err != nil || code != status.Pending {
			t.Fatal(code, err)
		}
		time.Sleep(causePause)
		end()
		if err := drive(t, op, code, c.fd, &Outcome{}); err != nil {
			t.Fatal(err)
		}
		return causesOf(t, c.s).Capture
	}
	t.Run("flush from a device", func(t *testing.T) {
		b, gate := gated(t, double.Config{})
		c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
		end := gate(b.stream) // the flush cannot begin before the device has taken what it flushes
		_, err := c.putOn(b, 0, b.alloc(size), size)
		b.check(err)
		op, code, err := c.h.Checkpoint(&CheckpointArgs{
			Key: plan.Key{Number: 1}, Regions: []Region{onDevice(b.alloc(size), size, 0)}, Layout: []byte{1, 2}, Slot: size, FD: c.fd,
			Tier: status.TierNone, Streams: []uint64{b.stream},
		}, &Outcome{})
		only(t, "the capture", waited(t, c, op, code, err, end), byFlush)
	})
	t.Run("flush to the disk", func(t *testing.T) {
		fs, rule := blocked(vfs.OpWrite, 64<<20)
		defer rule.Release()
		c := newClient(t, open(t, cached(2<<20, 16<<20, fs)), "h")
		rule.Enable()
		c.mustPut(0, random(size, 0))
		op, code, err := c.pending(1, random(size, 1), CheckpointArgs{}, &Outcome{})
		only(t, "the capture", waited(t, c, op, code, err, rule.Release), byFlush)
	})
	t.Run("lease", func(t *testing.T) {
		c := newClient(t, open(t, cached(2<<20, 16<<20, vfs.NewMem(64<<20))), "h")
		c.mustPut(0, random(size, 0))
		lease := c.mustLease(0, RestoreArgs{})
		op, code, err := c.pending(1, random(size, 1), CheckpointArgs{Patient: true}, &Outcome{})
		only(t, "the capture", waited(t, c, op, code, err, func() { release(t, lease) }), byReader)
	})
	t.Run("the disk is full", func(t *testing.T) {
		c := newClient(t, open(t, cached(2<<20, 2<<20, vfs.NewMem(64<<20))), "h")
		for k := range int64(2) {
			c.mustPut(k, random(size, uint64(k)))
		}
		op, code, err := c.pending(2, random(size, 2), CheckpointArgs{Patient: true}, &Outcome{})
		only(t, "the capture", waited(t, c, op, code, err, func() { c.drop(0) }), byFull)
	})
}

// A wait whose cause changes is divided.
func TestCausesOfOneWait(t *testing.T) {
	const size = 1_300_000
	fs, rule := blocked(vfs.OpWrite, 64<<20)
	defer rule.Release()
	c := newClient(t, open(t, cached(2<<20, 16<<20, fs)), "h")
	c.mustPut(0, random(size, 0))
	rule.Enable()
	lease := c.mustLease(0, RestoreArgs{})
	op, code, err := c.pending(1, random(size, 1), CheckpointArgs{Patient: true}, &Outcome{})
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	time.Sleep(causePause)
	release(t, lease) // now it can be flushed, but the disk stands still
	time.Sleep(causePause)
	rule.Release()
	if err := drive(t, op, code, c.fd, &Outcome{}); err != nil {
		t.Fatal(err)
	}
	got := causesOf(t, c.s).Capture
	if least := int64(causePause * 3 / 4); got.Reader < least || got.Flush < least || got.Full+got.Load+got.Other > int64(causePause/4) {
		t.Errorf("%+v", got)
	}
}
