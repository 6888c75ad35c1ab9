package store

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/hostdevice"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/plan"
)

// granule makes pieces of device memory small: 128 KiB, as much again, twice that, and so on up to 2 MiB.
const granule = 4 << 10

// resize changes the budget of device 0, waits until the resize has ended, and returns the bytes mapped.
func (c *client) resize(bytes int64) int64 {
	c.t.Helper()
	var out operation.Outcome
	op, code, err := c.s.Resize(config.Budgets{Devices: []config.Device{{Bytes: bytes}}}, c.fd, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	if err != nil {
		c.t.Fatalf("resize to %d: %v", bytes, err)
	}
	return out.Slot
}

// capacity returns how many bytes the tier of device 0 may use.
func (c *client) capacity() int64 {
	c.s.Lock()
	defer c.s.Unlock()
	return c.s.Engine.Capacity(0)
}

// inUse returns how many bytes of the device are allocated.
func (b *board) inUse() int64 {
	b.t.Helper()
	free, total, err := b.dev.Memory()
	b.check(err)
	return total - free
}

// watched makes the store poll the device's free memory often.
func (b *board) watched(c config.Config) config.Config {
	c.LookEvery = time.Millisecond
	return c
}

// Checkpoints beyond the new end come back exactly, the application can use the memory, and the tier grows again.
func TestResize(t *testing.T) {
	for name, delay := range map[string]time.Duration{"prompt": 0, "late": 300 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{Granularity: granule, Delay: delay, Seed: 5})
			before := b.inUse() + granule // the one for checksums
			s := open(t, b.watched(b.config(32<<20, 0, 4<<20)))
			c := newClient(t, s, "h")
			const n, size = 30, 200_001
			for k := range int64(n) {
				c.mustPutOn(b, k, random(size, uint64(k)))
			}
			for i, to := range []int64{3 << 20, 512 << 10, 513 << 10, 1, 0} {
				want := []int64{2 << 20, 512 << 10, 512 << 10, 0, 0}[i]
				if got := c.resize(to); got > to || got < want || c.capacity() > to || b.inUse()-before > to {
					t.Fatalf("resized to %d: %d mapped, %d may be used, the device has given %d away", to, got, c.capacity(), b.inUse()-before)
				}
				for k := range int64(n) {
					c.mustGetOn(b, k, random(size, uint64(k)))
				}
				c.mustPutOn(b, 3, random(size, 3))
			}
			c.resize(4 << 20)
			eventually(t, "the tier grows again", func() bool {
				c.mustPutOn(b, 100, random(size, 100))
				return c.capacity() > 2<<20
			})
			for k := range int64(n) {
				c.mustGetOn(b, k, random(size, uint64(k)))
			}
			drained(t, s)
		})
	}
}

// The budget becomes smaller while captures, flushes, prefetches and restores are in progress.
func TestResizeUnderWay(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBoard(t, double.Config{Granularity: granule, Delay: 200 * time.Microsecond, Seed: seed})
			c := newClient(t, open(t, b.watched(b.config(8<<20, 64<<20, 3<<20))), "h")
			const n, size = 40, 150_001
			var hints []plan.Hint
			for k := n - 1; k >= 0; k-- {
				hints = append(hints, plan.Hint{Key: model.NumberKey(int64(k))})
			}
			_, err := c.h.Hint(hints)
			b.check(err)
			resize := func(k int) {
				var out operation.Outcome
				op, code, err := c.s.Resize(config.Budgets{Devices: []config.Device{{Bytes: int64(k*7%23) << 17}}}, eventfd(t), &out)
				if b.check(err); code == status.Pending {
					op.Cancel()
				}
			}
			for k := range n {
				if k%5 == 3 {
					resize(k)
				}
				c.mustPutOn(b, int64(k), random(size, uint64(k)))
			}
			for k := n - 1; k >= 0; k-- {
				if k%5 == 1 {
					resize(k)
				}
				c.mustGetOn(b, int64(k), random(size, uint64(k)))
			}
		})
	}
}

// Work that is queued behind a stalled stream keeps the memory that it accesses. Only the resize waits for it.
func TestResizeWaitsForTheDevice(t *testing.T) {
	b, gate := gated(t, double.Config{Granularity: granule})
	before := b.inUse() + granule // the one for checksums
	s := open(t, b.watched(b.config(32<<20, 0, 4<<20)))
	c := newClient(t, s, "h")
	const size = 1 << 20
	c.mustPutOn(b, 0, random(size, 0))
	c.mustPutOn(b, 1, random(size, 1))
	b.check(c.wait(0, status.TierHost))
	stream, at := b.foreign(), b.alloc(size)
	l, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{stream}})
	b.check(err)
	open := gate(stream)
	lane := b.dev.Borrow(stream)
	b.check(lane.Copy(at, device.Address(l.Base), size)) // behind the gate
	b.check(l.Release(stream))
	var out operation.Outcome
	fd := eventfd(t)
	op, code, err := s.Resize(config.Budgets{Devices: []config.Device{{Bytes: 512 << 10}}}, fd, &out)
	b.check(err)
	if code != status.Pending {
		t.Fatalf("the memory was given back while it was being read: %v, %d", code, out.Slot)
	}
	other := newClient(t, s, "other") // captures and restores continue
	for k := range int64(10) {
		other.mustPutOn(b, k, random(100_000, uint64(k)))
		other.mustGetOn(b, k, random(100_000, uint64(k)))
	}
	if b.inUse()-before <= 512<<10 {
		t.Error("the memory was given back while it was being read")
	}
	open()
	b.check(drive(t, op, code, fd, &out))
	if out.Slot > 512<<10 || b.inUse()-before > 512<<10 {
		t.Errorf("%d mapped, the device has given %d away", out.Slot, b.inUse()-before)
	}
	b.follow(lane)
	if !bytes.Equal(b.look(at, size), random(size, 1)) {
		t.Error("what a lease showed was overwritten while it was being read")
	}
}

// Memory that is being given back is not reused before it is unmapped, whatever the budget is meanwhile. No call waits for it.
func TestGrowthLeavesWhatIsGivenBack(t *testing.T) {
	b, gate := gated(t, double.Config{Granularity: granule})
	s := open(t, b.watched(b.config(32<<20, 0, 4<<20)))
	c := newClient(t, s, "h")
	const size = 1 << 20
	for k := range int64(3) {
		c.mustPutOn(b, k, random(size, uint64(k)))
	}
	b.check(c.wait(0, status.TierHost))
	stream := b.foreign()
	l, _, err := c.lease(2, operation.RestoreArgs{Streams: []uint64{stream}})
	b.check(err)
	open := gate(stream)
	b.check(l.Release(stream)) // its event is behind the gate
	var out operation.Outcome
	op, code, err := s.Resize(config.Budgets{Devices: []config.Device{{Bytes: 512 << 10}}}, eventfd(t), &out)
	if b.check(err); code != status.Pending {
		t.Fatalf("%v while a stream reads", code)
	}
	eventually(t, "memory is on its way back", func() bool {
		return s.Devices[0].IsGiving()
	})
	op.Cancel()
	c.resize(4 << 20)
	for k := range int64(8) {
		c.mustPutOn(b, 10+k, random(400_000, uint64(k)))
	}
	open()
	eventually(t, "the tier grows again", func() bool {
		c.mustPutOn(b, 100, random(1000, 100))
		return c.capacity() > 2<<20
	})
	for k := range int64(8) {
		c.mustGetOn(b, 10+k, random(400_000, uint64(k)))
	}
}

// A lease beyond the new end keeps its memory, and that before it, exactly as long as it lives.
func TestResizeBesideALease(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule, Delay: 50 * time.Microsecond})
	s := open(t, b.watched(b.config(32<<20, 0, 4<<20)))
	c := newClient(t, s, "h")
	const n, size = 15, 200_001
	var leases []*operation.Lease
	for k := range int64(n) {
		c.mustPutOn(b, k, random(size, uint64(k)))
	}
	for k := range int64(n) {
		l, _, err := c.lease(k, operation.RestoreArgs{Streams: []uint64{b.stream}})
		b.check(err)
		leases = append(leases, l)
	}
	if got := c.resize(300 << 10); got <= 2<<20 {
		t.Fatalf("%d mapped, with leases up to %d", got, n*size)
	}
	for k := range int64(20) {
		c.mustPutOn(b, 100+k, random(100_000, uint64(k)))
		c.mustGetOn(b, 100+k, random(100_000, uint64(k)))
	}
	for k, l := range leases {
		p := make([]byte, size)
		b.check(l.Read(p, 0))
		if !bytes.Equal(p, random(size, uint64(k))) {
			t.Fatalf("lease %d is not what it was", k)
		}
		b.check(l.Release(b.stream))
	}
	eventually(t, "the memory is given back when the leases end", func() bool {
		s.Lock()
		defer s.Unlock()
		return s.Devices[0].Mapped() <= 300<<10
	})
	for k := range int64(n) {
		c.mustGetOn(b, k, random(size, uint64(k)))
	}
}

// A checkpoint that no lower tier has room for stays until it is dropped, and so does the memory before it.
func TestResizeWithoutRoomBelow(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule})
	s := open(t, b.watched(b.config(1<<20, 0, 4<<20)))
	c := newClient(t, s, "h")
	const n, size = 15, 200_000
	for k := range int64(n) {
		c.mustPutOn(b, k, random(size, uint64(k)))
	}
	if got := c.resize(128 << 10); got <= 128<<10 {
		t.Fatalf("%d mapped: where are %d bytes?", got, n*size)
	}
	for k := range int64(n) {
		c.mustGetOn(b, k, random(size, uint64(k)))
	}
	for k := range int64(n) {
		c.drop(k)
	}
	if got := c.resize(128 << 10); got > 128<<10 {
		t.Fatalf("%d mapped of nothing", got)
	}
}

// A flush that fails leaves its checkpoint in place. Another resize tries again.
func TestResizeWhileFlushesFail(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule})
	s := open(t, b.watched(b.config(8<<20, 0, 2<<20)))
	c := newClient(t, s, "h")
	const size = 900_000
	c.mustPutOn(b, 1, random(size, 1))
	b.driver.Fail("Copy", cuda.InvalidValue, 0, 1)
	if got := c.resize(0); got == 0 {
		t.Fatal("the memory is gone, but the flush has failed")
	}
	c.mustGetOn(b, 1, random(size, 1))
	if got := c.resize(0); got != 0 {
		t.Fatalf("%d are mapped yet", got)
	}
	c.mustGetOn(b, 1, random(size, 1))
}

// A capture that waits for room in a tier that becomes too small for it goes to the host tier. One that gets room continues. A capture that begins
// while no transfer runs does not wait beside leases; the test is repeated then.
func TestResizeUnderAWaitingCapture(t *testing.T) {
	for range 20 {
		if resizesUnderAWaitingCapture(t) {
			return
		}
	}
	t.Fatal("of 20 captures beside leases none has waited")
}

func resizesUnderAWaitingCapture(t *testing.T) (waited bool) {
	b := newBoard(t, double.Config{Granularity: granule, Delay: 20 * time.Microsecond})
	s := open(t, b.watched(b.config(8<<20, 0, 2<<20)))
	c := newClient(t, s, "h")
	const size = 900_000
	var leases []*operation.Lease
	for k := range int64(2) {
		c.mustPutOn(b, k, random(size, uint64(k)))
		l, _, err := c.lease(k, operation.RestoreArgs{Streams: []uint64{b.stream}})
		b.check(err)
		leases = append(leases, l)
	}
	at := b.alloc(size)
	b.fill(at, random(size, 7))
	var out operation.Outcome
	fd := eventfd(t)
	op, code, err := c.h.Checkpoint(&operation.CheckpointArgs{
		Key: model.NumberKey(7), Regions: []model.Region{onDevice(at, size, 0)}, Layout: []byte("one"), Slot: size, FD: fd, Tier: status.TierNone,
		Streams: []uint64{b.stream}, Patient: true,
	}, &out)
	b.check(err)
	waited = code == status.Pending
	if !waited && code != status.OK {
		t.Fatalf("a capture beside leases: %v", code)
	}
	if got := c.resize(512 << 10); got <= 512<<10 {
		t.Fatalf("%d mapped beside leases", got)
	}
	b.check(drive(t, op, code, fd, &out))
	b.fill(at, make([]byte, size))
	c.mustGetOn(b, 7, random(size, 7))
	for _, l := range leases {
		b.check(l.Release(b.stream))
	}
	if got := c.resize(512 << 10); got > 512<<10 {
		t.Fatalf("%d mapped", got)
	}
	return waited
}

// When it is unknown what a stream still executes, the memory stays mapped.
func TestNoMarkNoMemoryBack(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule, Delay: 50 * time.Microsecond})
	s := open(t, b.watched(b.config(8<<20, 0, 2<<20)))
	c := newClient(t, s, "h")
	const size = 700_000
	at := b.alloc(size)
	b.fill(at, random(size, 1))
	b.driver.Fail("RecordEvent", cuda.InvalidValue, 0, 2) // and once more for the second attempt
	if _, err := c.putOn(b, 1, at, size); err == nil {
		t.Fatal("a capture without a mark")
	}
	unmapped := b.driver.Calls("Unmap")
	c.resize(0)
	if b.driver.Calls("Unmap") != unmapped {
		t.Error("memory was given back")
	}
	c.mustPutOn(b, 1, random(size, 2))
	c.mustGetOn(b, 1, random(size, 2))
}

func TestResizeRefused(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule})
	s, err := Open(b.config(8<<20, 0, 2<<20))
	b.check(err)
	fd := eventfd(t)
	ask := func(d ...config.Device) error {
		_, _, err := s.Resize(config.Budgets{Devices: d}, fd, &operation.Outcome{})
		return err
	}
	wants(t, ask(config.Device{Bytes: 2<<20 + 1}), status.Invalid)
	wants(t, ask(config.Device{Bytes: -1}), status.Invalid)
	wants(t, ask(config.Device{Share: 1.5}), status.Invalid)
	wants(t, ask(config.Device{Share: 0.5, Bytes: 1}), status.Invalid)
	wants(t, ask(config.Device{Ordinal: 1, Bytes: 1}), status.Unavailable)
	b.check(ask())
	b.check(ask(config.Device{Share: 1})) // of all free memory, but at most the memory reserved
	c := newClient(t, s, "h")
	c.mustPutOn(b, 1, random(1<<20, 1))
	l, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{b.stream}})
	b.check(err)
	b.check(l.Release(b.stream))
	b.driver.Lose(0, 0)
	eventually(t, "the loss is noticed", func() bool { return ask(config.Device{Bytes: 1}) != nil })
	wants(t, ask(config.Device{Bytes: 1}), status.DeviceLost)
	_ = driveClose(t, s.Close(fd), fd) // the driver's errors are expected
	wants(t, ask(config.Device{Bytes: 1}), status.Closed)
}

// A resize operation that waits for memory to be given back ends with an error when the store is closed or the device is lost.
func TestResizeInterrupted(t *testing.T) {
	for name, end := range map[string]func(b *board, s *Store) status.Code{
		"closed": func(b *board, s *Store) status.Code {
			s.Close(-1)
			return status.Closed
		},
		"lost": func(b *board, s *Store) status.Code {
			b.driver.Lose(0, 0)
			return status.DeviceLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{Granularity: granule})
			s, err := Open(b.watched(b.config(32<<20, 0, 4<<20)))
			b.check(err)
			c := newClient(t, s, "h")
			c.mustPutOn(b, 0, random(1<<20, 0))
			b.check(c.wait(0, status.TierHost))
			stream := b.foreign()
			l, _, err := c.lease(0, operation.RestoreArgs{Streams: []uint64{stream}})
			b.check(err)
			open := gate(stream)
			b.check(l.Release(stream))
			var out operation.Outcome
			fd := eventfd(t)
			op, code, err := s.Resize(config.Budgets{Devices: []config.Device{{Bytes: 0}}}, fd, &out)
			if b.check(err); code != status.Pending {
				t.Fatalf("%v while a stream reads", code)
			}
			want := end(b, s)
			if name == "lost" {
				open()
			}
			wants(t, drive(t, op, code, fd, &out), want)
			open()
			closing := eventfd(t)
			_ = driveClose(t, s.Close(closing), closing)
		})
	}
}

// Other processes allocate nearly all of the device's memory. The tier gives some back, with one warning, and maps it again when more is free.
// Without a change it does neither.
func TestReliefOfTheApplication(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule, Memory: 256 << 20, Delay: 20 * time.Microsecond})
	warnings("")
	before := b.inUse()
	s := open(t, b.watched(b.config(64<<20, 0, 48<<20)))
	tier := s.Devices[0]
	c := newClient(t, s, "h")
	const n, size = 40, 1_000_001
	src := b.alloc(size)
	put := func(k int64) {
		b.fill(src, random(size, uint64(k)))
		_, err := c.putOn(b, k, src, size)
		b.check(err)
	}
	for k := range int64(n) {
		put(k)
	}
	cache := func() int64 { return tier.MappedNow() }
	eventually(t, "the tier has grown", func() bool { put(0); return cache() == 48<<20 })
	free := func(n int64) { b.driver.Occupy(0, 256<<20-before-cache()-n) }
	grown := cache()
	free(5 << 20) // little, but more than the reserve of 4 MiB
	calm := b.driver.Calls("MemoryInfo")
	eventually(t, "the device is asked", func() bool { return b.driver.Calls("MemoryInfo") > calm+5 })
	if cache() != grown {
		t.Fatalf("memory was given back before it was scarce: %d of %d", cache(), grown)
	}
	free(1 << 20)
	eventually(t, "memory is given back", func() bool { return 256<<20-b.inUse() >= 8<<20 })
	left, calls := cache(), b.driver.Calls("Unmap")+b.driver.Calls("Map")
	if left < grown-16<<20 {
		t.Errorf("%d of %d are left: that was too much", left, grown)
	}
	for k := range int64(n) {
		put(k)
	}
	if after := b.driver.Calls("Unmap") + b.driver.Calls("Map"); cache() != left || after != calls {
		t.Errorf("%d became %d while nothing changed, by %d calls", left, cache(), after-calls)
	}
	if n := warnings("gives memory back"); n != 1 {
		t.Errorf("%d warnings", n)
	}
	b.driver.Occupy(0, 0)
	eventually(t, "the tier grows again", func() bool { put(0); return cache() >= grown })
	dst := b.alloc(size)
	for k := range int64(n) {
		_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{onDevice(dst, size, 0)}, Streams: []uint64{b.stream}})
		b.check(err)
		if !bytes.Equal(b.look(dst, size), random(size, uint64(k))) {
			t.Fatalf("checkpoint %d differs", k)
		}
	}
}

// A tier that has itself mapped all free memory keeps it.
func TestNoReliefFromOurselves(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule, Memory: 256 << 20})
	b.driver.Occupy(0, 256<<20-b.inUse()-8<<20)
	unmapped := b.driver.Calls("Unmap")
	s := open(t, b.watched(b.config(64<<20, 0, 64<<20)))
	c := newClient(t, s, "h")
	c.mustPutOn(b, 1, random(1<<20, 1))
	calls := b.driver.Calls("MemoryInfo")
	eventually(t, "the device is asked", func() bool { return b.driver.Calls("MemoryInfo") > calls+10 })
	if b.driver.Calls("Unmap") != unmapped {
		t.Error("memory was given back that nobody wanted")
	}
}

// The same on host memory, with a device that fails on accesses to memory that was given back.
func TestResizeOnAHostDevice(t *testing.T) {
	for name, o := range map[string]hostdevice.Options{
		"direct": {Direct: true}, "late": {Delay: 200 * time.Microsecond, Seed: 3},
	} {
		t.Run(name, func(t *testing.T) {
			o.Piece = 256 << 10
			dev := hostdevice.New(o)
			cfg := cached(32<<20, 0, vfs.NewMem(1<<20))
			cfg.Devices, cfg.LookEvery = []config.Device{{Bytes: 4 << 20}}, time.Millisecond
			cfg.OpenDevice = func(int, string) (device.Device, error) { return dev, nil }
			s := open(t, cfg)
			c := newClient(t, s, "h")
			const n, size = 30, 200_001
			m, err := memory.Map("arrays", 2*size)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.Unmap() }()
			src, dst := m.Bytes(0, size), m.Bytes(size, size)
			on := func(p []byte) []model.Region {
				return []model.Region{{Mem: model.Strided{Base: unsafe.Pointer(unsafe.SliceData(p))}, Bytes: size, Place: 1}}
			}
			put := func(k int64) {
				copy(src, random(size, uint64(k)))
				out, err := c.write(&operation.CheckpointArgs{Key: model.NumberKey(k), Regions: on(src), Layout: []byte("one"), Slot: size, FD: c.fd, Tier: status.TierNone, Streams: []uint64{7}})
				if err == nil {
					err = c.wait(out.Ticket, status.TierNone)
				}
				if err != nil {
					t.Fatal(k, err)
				}
			}
			get := func(k int64) {
				if _, err := c.restoreTo(k, operation.RestoreArgs{Into: on(dst), Streams: []uint64{7}}); err != nil {
					t.Fatal(k, err)
				}
				mark, err := dev.Borrow(7).Event()
				if err == nil {
					err = mark.Wait()
					mark.Drop()
				}
				if err != nil || !bytes.Equal(dst, random(size, uint64(k))) {
					t.Fatalf("checkpoint %d differs (%v)", k, err)
				}
				runtime.KeepAlive(m)
			}
			for k := range int64(n) {
				put(k)
			}
			for _, to := range []int64{2 << 20, 700 << 10, 0, 4 << 20, 512 << 10} {
				if got := c.resize(to); got > to {
					t.Fatalf("resized to %d: %d mapped", to, got)
				}
				for k := range int64(n) {
					get(k)
				}
				put(5)
			}
			if err := dev.Lost(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A lease that waits for room in a tier that becomes too small for it gets a private copy.
func TestResizeUnderAWaitingLease(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule, Delay: 20 * time.Microsecond})
	s := open(t, b.watched(b.config(8<<20, 0, 2<<20)))
	c := newClient(t, s, "h")
	const size = 900_000
	for k := range int64(3) {
		c.mustPutOn(b, k, random(size, uint64(k)))
	}
	b.check(c.wait(0, status.TierHost))
	var leases []*operation.Lease
	for k := range int64(2) {
		l, _, err := c.lease(k, operation.RestoreArgs{Streams: []uint64{b.stream}})
		b.check(err)
		leases = append(leases, l)
	}
	var out operation.Outcome
	fd := eventfd(t)
	op, code, err := c.h.Restore(&operation.RestoreArgs{Key: model.NumberKey(2), Lease: true, Patient: true, FD: fd, Streams: []uint64{b.stream}}, &out)
	b.check(err)
	if code != status.Pending {
		t.Fatalf("a lease beside leases that fill the tier: %v", code)
	}
	if got := c.resize(512 << 10); got <= 512<<10 {
		t.Fatalf("%d mapped beside leases", got)
	}
	b.check(drive(t, op, code, fd, &out))
	p := make([]byte, size)
	b.check(out.Lease.Read(p, 0))
	if !bytes.Equal(p, random(size, 2)) {
		t.Error("the lease differs")
	}
	for _, l := range append(leases, out.Lease) {
		b.check(l.Release(b.stream))
	}
}
