package conformance

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/kernel"
)

func identity(t *testing.T, m Machine) {
	if v := got(m.Driver.Version())(t); v < 13000 {
		t.Errorf("version %d", v)
	}
	all := got(m.Driver.Devices())(t)
	if all == 0 {
		t.Fatal("no device")
	}
	seen := map[string]bool{}
	for i := range all {
		d := got(cuda.Identify(m.Driver, i))(t)
		t.Logf("%s, %s, PCI %s, compute capability %d.%d, %d processors, %d copy engines, NUMA node %d, slice %v",
			d, d.UUID, d.PCI, d.Major, d.Minor, d.Processors, d.CopyEngines, d.NUMANode, d.Slice)
		if d.Ordinal != i || d.Name == "" || d.Major < 8 || d.Processors < 1 || seen[d.UUID] || len(d.UUID) != 40 || len(d.PCI) != 16 {
			t.Errorf("%+v", d)
		}
		seen[d.UUID] = true
	}
	if _, err := m.Driver.DeviceName(all); !cuda.Is(err, cuda.InvalidDevice) {
		t.Errorf("the name of a device too many: %v", err)
	}
	c := got(m.Driver.RetainPrimary(0))(t)
	free, total, err := m.Driver.MemoryInfo(c)
	if err != nil || free <= 0 || free > total || total < 1<<28 {
		t.Errorf("%d bytes of %d free: %v", free, total, err)
	}
	must(t, m.Driver.ReleasePrimary(0))
}

// refusals are the devices that cannot be opened, and their errors.
func refusals(t *testing.T, m Machine) {
	for _, c := range []struct {
		ordinal int
		image   []byte
		want    string
	}{
		{-1, m.Image, "no cuda:-1"}, {99, m.Image, "CUDA_VISIBLE_DEVICES"}, {0, nil, "kernels are missing"},
	} {
		_, err := cuda.Open(m.Driver, c.ordinal, c.image)
		if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("device %d with %d bytes of kernels: %v", c.ordinal, len(c.image), err)
		}
	}
}

func physicalMemory(t *testing.T, m Machine) {
	d := m.Driver
	c := got(d.RetainPrimary(0))(t)
	grain := got(d.Granularity(0))(t)
	if grain <= 0 || grain&(grain-1) != 0 {
		t.Fatalf("granularity %d", grain)
	}
	at := got(d.ReserveAddress(4*grain, grain))(t)
	if at == 0 || int64(at)%grain != 0 {
		t.Fatalf("reserved at %#x", at)
	}
	s := got(d.CreateStream(c, 0))(t)
	e := got(d.CreateEvent(c, true))(t)
	wait := func() {
		t.Helper()
		must(t, d.RecordEvent(c, e, s))
		must(t, d.SynchronizeEvent(c, e))
	}
	var parts []cuda.Memory
	for i := range int64(2) { // adjacent, as in the arena
		p := got(d.CreateMemory(c, 0, grain))(t)
		must(t, d.Map(at+uintptr(i*grain), grain, p))
		must(t, d.SetAccess(at+uintptr(i*grain), grain, 0))
		parts = append(parts, p)
	}
	h := host(t, 2*grain)
	want := pattern(1, 2*grain)
	copy(h.Bytes(0, 2*grain), want)
	must(t, d.Copy(c, at, address(h), 2*grain, s))
	wait()
	clear(h.Bytes(0, 2*grain))
	must(t, d.Copy(c, address(h), at, 2*grain, s))
	wait()
	same(t, "memory of two pieces", h.Bytes(0, 2*grain), want)
	for i, p := range parts {
		must(t, d.Unmap(at+uintptr(int64(i)*grain), grain))
		must(t, d.ReleaseMemory(p))
	}
	must(t, d.FreeAddress(at, 4*grain))
	if _, err := d.CreateMemory(c, 0, 1<<46); !cuda.Is(err, cuda.OutOfMemory) {
		t.Errorf("64 TiB: %v", err)
	}
	must(t, d.DestroyEvent(c, e))
	must(t, d.DestroyStream(c, s))
	must(t, d.ReleasePrimary(0))
}

func pinnedMemory(t *testing.T, m Machine) {
	d := m.Driver
	c := got(d.RetainPrimary(0))(t)
	const n = 4 << 20
	h := host(t, 2*n)
	must(t, h.Populate(0, 2*n))
	first, second := h.Base(), unsafe.Add(h.Base(), n)
	must(t, d.Register(c, first, n))
	if err := d.Register(c, first, n); !cuda.Is(err, cuda.AlreadyRegistered) {
		t.Errorf("registered twice: %v", err)
	}
	must(t, d.Register(c, second, n))
	w := got(d.AllocateHost(c, 1000))(t)
	clear(unsafe.Slice((*byte)(w), 1000))
	s := got(d.CreateStream(c, 0))(t)
	if err := d.Copy(c, uintptr(w), uintptr(first)+n-64, 128, s); !cuda.Is(err, cuda.InvalidValue) {
		t.Errorf("a copy across the seam of two registered pieces: %v; if it works, copies need not be split", err)
	}
	must(t, d.DestroyStream(c, s))
	must(t, d.Unregister(c, second))
	must(t, d.Unregister(c, first))
	must(t, d.FreeHost(c, w))
	must(t, d.ReleasePrimary(0))
}

func streams(t *testing.T, m Machine) {
	d := m.Driver
	c := got(d.RetainPrimary(0))(t)
	defer func() { must(t, d.ReleasePrimary(0)) }()
	least, greatest, err := d.StreamPriorities(c)
	if err != nil || least < greatest {
		t.Errorf("priorities from %d to %d: %v", least, greatest, err)
	}
	seen := map[cuda.Stream]bool{0: true, cuda.LegacyStream: true, cuda.PerThreadStream: true}
	for p := greatest; p <= least; p++ {
		s := got(d.CreateStream(c, p))(t)
		defer func() { must(t, d.DestroyStream(c, s)) }() // deferred to the end: a handle may be reused once its stream is destroyed
		if seen[s] {
			t.Errorf("stream %#x is not new", uintptr(s))
		}
		seen[s] = true
		if recorded := got(d.StreamIsCapturing(c, s))(t); recorded {
			t.Error("a new stream is being captured")
		}
	}
	for _, s := range []cuda.Stream{cuda.LegacyStream, cuda.PerThreadStream} {
		if recorded := got(d.StreamIsCapturing(c, s))(t); recorded {
			t.Errorf("default stream %d is being captured", s)
		}
	}
}

func events(t *testing.T, m Machine) {
	d := m.Driver
	c := got(d.RetainPrimary(0))(t)
	a, b := got(d.CreateStream(c, 0))(t), got(d.CreateStream(c, 0))(t)
	e := got(d.CreateEvent(c, true))(t)
	if done := got(d.QueryEvent(c, e))(t); !done {
		t.Error("an event that was never recorded has not happened")
	}
	n := int64(16 << 20)
	from, to := host(t, n), host(t, n)
	w := got(d.AllocateHost(c, n))(t)
	copy(from.Bytes(0, n), pattern(2, n))
	must(t, d.Copy(c, uintptr(w), address(from), n, a))
	must(t, d.RecordEvent(c, e, a))
	must(t, d.StreamWaitEvent(c, b, e))
	must(t, d.Copy(c, address(to), uintptr(w), n, b))
	must(t, d.RecordEvent(c, e, b)) // the wait in b refers to the earlier record
	must(t, d.SynchronizeEvent(c, e))
	if done := got(d.QueryEvent(c, e))(t); !done {
		t.Error("an event that was waited for has not happened")
	}
	same(t, "copied through two streams", to.Bytes(0, n), from.Bytes(0, n))
	must(t, d.FreeHost(c, w))
	must(t, d.DestroyEvent(c, e))
	must(t, d.DestroyStream(c, a))
	must(t, d.DestroyStream(c, b))
	must(t, d.ReleasePrimary(0))
}

func modules(t *testing.T, m Machine) {
	d := m.Driver
	c := got(d.RetainPrimary(0))(t)
	module := got(d.LoadModule(c, m.Image))(t)
	for _, name := range kernel.Names() {
		if f := got(d.Function(c, module, name))(t); f == 0 {
			t.Errorf("%s is nothing", name)
		}
	}
	if _, err := d.Function(c, module, "velocpy_nothing"); !cuda.Is(err, cuda.NotFound) {
		t.Errorf("a kernel that is not there: %v", err)
	}
	must(t, d.UnloadModule(c, module))
	if _, err := d.LoadModule(c, nil); err == nil {
		t.Error("no kernels at all are a module")
	}
	must(t, d.ReleasePrimary(0))
}

// threads uses one context from many threads that had none, and checks that none keeps it.
func threads(t *testing.T, m Machine) {
	b := newBench(t, m, 16<<20)
	together(8, func(i int) {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		l, err := b.dev.Lane(device.Ahead)
		if err != nil {
			t.Error(err)
			return
		}
		for range 20 {
			if mark, err := l.Event(); err != nil {
				t.Error(err)
			} else if err := mark.Wait(); err != nil {
				t.Error(err)
			} else {
				mark.Drop()
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if m.Current == nil {
			return
		}
		if c, err := m.Current(); err != nil || c != 0 {
			t.Errorf("thread %d is left with context %#x: %v", i, uintptr(c), err)
		}
	})
	b.close()
}
