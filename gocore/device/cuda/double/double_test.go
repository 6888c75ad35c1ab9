package double

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
)

const grain = 64 << 10

// bench is a driver with one retained context, closed and checked at the end of the test.
type bench struct {
	*Driver
	t *testing.T
	c cuda.Context
}

func open(t *testing.T, cfg Config) *bench {
	t.Helper()
	if cfg.Granularity == 0 {
		cfg.Granularity = grain
	}
	d := New(cfg)
	c, err := d.RetainPrimary(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return &bench{d, t, c}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) want(err error, code cuda.Code) {
	b.t.Helper()
	if !is(err, code) {
		b.t.Fatalf("got %v, want result %d", err, code)
	}
}

func is(err error, code cuda.Code) bool {
	var e *cuda.Error
	return errors.As(err, &e) && e.Code == code
}

func (b *bench) stream() cuda.Stream {
	b.t.Helper()
	s, err := b.CreateStream(b.c, 0)
	b.must(err)
	return s
}

func (b *bench) event() cuda.Event {
	b.t.Helper()
	e, err := b.CreateEvent(b.c, true)
	b.must(err)
	return e
}

func (b *bench) record(s cuda.Stream) cuda.Event {
	b.t.Helper()
	e := b.event()
	b.must(b.RecordEvent(b.c, e, s))
	return e
}

func (b *bench) sync(s cuda.Stream) {
	b.t.Helper()
	b.must(b.SynchronizeEvent(b.c, b.record(s)))
}

func (b *bench) allocate(n int64) cuda.Pointer {
	b.t.Helper()
	p, err := b.Allocate(0, n)
	b.must(err)
	return p
}

// pinned is registered host memory.
func (b *bench) pinned(n int64) []byte {
	b.t.Helper()
	p, err := b.AllocateHost(b.c, n)
	b.must(err)
	return unsafe.Slice((*byte)(p), n)
}

func at(p []byte) cuda.Pointer { return device.AddressOf(p) }

// mapped reserves n bytes and maps all of them.
func (b *bench) mapped(n int64) (cuda.Pointer, cuda.Memory) {
	b.t.Helper()
	p, err := b.ReserveAddress(n, 0)
	b.must(err)
	m, err := b.CreateMemory(b.c, 0, n)
	b.must(err)
	b.must(b.Map(p, n, m))
	b.must(b.SetAccess(p, n, 0))
	return p, m
}

func (b *bench) clean() {
	b.t.Helper()
	if m := b.Misuse(); len(m) > 0 {
		b.t.Fatalf("misuse: %s", strings.Join(m, "\n"))
	}
}

func (b *bench) misused(what string) {
	b.t.Helper()
	for _, m := range b.Misuse() {
		if strings.Contains(m, what) {
			return
		}
	}
	b.t.Fatalf("%q is not among the misuse %q", what, b.Misuse())
}

// gate makes a kernel that blocks its stream until it is opened.
type gate struct{ shut, inside chan struct{} }

func (b *bench) gate(s cuda.Stream) *gate {
	b.t.Helper()
	g := &gate{make(chan struct{}), make(chan struct{})}
	old := b.cfg.Twins
	b.cfg.Twins = func(string) func(int, int, []byte) error {
		return func(int, int, []byte) error { close(g.inside); <-g.shut; return nil }
	}
	b.launch(s, "gate", nil)
	b.cfg.Twins = old
	return g
}

func (g *gate) open() { close(g.shut) }

func (b *bench) launch(s cuda.Stream, name string, parameter []byte) {
	b.t.Helper()
	m, err := b.LoadModule(b.c, []byte{1})
	b.must(err)
	f, err := b.Function(b.c, m, name)
	b.must(err)
	b.must(b.Launch(b.c, f, 1, 1, 0, s, parameter))
}

func noise(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rand.Uint32())
	}
	return p
}

func (b *bench) done(e cuda.Event) bool {
	b.t.Helper()
	done, err := b.QueryEvent(b.c, e)
	b.must(err)
	return done
}

// held checks, for some time, that an event does not complete.
func (b *bench) held(e cuda.Event, what string) {
	b.t.Helper()
	for range 50 {
		if b.done(e) {
			b.t.Fatal(what)
		}
		time.Sleep(20 * time.Microsecond)
	}
}

func TestStreamsWorkInOrderAndLate(t *testing.T) {
	b := open(t, Config{Delay: 200 * time.Microsecond})
	s := b.stream()
	dev, host := b.allocate(8192), b.pinned(4096)
	copy(host, noise(4096))
	g := b.gate(s)
	<-g.inside
	b.must(b.Copy(b.c, dev, at(host), 4096, s))
	b.must(b.Copy(b.c, dev+4096, dev, 4096, s))
	e := b.record(s)
	b.held(e, "an event behind queued work is complete")
	if bytes.Contains(b.Bytes(dev, 4096), host[:64]) {
		t.Fatal("a copy happened when it was called")
	}
	copy(host, noise(4096)) // pinned memory is read when the stream reaches the copy
	g.open()
	b.must(b.SynchronizeEvent(b.c, e))
	if !bytes.Equal(b.Bytes(dev+4096, 4096), host) || !b.done(e) {
		t.Fatal("wrong bytes behind the event")
	}
	b.clean()
}

func TestPageableMemory(t *testing.T) {
	b := open(t, Config{})
	s := b.stream()
	dev, host := b.allocate(4096), noise(4096)
	was := bytes.Clone(host)
	g := b.gate(s)
	b.must(b.Copy(b.c, dev, at(host), 4096, s)) // returns although the stream is blocked
	clear(host)
	g.open()
	b.must(b.Copy(b.c, at(host), dev, 4096, s)) // is complete when it returns
	if !bytes.Equal(host, was) {
		t.Fatal("pageable memory was not read at the call, or not written at return")
	}
	other := b.pinned(4096)
	b.must(b.Copy(b.c, at(other), at(host), 4096, s))
	if !bytes.Equal(other, was) {
		t.Fatal("host to host")
	}
	large, big := b.allocate(stagedBytes+1), noise(stagedBytes+1)
	b.must(b.Copy(b.c, large, at(big), stagedBytes+1, s)) // is complete, too
	if !bytes.Equal(b.Bytes(large, stagedBytes+1), big) {
		t.Fatal("a copy from pageable memory that the driver cannot keep")
	}
	b.clean()
}

func TestEvents(t *testing.T) {
	b := open(t, Config{})
	s, other, e := b.stream(), b.stream(), b.event()
	if !b.done(e) {
		t.Fatal("an event that was never recorded is not complete")
	}
	b.must(b.SynchronizeEvent(b.c, e))
	g := b.gate(s)
	b.must(b.StreamWaitEvent(b.c, other, e)) // before the record: no wait
	b.sync(other)
	b.must(b.RecordEvent(b.c, e, s))
	b.must(b.StreamWaitEvent(b.c, other, e)) // waits for this record
	behind := b.record(other)
	b.must(b.RecordEvent(b.c, e, b.stream())) // records it again, elsewhere
	b.must(b.SynchronizeEvent(b.c, e))
	b.held(behind, "a wait is not there, or a later record freed it")
	b.must(b.DestroyEvent(b.c, e)) // the wait stays
	b.held(behind, "destroying the event freed the wait")
	g.open()
	b.must(b.SynchronizeEvent(b.c, behind))
	b.clean()
	_, err := b.QueryEvent(b.c, e)
	b.want(err, cuda.InvalidHandle)
	b.misused("QueryEvent")
}

func TestLegacyStreamAndThreads(t *testing.T) {
	b := open(t, Config{})
	blocking, free := b.Foreign(0, true), b.Foreign(0, false)
	g := b.gate(blocking)
	legacy := b.record(0)
	b.held(legacy, "the legacy stream did not wait for a blocking one")
	b.sync(free)
	b.sync(b.stream())
	g.open()
	b.must(b.SynchronizeEvent(b.c, legacy))
	g = b.gate(cuda.LegacyStream)
	late, other := b.record(blocking), b.record(0)
	b.held(late, "a blocking stream did not wait for the legacy one")
	b.held(other, "0 is not 1")
	b.sync(free)
	g.open()
	b.must(b.SynchronizeEvent(b.c, late))

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g = b.gate(cuda.PerThreadStream)
	mine := b.record(cuda.PerThreadStream)
	elsewhere := make(chan bool)
	safego.Go("another thread", func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		e, _ := b.CreateEvent(b.c, true)
		_ = b.RecordEvent(b.c, e, cuda.PerThreadStream)
		_ = b.SynchronizeEvent(b.c, e)
		elsewhere <- true
	})
	<-elsewhere
	b.held(mine, "threads share a stream")
	g.open()
	b.must(b.SynchronizeEvent(b.c, mine))
	b.clean()
}

func TestMapping(t *testing.T) {
	b := open(t, Config{Memory: 4 * grain})
	_, err := b.ReserveAddress(grain+1, 0)
	b.want(err, cuda.InvalidValue)
	p, err := b.ReserveAddress(16*grain, 2<<20)
	b.must(err)
	if p%(2<<20) != 0 {
		t.Fatalf("%#x is not aligned", p)
	}
	_, err = b.CreateMemory(b.c, 0, 5*grain)
	b.want(err, cuda.OutOfMemory)
	m, err := b.CreateMemory(b.c, 0, 2*grain)
	b.must(err)
	n, err := b.CreateMemory(b.c, 0, grain)
	b.must(err)
	if free, total, _ := b.MemoryInfo(b.c); free != grain || total != 4*grain {
		t.Fatalf("%d of %d free", free, total)
	}
	b.want(b.Map(p+1, 2*grain, m), cuda.InvalidValue)
	b.want(b.Map(p, grain, m), cuda.NotSupported)
	b.want(b.Map(p+15*grain, 2*grain, m), cuda.InvalidValue)
	b.must(b.Map(p, 2*grain, m))
	b.want(b.Map(p+4*grain, 2*grain, m), cuda.InvalidValue) // one mapping at a time
	b.want(b.Map(p+grain, grain, n), cuda.InvalidValue)
	b.must(b.Map(p+2*grain, grain, n))
	b.want(b.SetAccess(p, 4*grain, 0), cuda.InvalidValue)
	b.must(b.SetAccess(p, 3*grain, 0))
	if fresh := b.Bytes(p, 3*grain); bytes.Count(fresh, []byte{Fresh}) != len(fresh) {
		t.Fatal("new memory has a pattern of its own")
	}
	data := noise(3 * grain) // across two mappings
	s := b.stream()
	b.must(b.Copy(b.c, p, at(data), 3*grain, s))
	b.sync(s)
	if !bytes.Equal(b.Bytes(p, 3*grain), data) {
		t.Fatal("bytes differ")
	}
	b.must(b.ReleaseMemory(m))
	if free, _, _ := b.MemoryInfo(b.c); free != grain {
		t.Fatal("memory that is mapped is free")
	}
	b.want(b.Unmap(p, grain), cuda.InvalidValue)
	b.must(b.Unmap(p, 2*grain))
	if free, _, _ := b.MemoryInfo(b.c); free != 3*grain {
		t.Fatal("unmapped and released memory is not free")
	}
	if b.Bytes(p, 1) != nil || !bytes.Equal(b.Bytes(p+2*grain, grain), data[2*grain:]) {
		t.Fatal("unmapped memory is there, or its neighbour is not")
	}
	b.clean()
	b.want(b.FreeAddress(p, 16*grain), cuda.InvalidValue)
	b.misused("of which something is mapped")
	b.must(b.Unmap(p+2*grain, grain))
	b.must(b.ReleaseMemory(n))
	b.must(b.FreeAddress(p, 16*grain))
	b.want(b.ReleaseMemory(n), cuda.InvalidHandle)
}

func TestIllegalAddresses(t *testing.T) {
	for name, touch := range map[string]func(b *bench, s cuda.Stream) error{
		"unmapped": func(b *bench, s cuda.Stream) error {
			p, err := b.ReserveAddress(2*grain, 0)
			b.must(err)
			return b.Copy(b.c, p, at(b.pinned(64)), 64, s)
		},
		"freed": func(b *bench, s cuda.Stream) error {
			p := b.allocate(4096)
			b.Deallocate(p)
			return b.Copy(b.c, p, at(b.pinned(64)), 64, s)
		},
		"kernel": func(b *bench, s cuda.Stream) error {
			p, err := b.ReserveAddress(grain, 0)
			b.must(err)
			b.launch(s, "poke", binary.LittleEndian.AppendUint64(nil, uint64(p)))
			return nil
		},
		"kernel fails": func(b *bench, s cuda.Stream) error { b.launch(s, "fail", nil); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, Config{Twins: twins})
			s := b.stream()
			before, e := b.record(s), b.event()
			b.must(touch(b, s))
			if err := b.RecordEvent(b.c, e, s); err == nil {
				err = b.SynchronizeEvent(b.c, e)
				if !is(err, cuda.IllegalAddress) && !is(err, cuda.LaunchFailed) {
					t.Fatalf("%v", err)
				}
			}
			if _, err := b.QueryEvent(b.c, before); err == nil {
				t.Fatal("the error is not sticky")
			}
		})
	}
}

// A copy across the border of accessible memory is refused, and the context stays valid.
func TestCopiesAcrossBorders(t *testing.T) {
	b := open(t, Config{})
	s, host := b.stream(), b.pinned(64)
	p, err := b.ReserveAddress(4*grain, 0)
	b.must(err)
	for i := range cuda.Pointer(2) {
		m, err := b.CreateMemory(b.c, 0, grain)
		b.must(err)
		b.must(b.Map(p+i*grain, grain, m))
	}
	b.must(b.SetAccess(p, grain, 0))
	b.want(b.Copy(b.c, p+grain-32, at(host), 64, s), cuda.InvalidValue)   // into a part without access
	b.want(b.Copy(b.c, p+grain, at(host), 64, s), cuda.InvalidValue)      // no access
	b.want(b.Copy(b.c, at(host), p+2*grain-32, 64, s), cuda.InvalidValue) // into an unmapped part
	b.want(b.Copy(b.c, at(host), p+4*grain-32, 64, s), cuda.InvalidValue) // out of the reservation
	b.must(b.Copy(b.c, at(host), p, 64, s))
	b.sync(s)
	b.clean()
}

func twins(name string) func(int, int, []byte) error {
	switch name {
	case "poke":
		return func(_, _ int, parameter []byte) error {
			bytesAt(span(uintptr(binary.LittleEndian.Uint64(parameter)), 1))[0] = 1
			return nil
		}
	case "fail":
		return func(int, int, []byte) error { return errors.New("deliberate") }
	}
	return nil
}

func TestSeamsOfPinnedMemory(t *testing.T) {
	b := open(t, Config{Pinned: 3 * 4096})
	m, err := memory.Map("test", 4*4096)
	b.must(err)
	defer func() { _ = m.Unmap() }()
	s, dev := b.stream(), b.allocate(4*4096)
	base := m.Base()
	b.must(b.Register(b.c, base, 4096))
	b.want(b.Register(b.c, unsafe.Add(base, 4095), 10), cuda.AlreadyRegistered)
	b.must(b.Register(b.c, unsafe.Add(base, 4096), 4096))
	b.must(b.Copy(b.c, dev, uintptr(base), 4096, s))
	b.want(b.Copy(b.c, dev, uintptr(base), 4097, s), cuda.InvalidValue)
	b.want(b.Copy(b.c, uintptr(base)+8191, dev, 2, s), cuda.InvalidValue) // pinned and pageable
	b.want(b.Register(b.c, unsafe.Add(base, 8192), 8192), cuda.OutOfMemory)
	b.want(b.Unregister(b.c, unsafe.Add(base, 1)), cuda.InvalidValue)
	b.want(b.Unregister(b.c, unsafe.Add(base, 3*4096)), cuda.NotRegistered)
	b.sync(s)
	b.must(b.Unregister(b.c, base))
	b.must(b.Register(b.c, unsafe.Add(base, 8192), 8192))
	b.must(b.Unregister(b.c, unsafe.Add(base, 8192)))
	b.must(b.Unregister(b.c, unsafe.Add(base, 4096)))
}

func TestLaunch(t *testing.T) {
	b := open(t, Config{Twins: twins})
	s := b.stream()
	_, err := b.LoadModule(b.c, nil)
	b.want(err, cuda.InvalidImage)
	m, err := b.LoadModule(b.c, []byte{1})
	b.must(err)
	_, err = b.Function(b.c, m, "absent")
	b.want(err, cuda.NotFound)
	f, err := b.Function(b.c, m, "poke")
	b.must(err)
	b.want(b.Launch(b.c, f, 0, 1, 0, s, nil), cuda.InvalidValue)
	b.want(b.Launch(b.c, f, 1, 1025, 0, s, nil), cuda.InvalidValue)
	b.want(b.Launch(b.c, f, 1, 1, 0, s, make([]byte, 32765)), cuda.InvalidValue)
	p := b.allocate(64)
	parameter := binary.LittleEndian.AppendUint64(nil, uint64(p))
	g := b.gate(s)
	b.must(b.Launch(b.c, f, 1, 1, 0, s, parameter))
	clear(parameter) // it was read during the call
	g.open()
	b.sync(s)
	if b.Bytes(p, 1)[0] != 1 {
		t.Fatal("the twin did not run")
	}
	b.clean()
	b.must(b.UnloadModule(b.c, m))
	b.want(b.Launch(b.c, f, 1, 1, 0, s, nil), cuda.InvalidHandle)
	b.misused("Launch of function")
}

func TestFailuresOnDemand(t *testing.T) {
	b := open(t, Config{})
	b.Fail("CreateMemory", cuda.OutOfMemory, 1, 2)
	for i, bad := range []bool{false, true, true, false} {
		if _, err := b.CreateMemory(b.c, 0, grain); (err != nil) != bad || bad && !is(err, cuda.OutOfMemory) {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if b.Calls("CreateMemory") != 4 || b.Calls("Map") != 0 {
		t.Fatal("calls are miscounted")
	}
	b.Occupy(0, 1<<30)
	_, err := b.CreateMemory(b.c, 0, grain)
	b.want(err, cuda.OutOfMemory)
	b.LimitPinned(-1)
	_, err = b.AllocateHost(b.c, 1)
	b.want(err, cuda.OutOfMemory)
	b.Fail("QueryEvent", cuda.IllegalAddress, 0, 1)
	_, err = b.QueryEvent(b.c, b.event())
	b.want(err, cuda.IllegalAddress)
	_, err = b.CreateStream(b.c, 0)
	b.want(err, cuda.IllegalAddress)
}

// After the loss no work runs, waits end, and other devices go on.
func TestLostContext(t *testing.T) {
	b := open(t, Config{Devices: 2})
	c1, err := b.RetainPrimary(1)
	b.must(err)
	dev, host := b.allocate(4096), b.pinned(4096)
	p, _ := b.mapped(grain)
	s, other := b.stream(), b.stream()
	held, err := b.CreateStream(c1, 0)
	b.must(err)
	g := b.gate(s)
	<-g.inside
	b.Lose(0, 2)
	for i := range cuda.Pointer(4) {
		copy(host[i*16:], bytes.Repeat([]byte{byte(i + 1)}, 16))
		b.must(b.Copy(b.c, dev+16*i, at(host)+16*i, 16, s))
	}
	e := b.record(s)
	b.must(b.StreamWaitEvent(b.c, other, e))
	b.must(b.Copy(b.c, p, dev, 64, other))
	b.must(b.StreamWaitEvent(c1, held, e))
	g.open()
	b.want(b.SynchronizeEvent(b.c, e), cuda.IllegalAddress)
	b.Settle()
	got := bytesAt(span(dev, 64))
	if got[0] != 1 || got[16] != 2 || got[32] != Fresh || got[48] != Fresh || bytesAt(span(p, 1))[0] != Fresh {
		t.Fatalf("% x", got)
	}
	b.want(b.Copy(b.c, dev, at(host), 1, s), cuda.IllegalAddress)
	b.want(b.Unmap(p, grain), cuda.IllegalAddress)
	e1, err := b.CreateEvent(c1, true)
	b.must(err)
	b.must(b.RecordEvent(c1, e1, held))
	b.must(b.SynchronizeEvent(c1, e1))
}

func TestAlive(t *testing.T) {
	b := open(t, Config{})
	s, e := b.stream(), b.event()
	p, m := b.mapped(grain)
	h, err := b.AllocateHost(b.c, 1)
	b.must(err)
	mod, err := b.LoadModule(b.c, []byte{1})
	b.must(err)
	b.Foreign(0, true)
	b.allocate(64)
	if alive := b.Alive(); len(alive) != 7 {
		t.Fatalf("%q", alive)
	}
	b.must(b.DestroyStream(b.c, s))
	b.must(b.DestroyEvent(b.c, e))
	b.must(b.ReleaseMemory(m))
	b.must(b.Unmap(p, grain))
	b.must(b.FreeAddress(p, grain))
	b.must(b.FreeHost(b.c, h))
	b.must(b.UnloadModule(b.c, mod))
	b.must(b.ReleasePrimary(0))
	if alive := b.Alive(); len(alive) != 0 {
		t.Fatalf("%q", alive)
	}
	b.clean()
	_, _, err = b.MemoryInfo(b.c)
	b.want(err, cuda.InvalidContext)
}

func TestMisuse(t *testing.T) {
	b := open(t, Config{})
	s := b.stream()
	host, dev := b.pinned(4096), b.allocate(4096)
	p, _ := b.mapped(grain)
	g := b.gate(s)
	b.must(b.Copy(b.c, p, at(host), 4096, s))
	b.must(b.Copy(b.c, p, dev, 64, s))
	b.must(b.Unmap(p, grain))
	b.misused("Unmap of " + span(p, grain).String() + ", which copy")
	b.Deallocate(dev)
	b.misused("Deallocate of")
	_ = b.FreeHost(b.c, unsafe.Pointer(&host[0]))
	b.misused("FreeHost of")
	captured := b.Foreign(0, false)
	b.SetCapturing(captured, true)
	if yes, err := b.StreamIsCapturing(b.c, captured); !yes || err != nil {
		t.Fatal(yes, err)
	}
	b.record(captured)
	b.misused("which is being captured")
	b.must(b.DestroyStream(b.c, s))
	b.want(b.RecordEvent(b.c, b.event(), s), cuda.InvalidHandle)
	b.misused("RecordEvent on stream")
	g.open()
}

// Unordered accesses are reported, even if they happened to go well; accesses ordered in any way are not.
func TestUnorderedAccesses(t *testing.T) {
	for name, c := range map[string]struct {
		bad bool
		do  func(b *bench, one, two cuda.Stream, dev cuda.Pointer)
	}{
		"nothing": {true, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			b.must(b.Copy(b.c, dev+512, dev+100, 64, two))
		}},
		"beside": {false, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			b.must(b.Copy(b.c, dev+512, dev+164, 64, two))
		}},
		"an event": {false, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			b.must(b.StreamWaitEvent(b.c, two, b.record(one)))
			b.must(b.Copy(b.c, dev+512, dev+100, 64, two))
		}},
		"an event too early": {true, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			e := b.record(two)
			b.must(b.StreamWaitEvent(b.c, two, e))
			b.must(b.Copy(b.c, dev+512, dev+100, 64, two))
		}},
		"the host": {false, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			b.sync(one)
			b.must(b.Copy(b.c, dev+512, dev+100, 64, two))
		}},
		"the legacy stream": {false, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			b.must(b.Copy(b.c, dev+512, dev+100, 64, 0))
		}},
		"several readers, one waited for": {true, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			b.sync(one)
			b.must(b.Copy(b.c, dev+512, dev+100, 64, one))
			b.must(b.Copy(b.c, dev+600, dev+100, 64, two))
			three := b.stream()
			b.must(b.StreamWaitEvent(b.c, three, b.record(two)))
			b.must(b.Copy(b.c, dev+100, dev+800, 64, three))
		}},
		"freed without a wait": {true, func(b *bench, one, two cuda.Stream, dev cuda.Pointer) {
			for b.unfinishedNow() {
				runtime.Gosched()
			}
			b.Deallocate(dev)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, Config{})
			one, two := b.Foreign(0, true), b.stream()
			dev := b.allocate(4096)
			b.must(b.Copy(b.c, dev+100, dev+1000, 64, one))
			c.do(b, one, two, dev)
			b.Settle()
			if got := b.Misuse(); (len(got) > 0) != c.bad {
				t.Fatalf("%q", got)
			}
		})
	}
}

func (b *bench) unfinishedNow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unfinished() != nil
}

// Random delays must be able to turn a missing wait into wrong bytes.
func TestMissingWaitsShow(t *testing.T) {
	wrong := 0
	for seed := range uint64(200) {
		b := open(t, Config{Delay: 300 * time.Microsecond, Seed: seed})
		one, two, host := b.stream(), b.stream(), b.pinned(4096)
		dev := b.allocate(4096)
		b.must(b.Copy(b.c, dev, at(host), 4096, one))
		b.must(b.Copy(b.c, at(host), dev, 4096, two))
		b.Settle()
		if bytes.Contains(host, []byte{Fresh}) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Fatal("200 schedules without a wait, and all went well")
	}
}
