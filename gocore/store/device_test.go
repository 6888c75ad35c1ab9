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
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/devicememory"
)

// board is a device as an application uses it beside a store, with memory and a stream of the application. The driver is the double, so that a
// missing order between streams shows as wrong bytes.
type board struct {
	t      testing.TB
	driver *double.Driver
	dev    *cuda.Device
	arena  device.Arena
	used   int64
	stream uint64
}

func newBoard(t testing.TB, cfg double.Config) *board {
	t.Helper()
	cfg.Memory = max(cfg.Memory, 256<<20)
	d := double.New(cfg)
	dev, err := cuda.Open(d, 0, []byte("twins"))
	if err != nil {
		t.Fatal(err)
	}
	b := &board{t: t, driver: d, dev: dev}
	if b.arena, err = dev.Reserve(64 << 20); err != nil {
		t.Fatal(err)
	}
	for b.arena.Mapped() < 64<<20 {
		if _, err = b.arena.Grow(64 << 20); err != nil {
			t.Fatal(err)
		}
	}
	context, err := d.RetainPrimary(0)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := d.CreateStream(context, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.stream = uint64(stream)
	t.Cleanup(func() {
		d.Settle()
		for _, text := range d.Misuse() {
			t.Error(text)
		}
		d.Close()
	})
	return b
}

// alloc returns n bytes of the device's memory.
func (b *board) alloc(n int) device.Address {
	b.t.Helper()
	at := b.arena.Base() + device.Address(b.used)
	if b.used += (int64(n) + 255) &^ 255; b.used > b.arena.Mapped() {
		b.t.Fatal("the board's memory is used up")
	}
	return at
}

func (b *board) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// fill queues a write of bytes in the application's stream.
func (b *board) fill(at device.Address, p []byte) {
	b.t.Helper()
	if len(p) > 0 {
		b.check(b.dev.Borrow(b.stream).Copy(at, device.AddressOf(p), int64(len(p)))) // pageable: the driver has read it when the call returns
		runtime.KeepAlive(p)
	}
}

// follow makes the application's stream wait for the work that is queued in another lane.
func (b *board) follow(lane device.Lane) {
	b.t.Helper()
	m, err := lane.Event()
	b.check(err)
	b.check(b.dev.Borrow(b.stream).After(m))
	m.Drop()
}

// look reads bytes back, behind all work in the application's stream.
func (b *board) look(at device.Address, n int) []byte {
	b.t.Helper()
	p := make([]byte, n)
	if n == 0 {
		return p
	}
	lane := b.dev.Borrow(b.stream)
	b.check(lane.Copy(device.AddressOf(p), at, int64(n)))
	m, err := lane.Event()
	b.check(err)
	b.check(m.Wait())
	m.Drop()
	return p
}

func (b *board) config(host, disk int64, dev int64) config.Config {
	c := cached(host, disk, vfs.NewMem(512<<20))
	c.Devices = []config.Device{{Ordinal: 0, Bytes: dev}}
	c.Turns = filepath.Join(b.t.TempDir(), "turn")
	c.OpenDevice = func(ordinal int, _ string) (device.Device, error) {
		d, err := cuda.Open(b.driver, ordinal, []byte("twins"))
		if err == nil {
			d.UseCodec(func() ([]byte, error) { return []byte("twins"), nil })
			d.UseDedup(func() ([]byte, error) { return []byte("twins"), nil })
		}
		return d, err
	}
	return c
}

func onDevice(at device.Address, n int, offset int64) model.Region {
	return model.Region{Mem: model.Strided{Base: devicememory.Pointer(at)}, Offset: offset, Bytes: int64(n), Place: 1}
}

func (c *client) putOn(b *board, k int64, at device.Address, n int) (operation.Outcome, error) {
	c.t.Helper()
	return c.write(&operation.CheckpointArgs{
		Key: model.Key{Number: k}, Regions: []model.Region{onDevice(at, n, 0)}, Layout: []byte{1, byte(n), byte(n >> 8), byte(n >> 16)}, Slot: int64(n), FD: c.fd,
		Tier: status.TierNone, Streams: []uint64{b.stream},
	})
}

func (c *client) restoreTo(k int64, a operation.RestoreArgs) (operation.Outcome, error) {
	c.t.Helper()
	var out operation.Outcome
	a.Key, a.FD = model.Key{Number: k}, c.fd
	op, code, err := c.h.Restore(&a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return out, err
}

// The application overwrites the source after each checkpoint, and the destination after each look at it. It does so in its own stream and never
// waits. The history is many times larger than the device's tier and the host's.
func TestHistoryOnADeviceComesBackExactly(t *testing.T) {
	for name, delay := range map[string]time.Duration{"prompt": 0, "late": 100 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: delay, Seed: 7})
			s := open(t, b.config(6<<20, 128<<20, 2<<20))
			c := newClient(t, s, "h")
			const n, size = 60, 200_001
			src, dst := b.alloc(size), b.alloc(size)
			for k := range n {
				b.fill(src, random(size, uint64(k)))
				if _, err := c.putOn(b, int64(k), src, size); err != nil {
					t.Fatal(err)
				}
			}
			for k := n - 1; k >= 0; k-- {
				out, err := c.restoreTo(int64(k), operation.RestoreArgs{Last: true, Into: []model.Region{onDevice(dst, size, 0)}, Streams: []uint64{b.stream}})
				if err != nil {
					t.Fatal(k, err)
				}
				if got := b.look(dst, size); !bytes.Equal(got, random(size, uint64(k))) {
					t.Fatalf("checkpoint %d differs (hit %v)", k, out.Hit)
				}
				b.fill(dst, make([]byte, size))
			}
			if st, err := s.Stats(); err != nil || st.Tiers["device"].HighWater == 0 || st.Tiers["disk"].Written == 0 {
				t.Fatalf("not all tiers were in use: %+v %v", st.Tiers, err)
			}
			drained(t, s)
		})
	}
}

// A lease on a device is the slot itself. The slot is overwritten only behind every stream that read it.
func TestLeaseOnADevice(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 200 * time.Microsecond, Seed: 3})
	s := open(t, b.config(8<<20, 0, 2<<20))
	c := newClient(t, s, "h")
	const size = 700_000
	src, seen := b.alloc(size), b.alloc(size)
	for k := range 2 {
		b.fill(src, random(size, uint64(k)))
		if _, err := c.putOn(b, int64(k), src, size); err != nil {
			t.Fatal(err)
		}
	}
	context, err := b.driver.RetainPrimary(0)
	b.check(err)
	other, err := b.driver.CreateStream(context, 0)
	b.check(err)
	for k := range 2 {
		l, _, err := c.lease(int64(k), operation.RestoreArgs{Last: true, Streams: []uint64{b.stream, uint64(other)}})
		b.check(err)
		if l.Place() != 1 {
			t.Fatalf("a lease of what lies on device 0 has place %d", l.Place())
		}
		read := make([]byte, 1000)
		b.check(l.Read(read, 1000))
		if !bytes.Equal(read, random(size, uint64(k))[1000:2000]) {
			t.Fatal("read differs")
		}
		lane := b.dev.Borrow(uint64(other)) // a reader whose event the store must not lose
		b.check(lane.Copy(seen, device.Address(l.Base), size))
		b.check(l.Release(b.stream, uint64(other)))
		for j := range 4 { // into the slot that was given back
			b.fill(src, random(size, uint64(100+j)))
			if _, err := c.putOn(b, int64(100+j), src, size); err != nil {
				t.Fatal(err)
			}
		}
		b.follow(lane)
		if !bytes.Equal(b.look(seen, size), random(size, uint64(k))) {
			t.Fatalf("lease %d was overwritten while it was being read", k)
		}
	}
}

// debugged returns a store in debug mode with n checkpoints of random bytes on a device.
func debugged(t *testing.T, checksum bool, n int64, size int) (*board, *Store, *client) {
	t.Helper()
	b := newBoard(t, double.Config{Delay: 200 * time.Microsecond, Seed: 5})
	cfg := b.config(8<<20, 0, 4<<20)
	cfg.Debug, cfg.Checksum = true, checksum
	s := open(t, cfg)
	c := newClient(t, s, "h")
	src := b.alloc(size)
	for k := range n {
		b.fill(src, random(size, uint64(k)))
		if _, err := c.putOn(b, k, src, size); err != nil {
			t.Fatal(err)
		}
	}
	return b, s, c
}

// lent returns a lease on a device, for the board's stream.
func (c *client) lent(b *board, k int64, a operation.RestoreArgs) *operation.Lease {
	b.t.Helper()
	a.Streams = []uint64{b.stream}
	l, _, err := c.lease(k, a)
	b.check(err)
	return l
}

// In debug mode the release of a lease on a device reports writes, in whichever of its streams they occurred. A lease that its holder may write into
// reports none.
func TestDebugModeFindsWritersOnADevice(t *testing.T) {
	const size = 300_000
	b, s, c := debugged(t, true, 3, size)
	lent := func(k int64, a operation.RestoreArgs) *operation.Lease { return c.lent(b, k, a) }
	b.check(lent(0, operation.RestoreArgs{}).Release(b.stream)) // no write
	l := lent(1, operation.RestoreArgs{})
	at := random(1, 9)[0]
	b.fill(device.Address(l.Base)+device.Address(at), []byte{^random(size, 1)[at]})
	e := wants(t, l.Release(b.stream), status.Corrupt)
	if e.Tier != status.TierDevice || e.Region != 0 {
		t.Fatalf("%+v", e)
	}
	own := lent(2, operation.RestoreArgs{Last: true})
	b.fill(device.Address(own.Base), []byte{^random(size, 2)[0]})
	b.check(own.Release(b.stream))
	late := lent(0, operation.RestoreArgs{}) // like a lease in Python, which may outlive its store
	b.fill(device.Address(late.Base), []byte{^random(size, 0)[0]})
	shut(t, s)
	wants(t, late.Release(b.stream), status.Corrupt)
}

// Debug mode compares with the bytes that were lent, so that it finds writes also in a store that computes no checksums at capture.
func TestDebugModeFindsWritersOnADeviceWithoutChecksums(t *testing.T) {
	const size = 300_000
	b, _, c := debugged(t, false, 1, size)
	lent := func() *operation.Lease { return c.lent(b, 0, operation.RestoreArgs{}) }
	b.check(lent().Release(b.stream)) // no write
	l := lent()
	b.fill(device.Address(l.Base)+size-1, []byte{^random(size, 0)[size-1]})
	if e := wants(t, l.Release(b.stream), status.Corrupt); e.Tier != status.TierDevice || e.Region != 0 {
		t.Fatalf("%+v", e)
	}
	b.check(lent().Release(b.stream)) // the lease is not blamed for a write under an earlier one
}

// In debug mode bytes that an earlier holder overwrote are not lent again, as in host memory.
func TestDebugModeDoesNotLendWrittenBytesOfADevice(t *testing.T) {
	const size = 300_000
	b, _, c := debugged(t, true, 1, size)
	l := c.lent(b, 0, operation.RestoreArgs{})
	b.fill(device.Address(l.Base), []byte{^random(size, 0)[0]})
	wants(t, l.Release(b.stream), status.Corrupt)
	_, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{b.stream}})
	if e := wants(t, err, status.Corrupt); e.Tier != status.TierDevice || e.Region != 0 {
		t.Fatalf("%+v", e)
	}
}

// While a stream is being captured into a graph, the release of its lease cannot compare. A write is found after the graph capture has ended, and is
// logged.
func TestDebugModeFindsWritersBehindAGraphCapture(t *testing.T) {
	for name, checksum := range map[string]bool{"checksums": true, "no checksums": false} {
		t.Run(name, func(t *testing.T) {
			const size = 10_000
			b, s, c := debugged(t, checksum, 1, size)
			logring.Drain(10_000)
			for _, writes := range []bool{false, true} {
				l := c.lent(b, 0, operation.RestoreArgs{})
				if writes {
					b.fill(device.Address(l.Base)+7, []byte{^random(size, 0)[7]})
				}
				rec := l.Reads.Rec
				b.driver.SetCapturing(cuda.Stream(b.stream), true)
				b.check(l.Release(b.stream)) // the comparison is not possible yet
				b.driver.SetCapturing(cuda.Stream(b.stream), false)
				shown := ""
				eventually(t, "the lease is given back", func() bool {
					s.Lock()
					defer s.Unlock()
					return s.Engine.Fragment(rec, 0).Pins == 0
				})
				for _, r := range logring.Drain(10_000) {
					shown += r.Message + "\n"
				}
				if found := strings.Contains(shown, "wrote into a lease"); found != writes {
					t.Fatalf("a writer: %v; the log: %q", writes, shown)
				}
			}
		})
	}
}

// A checkpoint has regions in host memory and on a device. Each is restored to the other place.
func TestMixedRegions(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 50 * time.Microsecond, Seed: 5})
	s := open(t, b.config(8<<20, 64<<20, 2<<20))
	c := newClient(t, s, "h")
	const size = 100_003
	at, to := b.alloc(size), b.alloc(size)
	for k := range int64(20) {
		here, there := random(size, uint64(k)), random(size, uint64(1000+k))
		b.fill(at, there)
		_, err := c.write(&operation.CheckpointArgs{
			Key: model.Key{Number: k}, Regions: []model.Region{region(here, 0), onDevice(at, size, 102_400)}, Layout: []byte("mixed"), Slot: 102_400 + size, FD: c.fd,
			Tier: status.TierNone, Streams: []uint64{b.stream},
		})
		b.check(err)
		clear(here)
	}
	for k := int64(19); k >= 0; k-- {
		back := make([]byte, size)
		_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{onDevice(to, size, 0), region(back, 0)}, Streams: []uint64{b.stream}}) // crosswise
		b.check(err)
		if !bytes.Equal(b.look(to, size), random(size, uint64(k))) || !bytes.Equal(back, random(size, uint64(1000+k))) {
			t.Fatalf("checkpoint %d differs", k)
		}
	}
}

// A checkpoint captured from host memory stays in the host tier, also in a store with a device.
func TestHostMemoryBesideADevice(t *testing.T) {
	b := newBoard(t, double.Config{})
	s := open(t, b.config(1<<20, 64<<20, 2<<20))
	c := newClient(t, s, "h")
	for k := range int64(40) {
		c.mustPut(k, random(100_000, uint64(k)))
	}
	for k := int64(39); k >= 0; k-- {
		c.mustGet(k, random(100_000, uint64(k)), operation.RestoreArgs{})
	}
	st, err := s.Stats()
	b.check(err)
	if st.Tiers["device"].HighWater != 0 {
		t.Fatalf("%d bytes of the device were used for host memory", st.Tiers["device"].HighWater)
	}
}

// A checkpoint that does not fit the device's tier bypasses it, to the host or the disk.
func TestPastTheDevice(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 20 * time.Microsecond})
	s := open(t, b.config(6<<20, 64<<20, 2<<20))
	c := newClient(t, s, "h")
	for k, size := range []int{3 << 20, 7 << 20} {
		src, dst := b.alloc(size), b.alloc(size)
		b.fill(src, random(size, uint64(k)))
		if _, err := c.putOn(b, int64(k), src, size); err != nil {
			t.Fatal(err)
		}
		b.fill(src, make([]byte, size))
		_, err := c.restoreTo(int64(k), operation.RestoreArgs{Into: []model.Region{onDevice(dst, size, 0)}, Streams: []uint64{b.stream}})
		b.check(err)
		if !bytes.Equal(b.look(dst, size), random(size, uint64(k))) {
			t.Fatalf("%d bytes differ", size)
		}
	}
}

// A capture returns before the device has executed anything, and its ticket reports that.
func TestCaptureDoesNotWaitForTheDevice(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 20 * time.Millisecond, Seed: 11})
	s := open(t, b.config(8<<20, 0, 4<<20))
	c := newClient(t, s, "h")
	src := b.alloc(1 << 20)
	b.fill(src, random(1<<20, 1))
	out, err := c.putOn(b, 1, src, 1<<20)
	b.check(err)
	st, err := s.Ticket(out.Ticket)
	b.check(err)
	if st.Captured {
		t.Skip("the device was faster than the question")
	}
	b.check(c.wait(out.Ticket, status.TierNone))
	if st, err = s.Ticket(out.Ticket); err != nil || !st.Captured {
		t.Fatalf("waited for, and not captured: %+v %v", st, err)
	}
	// The checkpoint is dropped while its copy runs. The source counts as in use until the device has finished.
	b.fill(src, random(1<<20, 2))
	out, err = c.putOn(b, 2, src, 1<<20)
	b.check(err)
	c.drop(2)
	eventually(t, "the source of a dropped version is free", func() bool {
		st, err := s.Ticket(out.Ticket)
		return err == nil && st.Gone && st.Captured
	})
}

// After the context is lost, no bytes read from the device are used. Checkpoints that had reached the host are restored.
func TestLostDevice(t *testing.T) {
	b := newBoard(t, double.Config{})
	s, err := Open(b.config(8<<20, 0, 2<<20))
	b.check(err)
	c := newClient(t, s, "h")
	const size = 100_000
	src := b.alloc(size)
	for k := range 2 {
		b.fill(src, random(size, uint64(k)))
		if _, err := c.putOn(b, int64(k), src, size); err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			b.check(s.waitDown(c))
		}
	}
	b.driver.Lose(0, 0)
	eventually(t, "the loss is noticed", func() bool {
		_, err := c.putOn(b, 5, src, size)
		var e *status.Error
		return errors.As(err, &e) && e.Code == status.DeviceLost
	})
	if got, _, err := c.get(0, size, operation.RestoreArgs{}); err != nil || !bytes.Equal(got, random(size, 0)) {
		t.Fatalf("what had reached the host does not come back: %v", err)
	}
	if _, _, err := c.get(1, size, operation.RestoreArgs{}); err == nil {
		t.Fatal("bytes of a lost device were given back")
	}
	fd := eventfd(t)
	_ = driveClose(t, s.Close(fd), fd) // the driver's errors are expected
}

// waitDown waits until all checkpoints are in the host tier.
func (s *Store) waitDown(c *client) error { return c.wait(0, status.TierHost) }

// Random captures, restores, leases and drops on a device, with random delays, are compared with a map of the expected bytes.
func TestRandomWorkOnADevice(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomWork(t, seed) })
	}
}

func randomWork(t *testing.T, seed uint64) {
	b := newBoard(t, double.Config{Delay: 100 * time.Microsecond, Seed: seed})
	cfg := b.config(3<<20, 64<<20, 2<<20)
	cfg.Cut = []int64{0, 50_000}[seed%2]
	s := open(t, cfg)
	c := newClient(t, s, "h")
	r := rand.New(rand.NewPCG(seed, 1))
	truth := map[int64]uint64{}
	size := func(k int64) int { return 1000 + int(k)*67_001 }
	src, dst := b.alloc(800_000), b.alloc(800_000)
	var leases []*operation.Lease
	for i := range 150 {
		k := r.Int64N(12)
		switch op := r.IntN(10); {
		case op < 5:
			number := seed<<32 | uint64(i)
			b.fill(src, random(size(k), number))
			if _, err := c.putOn(b, k, src, size(k)); err != nil {
				t.Fatal(err)
			}
			truth[k] = number
		case op < 8:
			_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{onDevice(dst, size(k), 0)}, Streams: []uint64{b.stream}})
			number, ok := truth[k]
			if !ok {
				wants(t, err, status.NotFound)
				continue
			}
			b.check(err)
			if !bytes.Equal(b.look(dst, size(k)), random(size(k), number)) {
				t.Fatalf("seed %d, step %d: checkpoint %d differs", seed, i, k)
			}
		case op < 9:
			if _, ok := truth[k]; !ok || len(leases) > 0 {
				for _, l := range leases {
					b.check(l.Release(b.stream))
				}
				leases = nil
				continue
			}
			l, _, err := c.lease(k, operation.RestoreArgs{Streams: []uint64{b.stream}})
			b.check(err)
			p := make([]byte, size(k))
			b.check(l.Read(p, 0))
			if !bytes.Equal(p, random(size(k), truth[k])) {
				t.Fatalf("seed %d, step %d: lease of %d differs", seed, i, k)
			}
			leases = append(leases, l)
		default:
			if _, ok := truth[k]; ok {
				c.drop(k)
				delete(truth, k)
			}
		}
	}
	for _, l := range leases {
		b.check(l.Release(b.stream))
	}
	drained(t, s)
}

// TestCaptureAsksLittle: the number of driver calls of a capture must not depend on the device's backlog.
func TestCaptureAsksLittle(t *testing.T) {
	b := newBoard(t, double.Config{})
	c := newClient(t, open(t, b.config(16<<20, 0, 4<<20)), "h")
	at := b.alloc(256 << 10)
	calls := func() map[string]int {
		n := map[string]int{}
		for _, name := range []string{"StreamIsCapturing", "QueryEvent", "RecordEvent", "StreamWaitEvent", "Launch", "SynchronizeEvent"} {
			n[name] = b.driver.Calls(name)
		}
		return n
	}
	write := func(n int64) {
		for k := range n {
			_, err := c.putOn(b, k%4, at, 256<<10)
			b.check(err)
		}
	}
	write(8)
	before := calls()
	const n = 300
	write(n)
	for name, after := range calls() {
		most := map[string]int{"QueryEvent": 6}[name]
		if got := after - before[name]; got > max(most, 1)*n {
			t.Errorf("%s: %d calls for %d captures", name, got, n)
		}
	}
}

// The time that a flush waits until the device has copied the bytes is not the link's. It must not change the measured rate.
func TestFlushBehindALateCaptureTakesItsOwnTime(t *testing.T) {
	b, gate := gated(t, double.Config{})
	cfg := b.config(8<<20, 0, 2<<20)
	cfg.Flush, cfg.Timeline = "eager", 100
	s := open(t, cfg)
	c := newClient(t, s, "h")
	at := b.alloc(256 << 10)
	b.fill(at, random(256<<10, 1))
	const late = 300 * time.Millisecond
	open := gate(b.stream)
	out, err := c.putOn(b, 1, at, 256<<10)
	b.check(err)
	time.Sleep(late)
	open()
	b.check(c.wait(out.Ticket, status.TierHost))
	flushes := 0
	for _, m := range s.Timeline() {
		if m.What != "flush" {
			continue
		}
		if flushes++; m.Took >= int64(late) {
			t.Errorf("the flush took %v, of which the capture made it wait %v", time.Duration(m.Took), late)
		}
	}
	if flushes != 1 {
		t.Errorf("%d flushes of one checkpoint", flushes)
	}
	c.mustGetOn(b, 1, random(256<<10, 1))
	drained(t, s)
}
