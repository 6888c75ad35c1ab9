package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/plan"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/path"
)

// stays makes a checkpoint with a borrowed source. The call must not wait for the device.
func (c *client) stays(b *board, k int64, regions ...model.Region) operation.Outcome {
	c.t.Helper()
	var out operation.Outcome
	_, code, err := c.tryStays(b, k, &out, regions...)
	if err != nil || code != status.OK {
		c.t.Fatalf("checkpoint %d waits or fails: %v %v", k, code, err)
	}
	return out
}

func (c *client) tryStays(b *board, k int64, out *operation.Outcome, regions ...model.Region) (*operation.Op, status.Code, error) {
	a := &operation.CheckpointArgs{Key: model.Key{Number: k}, Regions: regions, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream}, SourceStays: true}
	text := ""
	for i := range regions {
		text += fmt.Sprint(regions[i].Offset, " ", regions[i].Bytes, " ")
		a.Slot = max(a.Slot, regions[i].Offset+regions[i].Bytes)
	}
	a.Layout = []byte(text)
	return c.h.Checkpoint(a, out)
}

func (c *client) state(out operation.Outcome) operation.TicketState {
	c.t.Helper()
	st, err := c.s.Ticket(out.Ticket)
	if err != nil {
		c.t.Fatal(err)
	}
	return st
}

func (c *client) untilCaptured(out operation.Outcome) {
	c.t.Helper()
	eventually(c.t, "it is captured", func() bool { return c.state(out).Captured })
}

// usedOn returns the largest number of bytes of the device's tier that were in use.
func (c *client) usedOn() int64 {
	c.t.Helper()
	st, err := c.s.Stats()
	if err != nil {
		c.t.Fatal(err)
	}
	return st.Tiers["device"].HighWater
}

// zero overwrites memory of the device from a stream that is not ordered against the store's streams.
func (b *board) zero(at device.Address, n int) {
	b.check(b.dev.Borrow(b.foreign()).Copy(at, b.upload(make([]byte, n)), int64(n)))
}

// A checkpoint with a borrowed source takes no room in the device's tier. The call returns at once, and a transfer reads the bytes after the caller's
// stream has filled them. No one may overwrite the bytes before the ticket permits it. A restore meanwhile waits.
func TestSourceStaysTakesNoRoomOnTheDevice(t *testing.T) {
	b, gate := gated(t, double.Config{Delay: 20 * time.Microsecond})
	s := open(t, b.config(8<<20, 64<<20, 4<<20))
	c := newClient(t, s, "h")
	const size = 900_001
	at, to := b.alloc(size), b.alloc(size)
	open := gate(b.stream)
	b.check(b.dev.Borrow(b.stream).Copy(at, b.upload(random(size, 3)), size))
	out := c.stays(b, 1, onDevice(at, size, 0))
	if st := c.state(out); st.Captured || st.Gone {
		t.Fatalf("captured before it is there: %+v", st)
	}
	var restored operation.Outcome
	other := b.foreign()
	op, code, err := c.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, Into: []model.Region{onDevice(to, size, 0)}, Streams: []uint64{other}, FD: c.fd}, &restored)
	if err != nil || code != status.Pending {
		t.Fatalf("restored before it is there: %v %v", code, err)
	}
	if c.usedOn() != 0 {
		t.Error("it takes room on the device")
	}
	open()
	c.untilCaptured(out)
	b.zero(at, size)
	b.check(drive(t, op, code, c.fd, &restored))
	m, err := b.dev.Borrow(other).Event()
	b.check(err)
	b.check(m.Wait())
	m.Drop()
	if !bytes.Equal(b.driver.Bytes(to, size), random(size, 3)) {
		t.Error("the bytes differ")
	}
	if st := c.state(out); st.Durable&(1<<status.TierHost) == 0 {
		t.Errorf("not in the host tier: %+v", st)
	}
	drained(t, s)
}

// Regions of all kinds are borrowed, with and without pinned memory and checksums. With checksums the restored bytes have been verified.
func TestSourcesOfAllKindsStay(t *testing.T) {
	for _, pinning := range []string{"off", "direct"} {
		for _, checksum := range []bool{true, false} {
			t.Run(fmt.Sprint(pinning, " ", checksum), func(t *testing.T) {
				b := newBoard(t, double.Config{Delay: 20 * time.Microsecond})
				cfg := b.config(8<<20, 64<<20, 4<<20)
				cfg.Pinning, cfg.Checksum, cfg.Verify = pinning, checksum, "always"
				s := open(t, cfg)
				c := newClient(t, s, "h")
				for k, sizes := range [][]int{{0}, {1}, {3000, 0, 77}, {path.OwnCopyBytes, 100, path.OwnCopyBytes - 1}, {0, 700_001, 16 * 3000, 2_000_000}} {
					var regions []model.Region
					var want [][]byte
					offset := int64(64 * k)
					for i, n := range sizes {
						p := random(n, uint64(100*k+i))
						want = append(want, p)
						at := b.alloc(n + 7)
						b.fill(at+device.Address(i%2*7), p) // at odd addresses, too
						regions = append(regions, onDevice(at+device.Address(i%2*7), n, offset))
						offset += (int64(n)+63)&^63 + 64
					}
					here := random(5000, uint64(k)) // in host memory
					regions, want = append(regions, region(bytes.Clone(here), offset)), append(want, here)
					rows := random(300*24, uint64(k)) // not contiguous
					wide := make([]byte, 300*48)
					for i := range 300 {
						copy(wide[i*48:], rows[i*24:(i+1)*24])
					}
					at := b.alloc(len(wide))
					b.fill(at, wide)
					g := onDevice(at, len(rows), offset+5056)
					g.Mem = model.Strided{Base: devicememory.Pointer(at), Shape: []int64{300, 3}, Strides: []int64{48, 8}, Item: 8}
					regions, want = append(regions, g), append(want, rows)
					c.untilCaptured(c.stays(b, int64(k), regions...))
					if checksum {
						s.Lock()
						n := len(c.h.h.Get(model.Key{Number: int64(k)}).Version.Sums)
						s.Unlock()
						if n != len(regions) {
							t.Errorf("%d checksums of %d regions", n, len(regions))
						}
					}
					a := operation.RestoreArgs{Streams: []uint64{b.stream}}
					back := make([][]byte, len(want))
					for i := range want {
						back[i] = make([]byte, len(want[i]))
						a.Into = append(a.Into, region(back[i], 0))
					}
					_, err := c.restoreTo(int64(k), a)
					b.check(err)
					for i := range want {
						if !bytes.Equal(back[i], want[i]) {
							t.Errorf("checkpoint %d, region %d differs", k, i)
						}
					}
				}
				drained(t, s)
			})
		}
	}
}

// A version that is dropped, replaced or cleared before a transfer has begun to read its source returns the source at once. No transfer reads it
// later, whatever the caller's stream does. The driver's double would detect such a read, as it would not be ordered.
func TestSourceOfWhatIsGoneIsGivenBack(t *testing.T) {
	for name, goes := range map[string]func(c *client, b *board, k int64){
		"dropped":  func(c *client, _ *board, k int64) { c.drop(k) },
		"cleared":  func(c *client, b *board, _ int64) { b.check(c.h.Clear()) },
		"replaced": func(c *client, _ *board, k int64) { c.mustPut(k, random(1000, uint64(k))) },
	} {
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{})
			s := open(t, b.config(8<<20, 64<<20, 4<<20))
			c := newClient(t, s, "h")
			const size, n = 700_000, 5 // more than there are workers
			at := b.alloc(size)
			open := gate(b.stream)
			var all []operation.Outcome
			for k := range int64(n) {
				all = append(all, c.stays(b, k, onDevice(at, size, 0)))
			}
			for k := range int64(n) {
				goes(c, b, k)
			}
			for _, out := range all {
				if st := c.state(out); !st.Gone || !st.Captured {
					t.Errorf("its source is not free: %+v", st)
				}
				wants(t, c.wait(out.Ticket, status.TierHost), status.Dropped)
			}
			b.zero(at, size)
			open()
			if name == "replaced" {
				for k := range int64(n) {
					c.mustGet(k, random(1000, uint64(k)), operation.RestoreArgs{})
				}
			}
			c.mustPutOn(b, 9, random(size, 9))
			b.check(c.wait(0, status.TierHost))
			c.mustGetOn(b, 9, random(size, 9))
			drained(t, s)
		})
	}
}

// A transfer in progress ends with its current cut when the caller takes the source back.
func TestSourceGivenBackInTheMiddle(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 300 * time.Microsecond})
	s := open(t, b.config(8<<20, 0, 4<<20))
	c := newClient(t, s, "h")
	const size = 600_000
	for k := range int64(40) {
		at := b.alloc(size)
		b.fill(at, random(size, uint64(k)))
		out := c.stays(b, k, onDevice(at, size, 0))
		time.Sleep(time.Duration(k) * 40 * time.Microsecond)
		c.drop(k)
		if st := c.state(out); !st.Gone || !st.Captured {
			t.Fatalf("its source is not free: %+v", st)
		}
		b.fill(at, make([]byte, size)) // ordered behind the work that filled it, and behind no work of the store
	}
	drained(t, s)
}

// The store closes while captures wait for the caller's stream. Some of their versions were dropped at once. All resources are released, and no
// source is read afterwards.
func TestCloseWithSourcesThatStay(t *testing.T) {
	b, gate := gated(t, double.Config{})
	cfg := b.config(8<<20, 64<<20, 4<<20)
	s, err := Open(cfg)
	b.check(err)
	c := newClient(t, s, "h")
	const size = 700_000
	at := b.alloc(size)
	open := gate(b.stream)
	for k := range int64(8) {
		c.stays(b, k, onDevice(at, size, 0))
		if k%2 == 1 {
			c.drop(k) // and no caller polls its ticket
		}
	}
	eventually(t, "a transfer waits for its source", func() (some bool) {
		s.Lock()
		defer s.Unlock()
		s.workers.EachDeferred(func(*engine.Transfer) { some = true })
		return some
	})
	fd := eventfd(t)
	closing := s.Close(fd)
	if code, err := closing.Step(&operation.Outcome{}); code != status.Pending || err != nil {
		t.Fatalf("closed while a transfer waits for its source: %v %v", code, err)
	}
	open()
	b.check(driveClose(t, closing, fd))
	b.zero(at, size)
	gone(t, cfg)
	b.check(b.dev.Close())
	eventually(t, "all events are given back", func() bool { return !strings.Contains(fmt.Sprint(b.driver.Alive()), "event") })
}

// The device is lost before a transfer has the bytes. The ticket reports it, and so does a restore that waits for the bytes.
func TestSourceThatStaysIsLost(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s, err := Open(b.config(8<<20, 0, 4<<20))
	b.check(err)
	c := newClient(t, s, "h")
	const size = 300_000
	at := b.alloc(size)
	b.fill(at, random(size, 1))
	before := c.stays(b, 1, onDevice(at, size, 0))
	c.untilCaptured(before)
	open := gate(b.stream)
	var all []operation.Outcome
	for k := range int64(4) {
		all = append(all, c.stays(b, 10+k, onDevice(at, size, 0)))
	}
	waiting, code, err := s.Wait(c.h, all[0].Ticket, status.TierNone, c.fd)
	if err != nil || code != status.Pending {
		t.Fatalf("captured by a stream that stands still: %v %v", code, err)
	}
	b.driver.Lose(0, 0)
	open() // a real device ends the work in progress
	_, _, err = c.tryStays(b, 20, &operation.Outcome{}, onDevice(at, size, 0))
	wants(t, err, status.DeviceLost)
	wants(t, drive(t, waiting, code, c.fd, &operation.Outcome{}), status.DeviceLost)
	for k, out := range all {
		wants(t, c.wait(out.Ticket, status.TierHost), status.DeviceLost)
		if st := c.state(out); st.Captured || !st.Gone || st.Failed == 0 {
			t.Errorf("%d: %+v", k, st)
		}
		_, _, err := c.get(10+int64(k), size, operation.RestoreArgs{})
		wants(t, err, status.NotFound)
	}
	if got, _, err := c.get(1, size, operation.RestoreArgs{}); err != nil || !bytes.Equal(got, random(size, 1)) {
		t.Fatalf("what had reached the host does not come back: %v", err)
	}
	fd := eventfd(t)
	_ = driveClose(t, s.Close(fd), fd) // the driver's errors are expected
}

// A driver call that fails during a transfer from a borrowed source fails this one checkpoint, with its tier, and nothing else.
func TestTransferFromABorrowedSourceFails(t *testing.T) {
	// The second event is recorded for the wait for the application's stream, for which there is a fallback.
	for call, skips := range map[string][]int{"CopyAll": {0, 1}, "Launch": {0}, "RecordEvent": {0, 2, 3}} {
		for _, skip := range skips {
			t.Run(fmt.Sprint(call, " ", skip), func(t *testing.T) {
				b := newBoard(t, double.Config{Delay: 50 * time.Microsecond})
				s := open(t, b.config(16<<20, 0, 4<<20))
				c := newClient(t, s, "h")
				const size = 600_000
				at, more := b.alloc(size), b.alloc(size)
				b.fill(at, random(size, 1))
				b.fill(more, random(size, 2))
				b.driver.Fail(call, cuda.InvalidValue, skip, 1)
				var out operation.Outcome
				_, _, err := c.tryStays(b, 1, &out, onDevice(at, size, 0), onDevice(more, size, 600_064))
				if err == nil {
					err = c.wait(out.Ticket, status.TierNone)
					if st := c.state(out); st.Captured || st.Failed == 0 {
						t.Errorf("%+v", st)
					}
				}
				var e *status.Error
				if !errors.As(err, &e) || e.Code != status.IO || e.Tier != status.TierDevice {
					t.Errorf("not an error of the device: %v", err)
				}
				b.fill(at, make([]byte, size))
				b.fill(more, make([]byte, size))
				c.mustPutOn(b, 2, random(size, 3))
				c.mustGetOn(b, 2, random(size, 3))
				b.fill(at, random(size, 4))
				c.untilCaptured(c.stays(b, 3, onDevice(at, size, 0)))
				c.mustGetOn(b, 3, random(size, 4))
				drained(t, s)
			})
		}
	}
}

// A host tier full of leases is bypassed. The checkpoint goes to the disk, or, without a disk that has room, it is captured as one without a borrowed
// source.
func TestSourceStaysWhereTheHostIsFull(t *testing.T) {
	for name, disk := range map[string]int64{"with a disk": 64 << 20, "with a full disk": 4 << 20, "without": 0} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{})
			s := open(t, b.config(4<<20, disk, 2<<20))
			c := newClient(t, s, "h")
			const size = 1 << 20
			if name == "with a full disk" {
				countsDiskBytes(t)
				for k := range int64(4) {
					c.mustPut(10+k, random(size, uint64(k)))
					b.check(c.wait(0, status.TierDisk))
				}
			}
			var leases []*operation.Lease
			for k := range int64(4) {
				c.mustPut(k, random(size, uint64(k)))
				leases = append(leases, c.mustLease(k, operation.RestoreArgs{}))
			}
			at := b.alloc(size)
			b.fill(at, random(size, 9))
			var out operation.Outcome
			_, code, err := c.tryStays(b, 9, &out, onDevice(at, size, 0))
			if err != nil || code != status.OK {
				t.Fatalf("%v %v", code, err)
			}
			c.untilCaptured(out)
			if used := c.usedOn() > 0; used != (name != "with a disk") {
				t.Errorf("it lies on the device: %v", used)
			}
			if on := c.state(out).Durable&(1<<status.TierDisk) != 0; on != (name == "with a disk") {
				t.Errorf("it lies on the disk: %v", on)
			}
			b.zero(at, size)
			c.mustGetOn(b, 9, random(size, 9))
			for _, l := range leases {
				release(t, l)
			}
			drained(t, s)
		})
	}
}

// Room in the host tier that was expected when the call returned may not become available. Then the checkpoint takes room in the device's tier. If
// there is none, the ticket and the callers that wait for the bytes get the error.
func TestSourceStaysAndTheHostFillsUp(t *testing.T) {
	for name, budget := range map[string]int64{"room on the device": 2 << 20, "none": 1 << 20} { // the device's memory is mapped by 2 MiB
		t.Run(name, func(t *testing.T) {
			b, gate := gated(t, double.Config{Delay: 50 * time.Microsecond})
			s := open(t, b.config(2<<20, 0, budget))
			c := newClient(t, s, "h")
			const size = 900_000
			at := b.alloc(size)
			b.fill(at, random(size, 1))
			open := gate(b.stream)
			first, second := c.stays(b, 1, onDevice(at, size, 0)), c.stays(b, 2, onDevice(at, size, 0))
			here := random(900, 2)
			third := c.stays(b, 3, onDevice(at, size, 0), region(here, size+32)) // there is no room for it, but transfers in progress may make some
			if c.state(third).Gone {
				t.Fatal("refused while room may be made")
			}
			open()
			c.untilCaptured(first)
			c.untilCaptured(second)
			if budget == 2<<20 {
				c.untilCaptured(third)
				if c.usedOn() == 0 {
					t.Error("not on the device")
				}
				clear(here)
				b.zero(at, size)
				back := make([]byte, 900)
				_, err := c.restoreTo(3, operation.RestoreArgs{Select: []int32{1}, Into: []model.Region{region(back, 0)}})
				b.check(err)
				if !bytes.Equal(back, random(900, 2)) {
					t.Error("what lay in host memory differs")
				}
				got, _, err := c.get(3, size, operation.RestoreArgs{Select: []int32{0}})
				b.check(err)
				if !bytes.Equal(got, random(size, 1)) {
					t.Error("what lay on the device differs")
				}
			} else {
				wants(t, c.wait(third.Ticket, status.TierNone), status.TierFull)
				if st := c.state(third); st.Captured || !st.Gone || st.Failed == 0 {
					t.Errorf("%+v", st)
				}
				b.zero(at, size)
				_, _, err := c.get(3, size, operation.RestoreArgs{})
				wants(t, err, status.NotFound)
			}
			c.mustGet(1, random(size, 1), operation.RestoreArgs{})
			c.mustGet(2, random(size, 1), operation.RestoreArgs{})
			drained(t, s)
		})
	}
}

// A stream that is being captured into a graph accepts no event. The checkpoint is refused, and the old version stays.
func TestSourceStaysBehindARecordingStream(t *testing.T) {
	b := newBoard(t, double.Config{})
	s := open(t, b.config(8<<20, 0, 2<<20))
	c := newClient(t, s, "h")
	c.mustPutOn(b, 1, random(1000, 1))
	at := b.alloc(1000)
	b.driver.Fail("StreamIsCapturing", cuda.Capturing, 0, 1)
	_, _, err := c.tryStays(b, 1, &operation.Outcome{}, onDevice(at, 1000, 0))
	wants(t, err, status.Invalid)
	c.mustGetOn(b, 1, random(1000, 1))
	drained(t, s)
}

// With two devices, a source that waits for a stream of one device does not delay the other's.
func TestSourcesOfTwoDevicesStay(t *testing.T) {
	b, gate := gated(t, double.Config{Devices: 2})
	cfg := b.config(16<<20, 64<<20, 2<<20)
	cfg.Devices = append(cfg.Devices, config.Device{Ordinal: 1, Bytes: 2 << 20})
	s := open(t, cfg)
	c := newClient(t, s, "h")
	const size = 400_000
	at := b.alloc(size)
	open := gate(b.stream)
	b.check(b.dev.Borrow(b.stream).Copy(at, b.upload(random(size, 1)), size))
	var held []operation.Outcome
	for k := range int64(5) {
		held = append(held, c.stays(b, k, onDevice(at, size, 0)))
	}
	there, err := b.driver.Allocate(1, size)
	b.check(err)
	copy(b.driver.Bytes(there, size), random(size, 2))
	other := &board{t: t, driver: b.driver, dev: b.dev, stream: uint64(b.driver.Foreign(1, false))}
	g := onDevice(there, size, 0)
	g.Place = 2
	out := c.stays(other, 10, g)
	c.untilCaptured(out)
	for _, out := range held {
		if c.state(out).Captured {
			t.Error("captured from a stream that stands still")
		}
	}
	open()
	for k, out := range held {
		c.untilCaptured(out)
		c.mustGetOn(b, int64(k), random(size, 1))
	}
	c.mustGet(10, random(size, 2), operation.RestoreArgs{})
	drained(t, s)
}

// While the disk is stalled under a full host tier, borrowed sources wait for room, and no other call does.
func TestSourceStaysUntilTheDiskMakesRoom(t *testing.T) {
	b := newBoard(t, double.Config{})
	fs, rule := blocked(vfs.OpWrite, 64<<20)
	cfg := b.config(2<<20, 64<<20, 1<<20)
	cfg.FS, cfg.Flush, cfg.Durable = fs, "eager", false
	s := open(t, cfg)
	c := newClient(t, s, "h")
	const size = 900_000
	at := b.alloc(size)
	b.fill(at, random(size, 1))
	rule.Enable()
	var all []operation.Outcome
	for k := range int64(5) {
		all = append(all, c.stays(b, k, onDevice(at, size, 0)))
	}
	c.untilCaptured(all[0])
	c.untilCaptured(all[1])
	for _, out := range all[2:] {
		if st := c.state(out); st.Captured || st.Gone {
			t.Errorf("without room: %+v", st)
		}
	}
	rule.Release()
	for k, out := range all {
		c.untilCaptured(out)
		c.mustGetOn(b, int64(k), random(size, 1))
	}
	drained(t, s)
}

// The disk fails under a host tier that is full of dirty checkpoints. Checkpoints that fit the device's tier are not affected.
func TestSourceStaysOverADiskThatFails(t *testing.T) {
	b := newBoard(t, double.Config{})
	cfg := b.config(2<<20, 64<<20, 2<<20)
	cfg.FS, cfg.Flush, cfg.Durable = vfs.NewFaulty(vfs.NewMem(64<<20), &vfs.Rule{Ops: vfs.OpWrite, Err: syscall.EIO}), "eager", false
	s := open(t, cfg)
	c := newClient(t, s, "h")
	const size = 900_000
	for k := range int64(2) {
		c.mustPut(k, random(size, uint64(k)))
		wants(t, c.wait(0, status.TierDisk), status.IO)
	}
	at := b.alloc(size)
	b.fill(at, random(size, 9))
	for k := int64(2); k < 5; k++ {
		var out operation.Outcome
		op, code, err := c.tryStays(b, k, &out, onDevice(at, size, 0))
		if err == nil {
			err = drive(t, op, code, c.fd, &out)
		}
		if err == nil {
			err = c.wait(out.Ticket, status.TierNone)
		}
		if k < 4 {
			b.check(err)
			continue
		}
		wants(t, err, status.TierFull)
	}
	b.zero(at, size)
	for k := range int64(2) {
		c.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
	}
	c.mustGetOn(b, 2, random(size, 9))
	c.mustGetOn(b, 3, random(size, 9))
	drained(t, s)
}

// A checkpoint that was hinted before its capture is prefetched to the device once it is captured.
func TestSourceStaysAndIsPrefetched(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s := open(t, b.config(8<<20, 64<<20, 4<<20))
	c := newClient(t, s, "h")
	const size = 400_000
	at := b.alloc(size)
	b.fill(at, random(size, 1))
	open := gate(b.stream)
	out := c.stays(b, 1, onDevice(at, size, 0))
	_, err := c.h.Hint([]plan.Hint{{Key: model.Key{Number: 1}}})
	b.check(err)
	b.check(c.h.Prefetch())
	open()
	c.untilCaptured(out)
	eventually(t, "it lies on the device", func() bool {
		i, err := c.h.Lookup(model.Key{Number: 1})
		return err == nil && i.Ready
	})
	b.zero(at, size)
	c.mustGetOn(b, 1, random(size, 1))
	drained(t, s)
}
