package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/cuda/kernel"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/devicememory"
)

// warnings counts the log records with a text since the last call.
func warnings(text string) int {
	n := 0
	for _, r := range logring.Drain(10_000) {
		if strings.Contains(r.Message, text) {
			n++
		}
	}
	return n
}

// gated returns a board with a function that stalls a stream until the returned open is called.
func gated(t testing.TB, cfg double.Config) (*board, func(stream uint64) (open func())) {
	gates := make(chan chan struct{}, 100)
	cfg.Twins = func(name string) func(int, int, []byte) error {
		if name != "gate" {
			return kernel.Twin(name)
		}
		return func(int, int, []byte) error {
			<-<-gates
			return nil
		}
	}
	cfg.Touches = func(name string, parameter []byte) (reads, writes []kernel.Range) {
		if name == "gate" {
			return nil, nil
		}
		return kernel.Touches(name, parameter)
	}
	b := newBoard(t, cfg)
	context, err := b.driver.RetainPrimary(0)
	b.check(err)
	module, err := b.driver.LoadModule(context, []byte("gates"))
	b.check(err)
	f, err := b.driver.Function(context, module, "gate")
	b.check(err)
	return b, func(stream uint64) func() {
		gate := make(chan struct{})
		gates <- gate
		b.check(b.driver.Launch(context, f, 1, 1, 0, cuda.Stream(stream), nil))
		open := false
		shut := func() {
			if !open {
				open = true
				close(gate)
			}
		}
		t.Cleanup(shut)
		return shut
	}
}

func (b *board) foreign() uint64 { return uint64(b.driver.Foreign(0, false)) }

func (c *client) mustPutOn(b *board, k int64, p []byte) operation.Outcome {
	c.t.Helper()
	at := b.alloc(len(p))
	b.fill(at, p)
	out, err := c.putOn(b, k, at, len(p))
	if err != nil {
		c.t.Fatalf("checkpoint %d: %v", k, err)
	}
	b.fill(at, make([]byte, len(p)))
	return out
}

func (c *client) mustGetOn(b *board, k int64, want []byte) {
	c.t.Helper()
	at := b.alloc(len(want))
	_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{onDevice(at, len(want), 0)}, Streams: []uint64{b.stream}})
	if err != nil {
		c.t.Fatalf("checkpoint %d: %v", k, err)
	}
	if !bytes.Equal(b.look(at, len(want)), want) {
		c.t.Fatalf("checkpoint %d differs", k)
	}
}

// The device has no memory for the cache to grow. The cache keeps its size, with one warning, and all operations succeed.
func TestDeviceMemoryRunsOut(t *testing.T) {
	for name, first := range map[string]int{"at first": 0, "later": 1} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{})
			b.driver.Fail("CreateMemory", cuda.OutOfMemory, first, 3) // one of them may be the allocation for the checksums
			warnings("")
			s := open(t, b.config(16<<20, 64<<20, 96<<20))
			c := newClient(t, s, "h")
			for k := range int64(20) {
				c.mustPutOn(b, k, random(100_000, uint64(k)))
			}
			for k := range int64(20) {
				c.mustGetOn(b, k, random(100_000, uint64(k)))
			}
			warned := 0
			warn := func() bool { warned += warnings("no memory left for the cache"); return warned > 0 }
			eventually(t, "a warning", warn)
			eventually(t, "the cache grows when there is memory again", func() bool {
				c.mustPutOn(b, 1, random(1000, 1))
				s.Lock()
				defer s.Unlock()
				return s.Engine.Capacity(0) > int64(first)*(64<<20)
			})
			if warn(); warned != 1 {
				t.Errorf("%d warnings", warned)
			}
		})
	}
}

// A driver call that fails in the middle of a capture leaves the old version of the key unchanged.
func TestCaptureFailsHalfWay(t *testing.T) {
	for _, call := range []string{"Launch", "RecordEvent", "StreamIsCapturing"} {
		t.Run(call, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 50 * time.Microsecond})
			s := open(t, b.config(8<<20, 0, 2<<20))
			c := newClient(t, s, "h")
			const size = 200_000
			old := random(size, 1)
			c.mustPutOn(b, 1, old)
			at := b.alloc(size)
			b.fill(at, random(size, 2))
			b.driver.Fail(call, cuda.InvalidValue, 0, 1)
			if _, err := c.putOn(b, 1, at, size); err == nil {
				t.Fatal("nothing failed")
			}
			c.mustGetOn(b, 1, old)
			c.mustPutOn(b, 1, random(size, 3))
			c.mustGetOn(b, 1, random(size, 3))
			drained(t, s)
		})
	}
}

// A copy to the host tier fails after a part of it was queued. That part must not be written there later.
func TestFlushFailsHalfWay(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 200 * time.Microsecond})
	cfg := b.config(4<<20, 64<<20, 2<<20)
	cfg.Flush, cfg.PinPiece, cfg.Turns = "eager", 64<<10, filepath.Join(t.TempDir(), "turn")
	s := open(t, cfg)
	c := newClient(t, s, "h")
	eventually(t, "the host tier is pinned", func() bool { return s.Host.Watermark().End() == 4<<20 })
	for k := range int64(60) { // each flush consists of several copies, as it crosses seams between pinned pieces
		b.driver.Fail("Copy", cuda.InvalidValue, 3+int(k%5), 1)
		at, p := b.alloc(300_000), random(300_000, uint64(k))
		for b.dev.Borrow(b.stream).Copy(at, device.AddressOf(p), 300_000) != nil {
		}
		runtime.KeepAlive(p)
		c.again(func() error { _, err := c.putOn(b, k, at, 300_000); return err })
		_ = c.wait(0, status.TierHost)
	}
	for k := range int64(60) {
		var got []byte
		c.again(func() (err error) { got, _, err = c.get(k, 300_000, operation.RestoreArgs{}); return err })
		if !bytes.Equal(got, random(300_000, uint64(k))) {
			t.Fatalf("checkpoint %d differs", k)
		}
	}
}

// again repeats a call that may fail occasionally.
func (c *client) again(try func() error) {
	c.t.Helper()
	var err error
	for range 100 {
		if err = try(); err == nil {
			return
		}
	}
	c.t.Fatal(err)
}

// A capture in a stream that is being captured into a graph is refused, and nothing has changed.
func TestStreamBeingCaptured(t *testing.T) {
	for name, size := range map[string]int{"into the device": 100_000, "past it": 3 << 20, "to disk": 7 << 20} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{})
			s := open(t, b.config(6<<20, 64<<20, 2<<20))
			c := newClient(t, s, "h")
			old := random(size, 1)
			at := b.alloc(size)
			b.fill(at, old)
			_, err := c.putOn(b, 1, at, size)
			b.check(err)
			lease, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			b.driver.SetCapturing(cuda.Stream(b.stream), true)
			_, err = c.putOn(b, 1, at, size)
			wants(t, err, status.Invalid)
			_, err = c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{onDevice(at, size, 0)}, Streams: []uint64{b.stream}})
			wants(t, err, status.Invalid)
			onTheDevice := lease.Place() > 0
			b.check(lease.Release(b.stream))
			c.drop(1)
			s.Lock()
			used := s.Engine.Use(0).Used
			s.Unlock()
			if onTheDevice && used == 0 {
				t.Error("the room of a lease was given back while nobody knows when it has been read")
			}
			b.driver.SetCapturing(cuda.Stream(b.stream), false)
			c.mustPutOn(b, 1, old[:size/2])
			c.mustGetOn(b, 1, old[:size/2])
			drained(t, s)
		})
	}
}

// The context is lost after some number of operations. A restore returns exact bytes or an error that reports the loss. Checkpoints that had reached
// the host are restored. Close ends.
func TestLossAtAnyMoment(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { loseSometime(t, seed) })
	}
}

func loseSometime(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	b := newBoard(t, double.Config{Delay: 50 * time.Microsecond, Seed: seed})
	cfg := b.config(4<<20, 64<<20, 2<<20)
	cfg.Flush = []string{"lazy", "eager"}[r.IntN(2)]
	s := open(t, cfg)
	c := newClient(t, s, "h")
	stays := newClient(t, s, "of the host")
	stays.mustPut(1, random(100_000, 7))
	const size = 150_001
	src, dst := b.alloc(size), b.alloc(size)
	allowed := func(err error) bool {
		t.Helper()
		if err == nil {
			return true
		}
		if code := status.CodeOf(err); code != status.DeviceLost && code != status.TierFull {
			t.Fatalf("%v: %v", code, err)
		}
		return false
	}
	try := func(at device.Address, p []byte) {
		_ = b.dev.Borrow(b.stream).Copy(at, device.AddressOf(p), int64(len(p)))
		runtime.KeepAlive(p)
	}
	tickets := map[int64]uint64{}
	lose := 5 + r.IntN(150)
	b.driver.Lose(0, lose)
	for i := range 120 {
		k := r.Int64N(25)
		if _, ok := tickets[k]; !ok {
			try(src, random(size, uint64(k)))
			if out, err := c.putOn(b, k, src, size); allowed(err) {
				tickets[k] = out.Ticket
			}
			continue
		}
		if r.IntN(2) == 0 {
			got, _, err := c.get(k, size, operation.RestoreArgs{})
			if allowed2(t, err) && !bytes.Equal(got, random(size, uint64(k))) {
				t.Fatalf("step %d: checkpoint %d differs", i, k)
			}
			continue
		}
		_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{onDevice(dst, size, 0)}, Streams: []uint64{b.stream}})
		if !allowed2(t, err) {
			continue
		}
		p := make([]byte, size)
		lane := b.dev.Borrow(b.stream)
		if lane.Copy(device.AddressOf(p), dst, size) != nil {
			continue
		}
		if m, err := lane.Event(); err == nil && m.Wait() == nil && !bytes.Equal(p, random(size, uint64(k))) {
			t.Fatalf("step %d: checkpoint %d differs on the device", i, k)
		}
	}
	b.driver.Lose(0, 0)
	eventually(t, "the loss is noticed", func() bool {
		_, err := c.putOn(b, 99, src, size)
		return err != nil && status.CodeOf(err) == status.DeviceLost
	})
	for k, ticket := range tickets {
		st, err := s.Ticket(ticket)
		b.check(err)
		got, _, err := c.get(k, size, operation.RestoreArgs{})
		switch below := st.Durable & (1<<status.TierHost | 1<<status.TierDisk); {
		case err == nil && !bytes.Equal(got, random(size, uint64(k))):
			t.Fatalf("checkpoint %d differs after the loss", k)
		case err != nil && below != 0:
			t.Fatalf("checkpoint %d had reached %b and does not come back: %v", k, below, err)
		case err != nil && status.CodeOf(err) != status.DeviceLost && status.CodeOf(err) != status.TierFull && !strings.Contains(err.Error(), "lost"):
			t.Fatalf("checkpoint %d: %v", k, err)
		}
		if st.Durable&(1<<status.TierDevice) != 0 {
			t.Fatal("what a lost device holds counts as durable there")
		}
	}
	stays.mustGet(1, random(100_000, 7), operation.RestoreArgs{})
	out := stays.mustPut(2, random(200_000, 8))
	b.check(stays.wait(out.Ticket, status.TierDisk))
	stays.mustGet(2, random(200_000, 8), operation.RestoreArgs{})
}

func allowed2(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return true
	}
	var e *status.Error
	if !errors.As(err, &e) || e.Code != status.DeviceLost && e.Code != status.TierFull && !errors.Is(err, device.ErrLost) {
		t.Fatalf("%v", err)
	}
	return false
}

// A capture that bypasses the device's tier is cancelled while the caller's stream is stalled. Its source is not read any more, and its room in the
// host tier may be reused.
func TestCancelledCaptureTouchesNothing(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s := open(t, b.config(4<<20, 0, 1<<20))
	c := newClient(t, s, "h")
	const size = 2 << 20
	at, err := b.driver.Allocate(0, size)
	b.check(err)
	open := gate(b.stream)
	var out operation.Outcome
	op, code, err := c.h.Checkpoint(&operation.CheckpointArgs{
		Key: model.Key{Number: 1}, Regions: []model.Region{onDevice(at, size, 0)}, Layout: []byte("x"), Slot: size, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream},
	}, &out)
	if err != nil || code != status.Pending {
		t.Fatalf("a capture behind a stream that stands still: %v %v", code, err)
	}
	op.Cancel()
	b.driver.Deallocate(at)
	full := random(4<<20, 5)
	c.mustPut(2, full) // also over the room that the capture had
	open()
	b.driver.Settle()
	c.mustGet(2, full, operation.RestoreArgs{})
	drained(t, s)
}

// A restore to the device is cancelled while the caller's stream is stalled. The bytes that the device will read stay until it has read them.
func TestCancelledRestoreKeepsWhatIsRead(t *testing.T) {
	for _, pinning := range []string{"direct", "off"} {
		t.Run(pinning, func(t *testing.T) {
			b, gate := gated(t, double.Config{})
			cfg := b.config(4<<20, 0, 1<<20)
			cfg.Pinning = pinning
			s := open(t, cfg)
			c := newClient(t, s, "h")
			const size = 2 << 20
			c.mustPut(1, random(size, 1))
			to := b.alloc(size)
			open := gate(b.stream)
			var out operation.Outcome
			op, code, err := c.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, Into: []model.Region{onDevice(to, size, 0)}, Streams: []uint64{b.stream}, FD: c.fd}, &out)
			if err != nil || code != status.Pending && code != status.Again {
				t.Fatalf("a restore behind a stream that stands still: %v %v", code, err)
			}
			for code == status.Again {
				code, err = op.Step(&out)
				b.check(err)
			}
			op.Cancel()
			c.drop(1)
			c.mustPut(2, random(2<<20, 2))
			var third operation.Outcome
			more := random(2<<20, 3)
			op, code, err = c.pending(3, more, operation.CheckpointArgs{}, &third)
			if b.check(err); pinning == "direct" && code != status.Pending {
				t.Error("there is room where the device will read")
			}
			open()
			b.check(drive(t, op, code, c.fd, &third))
			b.driver.Settle()
			if pinning == "direct" && !bytes.Equal(b.look(to, size), random(size, 1)) {
				t.Error("the copy that was queued read something else")
			}
			drained(t, s)
		})
	}
}

// A borrowed source (copy=False) on a device does not fit the device's tier. The call returns at once, a transfer reads the source, and until the
// ticket permits it the caller may not overwrite the source.
func TestSourceStaysPastTheDevice(t *testing.T) {
	for name, size := range map[string]int{"to the host": 2 << 20, "to disk": 7<<20 + 77} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond})
			s := open(t, b.config(4<<20, 64<<20, 1<<20))
			c := newClient(t, s, "h")
			at := b.alloc(size)
			open := gate(b.stream)
			b.check(b.dev.Borrow(b.stream).Copy(at, b.upload(random(size, 3)), int64(size)))
			var out operation.Outcome
			_, code, err := c.h.Checkpoint(&operation.CheckpointArgs{
				Key: model.Key{Number: 1}, Regions: []model.Region{onDevice(at, size, 0)}, Layout: []byte("x"), Slot: int64(size), FD: c.fd, Tier: status.TierNone,
				Streams: []uint64{b.stream}, SourceStays: true,
			}, &out)
			if err != nil || code != status.OK {
				t.Fatalf("the call waits: %v %v", code, err)
			}
			if st, err := s.Ticket(out.Ticket); err != nil || st.Captured || st.Gone {
				t.Fatalf("captured before it is there: %+v %v", st, err)
			}
			open()
			eventually(t, "it is captured", func() bool {
				st, err := s.Ticket(out.Ticket)
				return err == nil && st.Captured
			})
			b.fill(at, make([]byte, 1<<20))
			b.fill(at+1<<20, make([]byte, 1<<20))
			c.mustGetOn(b, 1, random(size, 3))
			drained(t, s)
		})
	}
}

// upload puts bytes in memory of the device, from which a stalled stream can copy them later.
func (b *board) upload(p []byte) device.Address {
	at := b.alloc(len(p))
	copy(b.driver.Bytes(at, int64(len(p))), p)
	return at
}

// A lease that the caller may write into may be written only behind the streams that read the slot before.
func TestWritableLeaseWaitsForReaders(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s := open(t, b.config(4<<20, 0, 2<<20))
	c := newClient(t, s, "h")
	const size = 500_000
	c.mustPutOn(b, 1, random(size, 1))
	slow := b.foreign()
	seen := b.alloc(size)
	first, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{slow}})
	b.check(err)
	open := gate(slow)
	b.check(b.dev.Borrow(slow).Copy(seen, device.Address(first.Base), size))
	b.check(first.Release(slow))
	last, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{b.stream}, Last: true})
	b.check(err)
	if !last.Writable {
		t.Fatal("the last lease is not the caller's")
	}
	b.check(b.dev.Borrow(b.stream).Copy(device.Address(last.Base), b.upload(make([]byte, size)), size))
	open()
	b.check(last.Release(b.stream))
	b.follow(b.dev.Borrow(slow))
	if !bytes.Equal(b.look(seen, size), random(size, 1)) {
		t.Error("the reader before saw what the last one wrote")
	}
}

// Arrays that are not contiguous are captured to, and restored from, host memory that no kernel can access.
func TestRowsAndUnpinnedMemory(t *testing.T) {
	for _, pinning := range []string{"off", "direct"} {
		t.Run(pinning, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond})
			cfg := b.config(8<<20, 64<<20, 1<<20)
			cfg.Pinning = pinning
			s := open(t, cfg)
			c := newClient(t, s, "h")
			for k, n := range []int64{300, 30_000, 120_000, 400_000} { // rows of 24 bytes, every third of 8
				size := n * 24
				wide := random(int(size*2), uint64(k))
				at, to := b.alloc(len(wide)), b.alloc(len(wide))
				for from := 0; from < len(wide); from += 1 << 20 {
					part := wide[from:min(from+1<<20, len(wide))]
					b.fill(at+device.Address(from), part)
					b.fill(to+device.Address(from), make([]byte, len(part)))
				}
				rows := func(at device.Address) []model.Region {
					r := onDevice(at, int(size), 0)
					r.Mem = model.Strided{Base: devicememory.Pointer(at), Shape: []int64{n, 3}, Strides: []int64{48, 8}, Item: 8}
					return []model.Region{r}
				}
				_, err := c.write(&operation.CheckpointArgs{
					Key: model.Key{Number: int64(k)}, Regions: rows(at), Layout: []byte(fmt.Sprint(n)), Slot: size, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream},
				})
				b.check(err)
				b.check(c.wait(0, status.TierDisk))
				_, err = c.restoreTo(int64(k), operation.RestoreArgs{Into: rows(to), Streams: []uint64{b.stream}})
				b.check(err)
				got := b.look(to, len(wide))
				for i := range n {
					if !bytes.Equal(got[i*48:i*48+24], wide[i*48:i*48+24]) || !bytes.Equal(got[i*48+24:i*48+48], make([]byte, 24)) {
						t.Fatalf("row %d of %d differs", i, n)
					}
				}
				c.drop(int64(k))
			}
		})
	}
}

// A checkpoint with regions on two devices is refused. Two histories on two devices do not take each other's room.
func TestTwoDevices(t *testing.T) {
	b := newBoard(t, double.Config{Devices: 2})
	cfg := b.config(16<<20, 64<<20, 2<<20)
	cfg.Devices = append(cfg.Devices, config.Device{Ordinal: 1, Bytes: 2 << 20})
	cfg.Pinning = "direct"
	warnings("")
	s := open(t, cfg)
	if n := warnings(""); n != 0 || s.Host.Watermark().End() != 16<<20 {
		t.Errorf("%d warnings; %d bytes are pinned", n, s.Host.Watermark().End())
	}
	c := newClient(t, s, "h")
	at := b.alloc(1000)
	other, err := b.driver.Allocate(1, 1<<20)
	b.check(err)
	there := onDevice(other, 1000, 1024)
	there.Place = 2
	_, err = c.write(&operation.CheckpointArgs{
		Regions: []model.Region{onDevice(at, 1000, 0), there}, Layout: []byte("two"), Slot: 2048, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream},
	})
	wants(t, err, status.Invalid)
	if !strings.Contains(err.Error(), "devices 0 and 1") {
		t.Errorf("not clear: %v", err)
	}
	there.Place, there.Offset = 3, 0
	_, err = c.write(&operation.CheckpointArgs{Regions: []model.Region{there}, Layout: []byte("one"), Slot: 1000, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream}})
	wants(t, err, status.Unavailable)

	for k := range int64(10) { // five times the size of the tier
		c.mustPutOn(b, k, random(900_000, uint64(k)))
	}
	use := func(t int) int64 {
		s.Lock()
		defer s.Unlock()
		return s.Engine.Use(t).Used
	}
	if use(0) == 0 || use(0) > 2<<20 || use(1) != 0 {
		t.Errorf("the devices hold %d and %d bytes", use(0), use(1))
	}
	// From one device to the other, through the host.
	dev, err := cuda.Open(b.driver, 1, []byte("twins"))
	b.check(err)
	stream := uint64(b.driver.Foreign(1, false))
	there.Place, there.Bytes = 2, 900_000
	for k := int64(9); k >= 0; k-- {
		_, err = c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{there}, Streams: []uint64{stream}})
		b.check(err)
		m, err := dev.Borrow(stream).Event()
		b.check(err)
		b.check(m.Wait())
		m.Drop()
		if !bytes.Equal(b.driver.Bytes(other, 900_000), random(900_000, uint64(k))) {
			t.Fatalf("checkpoint %d differs on the other device", k)
		}
	}
	b.check(dev.Close())
	drained(t, s)
}

// The store closes while captures are in progress, some of versions that were dropped at once. All resources are released.
func TestCloseWithCapturesUnderWay(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 5 * time.Millisecond, Seed: 2})
	cfg := b.config(4<<20, 0, 2<<20)
	s, err := Open(cfg)
	b.check(err)
	c := newClient(t, s, "h")
	for k := range int64(8) {
		c.mustPutOn(b, k, random(100_000, uint64(k)))
		if k%2 == 0 {
			c.drop(k)
		}
	}
	shut(t, s)
	gone(t, cfg)
	b.check(b.dev.Close())
	for _, left := range b.driver.Alive() {
		if strings.HasPrefix(left, "event") || strings.HasPrefix(left, "pinned") || strings.HasPrefix(left, "module") {
			t.Errorf("not given back: %s", left)
		}
	}
}

// The device of a capture is lost. A wait for the capture returns the error, and so does a restore of the bytes.
func TestWaitForWhatIsLost(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s := open(t, b.config(4<<20, 0, 2<<20))
	c := newClient(t, s, "h")
	at := b.alloc(1000)
	gate(b.stream)
	out, err := c.putOn(b, 1, at, 1000)
	b.check(err)
	op, code, err := s.Wait(c.h, out.Ticket, status.TierNone, c.fd)
	if err != nil || code != status.Pending {
		t.Fatalf("waiting for a stream that stands still: %v %v", code, err)
	}
	b.driver.Lose(0, 0)
	_, err = c.putOn(b, 2, at, 1000)
	wants(t, err, status.DeviceLost)
	for end := time.Now().Add(hang); code == status.Pending && time.Now().Before(end); time.Sleep(time.Millisecond) {
		code, err = op.Step(&operation.Outcome{})
	}
	wants(t, err, status.DeviceLost)
	_, _, err = c.get(1, 1000, operation.RestoreArgs{})
	wants(t, err, status.DeviceLost)
	if st, err := s.Ticket(out.Ticket); err != nil || st.Durable != 0 {
		t.Errorf("durable after the loss: %+v %v", st, err)
	}
}

// If one device cannot be opened, those that were opened are closed.
func TestOpeningFailsHalfWay(t *testing.T) {
	for call, skip := range map[string]int{"RetainPrimary": 1, "LoadModule": 1, "ReserveAddress": 1, "CreateStream": 1, "StreamPriorities": 1} {
		t.Run(call, func(t *testing.T) {
			b := newBoard(t, double.Config{Devices: 2})
			before := len(b.driver.Alive())
			cfg := b.config(4<<20, 0, 2<<20)
			cfg.Devices = append(cfg.Devices, config.Device{Ordinal: 1, Bytes: 2 << 20})
			b.driver.Fail(call, cuda.InvalidValue, skip, 1)
			if _, err := Open(cfg); err == nil {
				t.Fatal("nothing failed")
			}
			if alive := b.driver.Alive(); len(alive) != before {
				t.Errorf("not given back: %v", alive)
			}
			s := open(t, cfg)
			c := newClient(t, s, "h")
			c.mustPutOn(b, 1, random(1000, 1))
			c.mustGetOn(b, 1, random(1000, 1))
		})
	}
}

// A capture that was cancelled before its transfer began leaves nothing behind when the store closes.
func TestCancelledSpillIsForgotten(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s, err := Open(b.config(1<<20, 64<<20, 1<<20))
	b.check(err)
	c := newClient(t, s, "h")
	const size = 3 << 20
	at := b.alloc(size)
	open := gate(b.stream)
	for range 6 { // more than there are workers
		var out operation.Outcome
		op, code, err := c.h.Checkpoint(&operation.CheckpointArgs{
			AutoKey: true, Regions: []model.Region{onDevice(at, size, 0)}, Layout: []byte("x"), Slot: size, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream},
		}, &out)
		if err != nil || code != status.Pending {
			t.Fatalf("a capture behind a stream that stands still: %v %v", code, err)
		}
		op.Cancel()
	}
	fd := eventfd(t)
	closing := s.Close(fd)
	open()
	b.check(driveClose(t, closing, fd))
	eventually(t, "the store is empty", func() bool {
		s.Lock()
		defer s.Unlock()
		return s.Empty
	})
	b.check(b.dev.Close())
	eventually(t, "all events are given back", func() bool {
		for _, left := range b.driver.Alive() {
			if strings.HasPrefix(left, "event") {
				return false
			}
		}
		return true
	})
}

// Checksums that could not be fetched from the device are fetched by the next operation that needs them, and damage is still found with them.
func TestChecksumsAreFetchedAgain(t *testing.T) {
	b := newBoard(t, double.Config{})
	cfg := b.config(8<<20, 0, 2<<20)
	cfg.Verify = "always"
	c := newClient(t, open(t, cfg), "h")
	const size = 600_000
	c.mustPutOn(b, 1, random(size, 1))
	ask := operation.RestoreArgs{Streams: []uint64{b.stream}}
	for range 3 {
		b.driver.Fail("Copy", cuda.InvalidValue, 0, 1)
		if _, _, err := c.lease(1, ask); status.CodeOf(err) != status.IO {
			t.Fatalf("checksums that cannot be fetched: %v", err)
		}
	}
	l, _, err := c.lease(1, ask)
	b.check(err)
	b.check(l.Release(b.stream))
	b.check(c.h.Corrupt(model.Key{Number: 1}, status.TierDevice, size/2))
	_, _, err = c.lease(1, ask)
	wants(t, err, status.Corrupt)
}
