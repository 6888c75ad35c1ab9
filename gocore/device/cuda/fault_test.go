package cuda_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/cuda/kernel"
	"velocpy/gocore/model"
)

// rig is a device on a double, with a lane and memory.
type rig struct {
	t      *testing.T
	driver *double.Driver
	dev    *cuda.Device
	lane   device.Lane
	arena  device.Arena
	host   *memory.Mapping
}

func open(t *testing.T, cfg double.Config) *rig {
	t.Helper()
	return openOn(t, fresh(t, cfg))
}

func openOn(t *testing.T, d *double.Driver) *rig {
	t.Helper()
	r := &rig{t: t, driver: d}
	var err error
	if r.dev, err = cuda.Open(d, 0, image); err != nil {
		t.Fatal(err)
	}
	r.dev.UseCodec(func() ([]byte, error) { return image, nil })
	r.dev.UseDedup(func() ([]byte, error) { return image, nil })
	if r.lane, err = r.dev.Lane(device.Waited); err != nil {
		t.Fatal(err)
	}
	if r.arena, err = r.dev.Reserve(512 << 20); err != nil {
		t.Fatal(err)
	}
	for r.arena.Mapped() < 8<<20 {
		if _, err = r.arena.Grow(8 << 20); err != nil {
			t.Fatal(err)
		}
	}
	if r.host, err = memory.Map("test", 8<<20); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Settle(); _ = r.host.Unmap() })
	return r
}

func (r *rig) close() {
	r.t.Helper()
	r.driver.Settle()
	for _, err := range []error{r.lane.Close(), r.arena.Free(), r.dev.Close()} {
		if err != nil {
			r.t.Error(err)
		}
	}
	proper(r.t, r.driver)
}

func (r *rig) pieces() []device.Piece {
	base := r.arena.Base()
	return []device.Piece{
		{Slot: base, Bytes: 1000, Mem: model.Strided{Base: pointer(base + 1<<20)}},
		{Slot: base + 1024, Bytes: 300_000, Mem: model.Strided{Base: pointer(base + 2<<20)}},
	}
}

// calls are all calls of the device that can fail.
func (r *rig) calls(mark device.Event) map[string]func() error {
	l, a, host, base := r.lane, r.arena, r.host, r.arena.Base()
	borrowed := r.dev.Borrow(0)
	return map[string]func() error{
		"Memory":       func() error { _, _, err := r.dev.Memory(); return err },
		"Reserve":      func() error { _, err := r.dev.Reserve(1); return err },
		"Lane":         func() error { _, err := r.dev.Lane(device.Ahead); return err },
		"Pin":          func() error { return r.dev.Pin(host, 0, 4096) },
		"Unpin":        func() error { return r.dev.Unpin(host, 0, 4096) },
		"Grow":         func() error { _, err := a.Grow(16 << 20); return err },
		"Copy":         func() error { return l.Copy(base, base+4096, 64) },
		"CopyAll":      func() error { return l.CopyAll([]device.Move{{To: base, From: base + 4096, Bytes: 64}}) },
		"Gather":       func() error { _, err := l.Gather(r.pieces(), true); return err },
		"plain Gather": func() error { _, err := l.Gather(r.pieces()[:1], false); return err },
		"Scatter":      func() error { return l.Scatter(r.pieces()) },
		"Hash":         func() error { _, err := l.Hash(r.pieces()); return err },
		"Encode":       func() error { _, err := l.Encode(r.container(), base+4<<20); return err },
		"Decode":       func() error { _, err := l.Decode(r.container(), base+4<<20); return err },
		"Dedup":        func() error { _, err := l.Dedup(r.deduplication()); return err },
		"Mark":         func() error { _, err := l.Event(); return err },
		"After":        func() error { return l.After(mark) },
		"borrowed":     func() error { _, err := borrowed.Event(); return err },
		"Passed":       func() error { _, err := mark.Passed(); return err },
		"Wait":         mark.Wait,
		"Close":        l.Close,
		"Shrink":       func() error { _, err := a.Shrink(0); return err },
		"Free":         a.Free,
	}
}

// After a loss every call returns the same error without calling the driver.
func TestLossIsForEver(t *testing.T) {
	r := open(t, double.Config{})
	old, err := r.lane.Event()
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Wait(); err != nil {
		t.Fatal(err)
	}
	r.driver.Lose(0, 0)
	if r.dev.Lost() != nil {
		t.Error("lost before anybody noticed")
	}
	first := r.lane.Copy(r.arena.Base(), r.arena.Base()+4096, 64)
	if !errors.Is(first, device.ErrLost) || !cuda.Is(first, cuda.IllegalAddress) || r.dev.Lost() != first {
		t.Fatalf("%v; lost: %v", first, r.dev.Lost())
	}
	for name, call := range r.calls(old) {
		asked := total(r.driver)
		if err := call(); err != first {
			t.Errorf("%s: %v", name, err)
		}
		if total(r.driver) != asked {
			t.Errorf("%s asks the driver", name)
		}
	}
	if err := r.dev.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if r.driver.Calls("ReleasePrimary") != 1 {
		t.Error("the context is kept")
	}
}

func total(d *double.Driver) (n int) {
	for _, call := range []string{
		"MemoryInfo", "ReserveAddress", "CreateStream", "Register", "Unregister", "CreateMemory", "Copy", "CopyAll", "Launch", "RecordEvent",
		"StreamWaitEvent", "QueryEvent", "SynchronizeEvent", "DestroyStream", "Unmap", "FreeAddress", "StreamIsCapturing", "CreateEvent",
	} {
		n += d.Calls(call)
	}
	return n
}

// No queued work counts as done after the context is lost.
func TestLossAmidWork(t *testing.T) {
	for after := range 8 {
		r := open(t, double.Config{Delay: time.Millisecond, Seed: uint64(after)})
		r.driver.Lose(0, after+1)
		var marks []device.Event
		for i := range 10 {
			err := r.lane.Copy(r.arena.Base()+uintptr(i*4096), r.arena.Base()+1<<20, 4096)
			m, marking := r.lane.Event()
			if marking == nil {
				marks = append(marks, m)
			}
			if err := errors.Join(err, marking); err != nil && !errors.Is(err, device.ErrLost) {
				t.Fatal(err)
			}
		}
		r.driver.Settle()
		for i, m := range marks {
			if err := m.Wait(); !errors.Is(err, device.ErrLost) {
				t.Errorf("lost after %d copies, mark %d: %v", after+1, i, err)
			}
		}
	}
}

// Every sticky result loses the context in whichever call it occurs, and no other result does.
func TestStickyResults(t *testing.T) {
	sticky := map[cuda.Code]bool{4: true, 201: true, 999: true}
	for _, code := range []cuda.Code{214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 806, 810} {
		sticky[code] = true
	}
	for code := cuda.Code(1); code < 1000; code++ {
		if code.Sticky() != sticky[code] {
			t.Errorf("result %d: sticky %v", code, code.Sticky())
		}
	}
	for call, method := range map[string]string{
		"RecordEvent": "Mark", "Copy": "Copy", "CopyAll": "CopyAll", "Launch": "Gather", "CreateMemory": "Grow", "Register": "Pin", "QueryEvent": "Passed",
		"SynchronizeEvent": "Wait", "StreamWaitEvent": "After", "StreamIsCapturing": "borrowed", "CreateStream": "Lane",
	} {
		for code, lost := range map[cuda.Code]bool{cuda.IllegalAddress: true, cuda.Unknown: true, cuda.NotSupported: false} {
			r := open(t, double.Config{})
			m, err := r.lane.Event()
			if err != nil {
				t.Fatal(err)
			}
			r.driver.Fail(call, code, 0, 1)
			err = r.calls(m)[method]()
			if errors.Is(err, device.ErrLost) != lost || (r.dev.Lost() != nil) != lost || !cuda.Is(err, code) {
				t.Errorf("%s fails with %d: %v; lost: %v", call, code, err, r.dev.Lost())
			}
		}
	}
}

// Without memory the arena stays as it is, leaks nothing, and grows when memory is free again.
func TestNoMemory(t *testing.T) {
	for _, c := range []struct {
		call string
		code cuda.Code
		want error
	}{
		{"", 0, device.ErrMemory}, {"CreateMemory", cuda.OutOfMemory, device.ErrMemory}, {"Map", cuda.OutOfMemory, device.ErrMemory},
		{"SetAccess", cuda.OutOfMemory, device.ErrMemory}, {"SetAccess", cuda.InvalidValue, nil},
	} {
		r := open(t, double.Config{})
		if c.call == "" {
			r.driver.Occupy(0, 1<<30)
		} else {
			r.driver.Fail(c.call, c.code, 0, 1)
		}
		alive := fmt.Sprint(r.driver.Alive())
		now, err := r.arena.Grow(1 << 30)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || now != 8<<20 || r.arena.Mapped() != now {
			t.Errorf("%s fails: %d bytes, %v", c.call, now, err)
		}
		if left := fmt.Sprint(r.driver.Alive()); left != alive {
			t.Errorf("%s fails: left behind %s, before %s", c.call, left, alive)
		}
		r.driver.Occupy(0, 0)
		if now, err := r.arena.Grow(1 << 30); err != nil || now != 72<<20 {
			t.Errorf("after %s failed: %d bytes, %v", c.call, now, err)
		}
		r.close()
	}
}

// Memory that cannot be pinned stays usable.
func TestPinningRefused(t *testing.T) {
	r := open(t, double.Config{})
	r.driver.LimitPinned(-1)
	if err := r.dev.Pin(r.host, 0, 1<<20); !errors.Is(err, device.ErrPinning) || errors.Is(err, device.ErrMemory) || r.dev.Lost() != nil {
		t.Errorf("%v", err)
	}
	if err := r.lane.Copy(r.arena.Base(), uintptr(r.host.Base())+100, 2<<20); err != nil {
		t.Error(err)
	}
	if m, err := r.lane.Event(); err != nil || m.Wait() != nil {
		t.Error(err)
	} else {
		m.Drop()
	}
	r.driver.LimitPinned(0)
	if err := r.dev.Pin(r.host, 0, 1<<20); err != nil {
		t.Error(err)
	}
	if err := r.dev.Unpin(r.host, 0, 1<<20); err != nil {
		t.Error(err)
	}
	if err := r.dev.Unpin(r.host, 0, 1<<20); !errors.Is(err, device.ErrPinning) {
		t.Errorf("unpinned twice: %v", err)
	}
	r.close()
}

// A device that cannot be opened leaks nothing.
func TestOpenFails(t *testing.T) {
	for _, c := range []struct {
		call string
		skip int
	}{
		{"Devices", 0}, {"DeviceName", 0}, {"DeviceUUID", 0}, {"DeviceAttribute", 3}, {"RetainPrimary", 0}, {"StreamPriorities", 0},
		{"LoadModule", 0}, {"Function", 0}, {"Function", len(kernel.Names()) - 1}, {"AllocateHost", 0},
	} {
		d := fresh(t, double.Config{})
		d.Fail(c.call, cuda.NotSupported, c.skip, 1)
		if _, err := cuda.Open(d, 0, image); !cuda.Is(err, cuda.NotSupported) {
			t.Errorf("%s fails: %v", c.call, err)
		}
		proper(t, d)
	}
}

func TestUnusableDevices(t *testing.T) {
	for _, attributes := range []map[cuda.Attribute]int{{cuda.ComputeMajor: 7, cuda.ComputeMinor: 5}, {cuda.SupportsVMM: 0}} {
		d := fresh(t, double.Config{Attributes: attributes})
		if _, err := cuda.Open(d, 0, image); !errors.Is(err, device.ErrUnavailable) {
			t.Errorf("%v: %v", attributes, err)
		}
		proper(t, d)
	}
}

// Two devices have separate contexts, memory and events; a lane of one may wait for an event of the other.
func TestSeveralDevices(t *testing.T) {
	d := fresh(t, double.Config{Devices: 2, Delay: time.Millisecond})
	var devices [2]*cuda.Device
	var lanes [2]device.Lane
	for i := range devices {
		var err error
		if devices[i], err = cuda.Open(d, i, image); err != nil {
			t.Fatal(err)
		}
		if lanes[i], err = devices[i].Lane(device.Waited); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("cuda:%d (Double)", i); devices[i].Name() != want || devices[i].Ordinal() != i {
			t.Errorf("%s, ordinal %d", devices[i].Name(), devices[i].Ordinal())
		}
	}
	m, err := lanes[0].Event()
	if err != nil {
		t.Fatal(err)
	}
	if err := lanes[1].After(m); err != nil {
		t.Error(err)
	}
	m.Drop()
	d.Lose(0, 0)
	if _, err := lanes[0].Event(); !errors.Is(err, device.ErrLost) {
		t.Error(err)
	}
	if _, _, err := devices[1].Memory(); err != nil || devices[1].Lost() != nil {
		t.Errorf("one device is lost, and the other says %v", err)
	}
}
