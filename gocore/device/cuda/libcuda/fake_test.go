//go:build cgo

package libcuda_test

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/libcuda"
)

var asChild = flag.Bool("child", false, "in a process that a test started: open the driver")

// fake builds a libcuda.so.1 and returns its folder.
func fake(t *testing.T, options ...string) string {
	t.Helper()
	dir := t.TempDir()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here") // as on machines that only run the tests; the machine that built them has one
	}
	arguments := append([]string{"-shared", "-fPIC", "-o", filepath.Join(dir, "libcuda.so.1"), "testdata/fake.c"}, options...)
	if text, err := exec.Command(compiler, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return dir
}

// child runs a test in a process that finds the driver in a folder, and returns its log.
func child(t *testing.T, test, dir string, environment ...string) string {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v", "-child")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "CUDA_VISIBLE_DEVICES=") {
			command.Env = append(command.Env, e)
		}
	}
	command.Env = append(append(command.Env, "LD_LIBRARY_PATH="+dir), environment...)
	text, err := command.CombinedOutput()
	if err != nil || strings.Contains(string(text), "SKIP") {
		t.Errorf("%v\n%s", err, text)
	}
	return string(text)
}

// Each reason why the driver cannot be used has its own text, with a remedy.
func TestWhyThereIsNoDriver(t *testing.T) {
	if *onGPU {
		t.Skip("there is one")
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "libcuda.so.1"), []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir         string
		environment []string
		want        []string
	}{
		"none":          {t.TempDir(), nil, []string{"ErrNoLibrary", "install the driver", "--gpus all"}},
		"unloadable":    {broken, nil, []string{"ErrUnloadable", "LD_LIBRARY_PATH"}},
		"old":           {fake(t, "-DVERSION=12080"), nil, []string{"ErrOld", "CUDA 12.8", "13.0 is needed", "580"}},
		"old, lacking":  {fake(t, "-DVERSION=11040", "-DLACKING"), nil, []string{"ErrOld", "CUDA 11.4"}},
		"lacking":       {fake(t, "-DLACKING"), nil, []string{"ErrIncomplete", "cuLaunchKernel"}},
		"no device":     {fake(t, "-DINIT=100"), nil, []string{"ErrNoDevice", "nvidia-smi"}},
		"count of none": {fake(t, "-DCOUNT=0"), nil, []string{"ErrNoDevice", "nvidia-smi"}},
		"hidden":        {fake(t, "-DINIT=100"), []string{"CUDA_VISIBLE_DEVICES="}, []string{"ErrNoDevice", "set to nothing"}},
		"hidden by -1":  {fake(t, "-DINIT=100"), []string{"CUDA_VISIBLE_DEVICES=-1"}, []string{"ErrNoDevice", `"-1"`}},
		"a stub":        {fake(t, "-DINIT=34"), nil, []string{"ErrRefused", "stub", "(34)"}},
		"no fabric":     {fake(t, "-DINIT=802"), nil, []string{"ErrRefused", "nvidia-fabricmanager"}},
		"two versions":  {fake(t, "-DINIT=803"), nil, []string{"ErrRefused", "restart"}},
		"unknown":       {fake(t, "-DINIT=999"), nil, []string{"ErrRefused", "cuInit", "FAKE_OTHER", "(999)", "something else"}},
		"all well":      {fake(t), nil, []string{"opened, version 13000"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := child(t, "TestChildOpens", c.dir, c.environment...)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

func TestChildOpens(t *testing.T) {
	if !*asChild {
		t.Skip("runs in a process of its own")
	}
	d, err := libcuda.Open()
	if err == nil {
		v, _ := d.Version()
		t.Logf("opened, version %d", v)
		return
	}
	if !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("%v is not that there is no accelerator", err)
	}
	for name, sentinel := range map[string]error{
		"ErrNoLibrary": cuda.ErrNoLibrary, "ErrUnloadable": cuda.ErrUnloadable, "ErrIncomplete": cuda.ErrIncomplete,
		"ErrOld": cuda.ErrOld, "ErrNoDevice": cuda.ErrNoDevice, "ErrRefused": cuda.ErrRefused,
	} {
		if errors.Is(err, sentinel) {
			t.Logf("%s: %v", name, err)
		}
	}
}

// Every call passes what the driver's documentation requires, inside our context and in the relaxed capture mode.
func TestCalls(t *testing.T) {
	if *onGPU {
		t.Skip("there is a real one")
	}
	for _, options := range [][]string{nil, {"-DREFUSING"}} {
		if text := child(t, "TestChildCalls", fake(t, options...)); !strings.Contains(text, "PASS") {
			t.Error(text)
		}
	}
}

func TestChildCalls(t *testing.T) {
	if !*asChild {
		t.Skip("runs in a process of its own")
	}
	d, err := libcuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, current := range []cuda.Context{0, 0xABC, 0x77665544332211} { // none, a foreign one, ours
		if current != 0 {
			must(t, d.MakeCurrent(current))
		}
		everyCall(t, d)
		if c := got(d.Current())(t); c != current {
			t.Errorf("context %#x is left, %#x was there", uintptr(c), uintptr(current))
		}
		if current != 0 {
			must(t, d.Uncurrent())
		}
	}
	_, _, err = d.MemoryInfo(0xBAD)
	if !cuda.Is(err, cuda.InvalidContext) || !strings.Contains(err.Error(), "cuCtxPushCurrent for cuMemGetInfo") {
		t.Errorf("a context that is none: %v", err)
	}
	err = d.ReleaseMemory(1)
	if !cuda.Is(err, cuda.InvalidValue) || err.Error() != "cuMemRelease: FAKE_INVALID (1): not as expected" {
		t.Errorf("memory that is none: %v", err)
	}
	if _, err := d.DeviceName(2); !cuda.Is(err, cuda.InvalidDevice) {
		t.Errorf("the third of two devices: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func got[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func everyCall(t *testing.T, d *libcuda.Driver) {
	identity := got(cuda.Identify(d, 0))(t)
	if identity.Name != "Fake 3000" || identity.UUID != "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf" || identity.Major != 1075 || identity.Minor != 1076 ||
		identity.NUMANode != -1 || identity.PCI != "0000041a:409:40a.0" {
		t.Errorf("%+v", identity)
	}
	c := got(d.RetainPrimary(0))(t)
	if free, total, err := d.MemoryInfo(c); err != nil || free != 3<<33 || total != 5<<33 {
		t.Errorf("%d of %d free, %v", free, total, err)
	}
	if least, greatest, err := d.StreamPriorities(c); err != nil || least != 0 || greatest != -5 {
		t.Errorf("priorities from %d to %d, %v", least, greatest, err)
	}
	at := got(d.ReserveAddress(1<<41, got(d.Granularity(0))(t)))(t)
	m := got(d.CreateMemory(c, 0, 5<<32))(t)
	must(t, d.Map(at, 5<<32, m))
	must(t, d.SetAccess(at, 5<<32, 0))
	must(t, d.Unmap(at, 5<<32))
	must(t, d.ReleaseMemory(m))
	must(t, d.FreeAddress(at, 1<<41))
	var word uint64
	must(t, d.Register(c, unsafe.Pointer(&word), 6<<32))
	must(t, d.Unregister(c, unsafe.Pointer(&word)))
	h := got(d.AllocateHost(c, 4096))(t)
	*(*byte)(h) = 1
	must(t, d.FreeHost(c, h))
	s, e := got(d.CreateStream(c, -3))(t), got(d.CreateEvent(c, true))(t)
	if got(d.CreateEvent(c, false))(t) != e+1 {
		t.Error("both kinds of events are of one kind")
	}
	if !got(d.StreamIsCapturing(c, s))(t) || !got(d.StreamIsCapturing(c, cuda.LegacyStream))(t) || got(d.StreamIsCapturing(c, cuda.PerThreadStream))(t) {
		t.Error("who is being captured")
	}
	must(t, d.RecordEvent(c, e, s))
	must(t, d.StreamWaitEvent(c, s, e))
	if got(d.QueryEvent(c, e))(t) {
		t.Error("an event that has not happened")
	}
	must(t, d.SynchronizeEvent(c, e))
	timer := got(d.CreateTimer(c))(t)
	if ns, done, err := d.ElapsedTime(c, e, timer); ns != 0 || done || err != nil {
		t.Error("the time from an event that has not happened is", ns, done, err)
	}
	if ns, done, err := d.ElapsedTime(c, timer, timer); ns != 1_500_000 || !done || err != nil {
		t.Error("1.5 ms are", ns, done, err)
	}
	must(t, d.Copy(c, at, at+1, 7<<33, s))
	must(t, d.CopyAll(c, nil, s))
	must(t, d.CopyAll(c, slices.Repeat([]device.Move{{To: at, From: at + 1, Bytes: 7 << 33}}, 65), s)) // a call for 64, and one for the last
	must(t, d.BeginCapture(c, s))
	must(t, d.EndCapture(c, s))
	everyKernel(t, d, c, s)
	must(t, d.DestroyEvent(c, e))
	must(t, d.DestroyStream(c, s))
	must(t, d.ReleasePrimary(0))
}

func everyKernel(t *testing.T, d *libcuda.Driver, c cuda.Context, s cuda.Stream) {
	module := got(d.LoadModule(c, []byte("kernels")))(t)
	f := got(d.Function(c, module, "kernel"))(t)
	p := make([]byte, 32764)
	for i := range p {
		p[i] = byte(i * 7)
	}
	must(t, d.Launch(c, f, 1<<30, 256, 1024, s, p))
	if err := d.Launch(c, f, 1<<30, 256, 1024, s, append(p, 0)); !cuda.Is(err, cuda.InvalidValue) {
		t.Errorf("a parameter that is too large: %v", err)
	}
	must(t, d.UnloadModule(c, module))
}
