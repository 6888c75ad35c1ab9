package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/topology"
)

// board is a topology that reports the GPUs that a test gave it.
type board struct {
	gpus   []topology.GPU
	err    error
	closed int
}

func (b *board) Driver() (string, error)                           { return "580.1", b.err }
func (b *board) GPUs() ([]topology.GPU, error)                     { return b.gpus, b.err }
func (b *board) Watch(<-chan struct{}, func(topology.Fault)) error { return topology.ErrUnknown }
func (b *board) Close() error                                      { b.closed++; return nil }
func noTopology() (topology.Source, error) {
	return nil, fmt.Errorf("%w: not installed", topology.ErrUnknown)
}
func (b *board) open() (topology.Source, error) { return b, nil }
func kernels() ([]byte, error)                  { return []byte("twins"), nil }
func drivenBy(d *double.Driver) func() (cuda.Driver, error) {
	return func() (cuda.Driver, error) { return d, nil }
}
func without(err error) func() (cuda.Driver, error) {
	return func() (cuda.Driver, error) { return nil, err }
}

// slow is a GPU whose link is slower than any machine's copies, so that rates are judged good.
func slow(uuid string) topology.GPU {
	return topology.GPU{UUID: uuid, PCI: "00000000:10:00.0", Generation: 1, Width: 1, MostGeneration: 1, MostWidth: 1, NUMA: 1}
}

const first = "GPU-d0000000-0000-0000-0000-000000000000"

// every returns a clock that advances by step on each call, so that rates do not depend on the machine of the test.
func every(step time.Duration) func() time.Time {
	now := time.Time{}
	return func() time.Time { now = now.Add(step); return now }
}

// machine returns a machine without defects. At the end of the test, the double must have everything back.
func machine(t *testing.T, cfg double.Config) (Machine, *double.Driver, *board) {
	t.Helper()
	if cfg.Attributes == nil {
		cfg.Attributes = map[cuda.Attribute]int{cuda.HostNUMANode: -1}
	}
	d, b := double.New(cfg), &board{gpus: []topology.GPU{{UUID: "GPU-hidden"}, slow(first)}}
	t.Cleanup(func() {
		d.Settle()
		for _, text := range append(d.Misuse(), d.Alive()...) {
			t.Error(text)
		}
		d.Close()
	})
	return Machine{
		Driver: drivenBy(d), Topology: b.open, Kernels: kernels, Limits: Limits{Locked: -1, Files: -1, Memory: -1, Most: -1, Left: -1, HugePages: "madvise"},
		Piece: 1 << 20, Long: time.Millisecond, Now: every(time.Millisecond),
	}, d, b
}

// found returns the only finding of that name.
func found(t *testing.T, r Report, what string) Finding {
	t.Helper()
	var all []Finding
	for _, f := range r.Findings {
		if f.What == what {
			all = append(all, f)
		}
	}
	if len(all) != 1 {
		t.Fatalf("%d findings about %s in %+v", len(all), what, r.Findings)
	}
	return all[0]
}

func want(t *testing.T, f Finding, verdict Verdict, words ...string) {
	t.Helper()
	if f.Verdict != verdict {
		t.Errorf("%s: %s instead of %s: %s", f.What, f.Verdict, verdict, f.Text)
	}
	if f.Verdict != OK && !strings.HasSuffix(f.Remedy, ".") {
		t.Errorf("%s: %q is no sentence that helps", f.What, f.Remedy)
	}
	for _, word := range words {
		if !strings.Contains(f.Text+" "+f.Remedy, word) {
			t.Errorf("%s: nothing of %q in %q, %q", f.What, word, f.Text, f.Remedy)
		}
	}
}

func TestAHealthyMachine(t *testing.T) {
	m, _, b := machine(t, double.Config{})
	r := Examine(m, Request{})
	if r.Verdict != OK || r.GPUs != 1 {
		t.Fatalf("%+v", r)
	}
	want(t, found(t, r, "driver"), OK, "CUDA 13.0", "1 GPU visible")
	want(t, found(t, r, "management library"), OK, "580.1", "2 GPUs")
	want(t, found(t, r, "device"), OK, "Double", "compute capability 9.0", "1.0 GiB of 1.0 GiB free", "00000000:10:00.0", "NUMA node 1")
	want(t, found(t, r, "kernels"), OK, "functions loaded")
	want(t, found(t, r, "pinning"), OK, "2.0 MiB registered")
	want(t, found(t, r, "link"), OK, "PCIe 1 x1")
	copies := found(t, r, "copies")
	want(t, copies, OK)
	for _, name := range []string{"to_host", "to_device", "both", "pageable_to_host", "pageable_to_device", "within"} {
		if got, ok := copies.Facts[name].(float64); !ok || got <= 0 {
			t.Errorf("%s: %v", name, copies.Facts[name])
		}
	}
	if b.closed != 1 {
		t.Errorf("the topology was closed %d times", b.closed)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestEveryDeviceOrTheOneAskedFor(t *testing.T) {
	m, _, _ := machine(t, double.Config{Devices: 3})
	devices := func(q Request) (numbers []int) {
		for _, f := range Examine(m, q).Findings {
			if f.What == "device" {
				numbers = append(numbers, *f.Device)
			}
		}
		return numbers
	}
	off, second, none := false, 1, 3
	if got := devices(Request{Rates: &off}); len(got) != 3 || got[2] != 2 {
		t.Errorf("devices %v", got)
	}
	if got := devices(Request{Rates: &off, Device: &second}); len(got) != 1 || got[0] != 1 {
		t.Errorf("devices %v", got)
	}
	r := Examine(m, Request{Rates: &off, Device: &none})
	f := found(t, r, "device")
	want(t, f, Failed, "no cuda:3", "CUDA_VISIBLE_DEVICES")
	if *f.Device != 3 || r.Verdict != Failed || r.GPUs != 0 {
		t.Errorf("%+v", r)
	}
}

func TestNoDriver(t *testing.T) {
	some := ""
	for name, c := range map[string]struct {
		err     error
		hidden  *string
		verdict Verdict
		remedy  string
	}{
		"no library": {fmt.Errorf("%w (nothing): install it; or not", cuda.ErrNoLibrary), nil, Absent, "Install it; or not."},
		"old":        {fmt.Errorf("%w: it knows 12.4: install 580", cuda.ErrOld), nil, Failed, "Install 580."},
		"unloadable": {fmt.Errorf("%w: look here", cuda.ErrUnloadable), nil, Failed, "Look here."},
		"lacking":    {fmt.Errorf("%w: cuX: install it anew", cuda.ErrIncomplete), nil, Failed, "Install it anew."},
		"refused":    {fmt.Errorf("%w: see", cuda.ErrRefused), nil, Failed, "See."},
		"no device":  {fmt.Errorf("%w: see", cuda.ErrNoDevice), nil, Absent, "See."},
		"hidden":     {fmt.Errorf("%w: unset it", cuda.ErrNoDevice), &some, Warning, "Unset it."},
	} {
		t.Run(name, func(t *testing.T) {
			m, _, _ := machine(t, double.Config{})
			m.Driver, m.Hidden, m.Topology = without(c.err), c.hidden, noTopology
			m.Kernels = func() ([]byte, error) { return nil, errors.New("no file") }
			r := Examine(m, Request{})
			f := found(t, r, "driver")
			want(t, f, c.verdict, "NVIDIA driver")
			if f.Remedy != c.remedy || strings.Contains(f.Text, "no usable accelerator") {
				t.Errorf("%q, %q", f.Text, f.Remedy)
			}
			worst := c.verdict
			if worst == Absent {
				worst = OK
			}
			if r.Verdict != worst || r.GPUs != 0 {
				t.Errorf("%+v", r)
			}
			want(t, found(t, r, "kernels' file"), Absent)
			zero := 0
			want(t, found(t, Examine(m, Request{Device: &zero}), "device"), Failed, "cuda:0")
		})
	}
}

func TestWithoutTheManagementLibrary(t *testing.T) {
	m, _, _ := machine(t, double.Config{})
	m.Topology = noTopology
	r := Examine(m, Request{})
	want(t, found(t, r, "management library"), Absent, "not installed")
	want(t, found(t, r, "link"), Absent)
	want(t, found(t, r, "copies"), OK)
	if r.Verdict != OK || r.GPUs != 1 {
		t.Errorf("%+v", r)
	}
	b := &board{err: topology.ErrUnknown}
	m.Topology = b.open
	want(t, found(t, Examine(m, Request{}), "management library"), Absent)
	if b.closed != 1 {
		t.Errorf("closed %d times", b.closed)
	}
}

// With a clock that advances by a second on each call, any link is too slow.
func TestSlowCopiesAndNarrowLinks(t *testing.T) {
	m, _, b := machine(t, double.Config{})
	m.Now = every(time.Second)
	b.gpus[1].Width, b.gpus[1].MostWidth = 8, 16
	r := Examine(m, Request{})
	want(t, found(t, r, "link"), Warning, "8 of 16 lanes")
	want(t, found(t, r, "copies"), Warning, "could carry 4 GB/s")
	if r.Verdict != Warning || r.GPUs != 1 {
		t.Errorf("%+v", r)
	}
	facts := found(t, r, "copies").Facts
	if facts["to_host"] != float64(1<<20) || facts["both"] != float64(2<<20) {
		t.Errorf("a piece of 1 MiB a second: %v", facts)
	}
}

func TestBothWaysTogetherGainNothing(t *testing.T) {
	m, _, _ := machine(t, double.Config{})
	p := &patient{examination: &examination{Machine: m}}
	f := Finding{Verdict: OK}
	(&bench{patient: p}).judge(&f, map[string]float64{"to_host": 50e9, "to_device": 50e9, "both": 59e9}, 60e9)
	want(t, f, Warning, "one copy engine")
	f = Finding{Verdict: OK}
	(&bench{patient: p}).judge(&f, map[string]float64{"to_host": 50e9, "to_device": 50e9, "both": 95e9}, 60e9)
	want(t, f, OK)
}

func TestPinningRefused(t *testing.T) {
	m, d, _ := machine(t, double.Config{})
	d.Fail("Register", cuda.OutOfMemory, 0, 1)
	r := Examine(m, Request{})
	want(t, found(t, r, "pinning"), Warning, "ulimit")
	copies := found(t, r, "copies")
	if _, measured := copies.Facts["to_host"]; measured || copies.Facts["pageable_to_host"] == nil {
		t.Errorf("%v", copies.Facts)
	}
	if r.Verdict != Warning || r.GPUs != 1 {
		t.Errorf("%+v", r)
	}
}

// A call that fails gives a finding with the verdict failed or warning, and all resources are released.
func TestEveryCallThatFailsIsAFinding(t *testing.T) {
	for _, call := range []string{
		"Version", "Devices", "DeviceName", "DeviceUUID", "DeviceAttribute", "RetainPrimary", "MemoryInfo", "LoadModule", "Function", "StreamPriorities",
		"AllocateHost", "Granularity", "ReserveAddress", "CreateMemory", "Map", "SetAccess", "CreateStream", "Copy", "CreateEvent", "RecordEvent", "Register",
	} {
		t.Run(call, func(t *testing.T) {
			m, d, _ := machine(t, double.Config{})
			d.Fail(call, cuda.OutOfMemory, 0, 1)
			if r := Examine(m, Request{}); r.Verdict != Failed && r.Verdict != Warning {
				t.Errorf("%s fails, and everything is fine: %+v", call, r)
			}
		})
	}
}

func TestALostContextIsAFinding(t *testing.T) {
	d := double.New(double.Config{})
	defer d.Close()
	m, _, _ := machine(t, double.Config{})
	m.Driver = drivenBy(d)
	d.Lose(0, 2)
	r := Examine(m, Request{})
	if r.Verdict != Failed || r.GPUs != 0 {
		t.Errorf("%+v", r)
	}
	want(t, found(t, r, "copies"), Failed)
}

func TestDevicesThatCannotBeUsed(t *testing.T) {
	for name, attributes := range map[string]map[cuda.Attribute]int{
		"old": {cuda.ComputeMajor: 7}, "vGPU": {cuda.SupportsVMM: 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, _, _ := machine(t, double.Config{Attributes: attributes})
			r := Examine(m, Request{})
			want(t, found(t, r, "device"), Failed, "Host and disk tiers work")
			if r.GPUs != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
	m, d, _ := machine(t, double.Config{})
	d.Occupy(0, 1000<<20)
	want(t, found(t, Examine(m, Request{}), "device"), Warning, "24.0 MiB of 1.0 GiB free")
}

func TestKernelsMissingBesideADriver(t *testing.T) {
	m, _, _ := machine(t, double.Config{})
	m.Kernels = func() ([]byte, error) { return nil, &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT} }
	r := Examine(m, Request{Kernels: "x"})
	want(t, found(t, r, "kernels' file"), Failed, "has no GPU kernels", "no such file", "VELOCPY_CUDA=0")
	if r.GPUs != 0 || r.Verdict != Failed {
		t.Errorf("%+v", r)
	}
	m.Kernels = func() ([]byte, error) { return nil, nil }
	want(t, found(t, Examine(m, Request{Kernels: "x"}), "kernels' file"), Failed, "x is empty")
}

func TestLimits(t *testing.T) {
	m, _, _ := machine(t, double.Config{})
	m.Limits = Limits{Locked: 64 << 10, Files: 256, Memory: 8 << 30, Most: 1 << 30, Left: 100 << 20, HugePages: "never"}
	off := false
	r := Examine(m, Request{Rates: &off})
	want(t, found(t, r, "memory limits"), Warning, "64.0 KiB", "100.0 MiB of 1.0 GiB", "machine has 8.0 GiB")
	want(t, found(t, r, "open files"), Warning, "256", "ulimit -n")
	want(t, found(t, r, "huge pages"), Warning, "madvise")
	m.Limits.HugePages = ""
	want(t, found(t, Examine(m, Request{Rates: &off}), "huge pages"), Absent)
	m.Limits.Files = 4096
	want(t, found(t, Examine(m, Request{Rates: &off}), "open files"), OK, "4096")
}

func TestReadLimits(t *testing.T) {
	files := map[string]string{
		"/proc/self/cgroup":             "12:cpu,memory:/job/1\n0::/a/b\nnonsense\n",
		"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/b/memory.current": "5\n",
		"/sys/fs/cgroup/a/memory.max": "1000\n", "/sys/fs/cgroup/a/memory.current": "300\n",
		"/sys/fs/cgroup/memory/job/memory.limit_in_bytes": "900\n", "/sys/fs/cgroup/memory/job/memory.usage_in_bytes": "250\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
		"/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
		"/proc/meminfo": "MemTotal:        2048 kB\nMemFree: 7 kB\n",
	}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("no such file")
	}
	if l := ReadLimits(read); l.Left != 650 || l.Most != 900 || l.Memory != 2<<20 || l.Files == 0 || l.HugePages != "madvise" {
		t.Errorf("%+v", l)
	}
	files["/sys/fs/cgroup/a/memory.current"] = "2000\n"
	if l := ReadLimits(read); l.Left != 0 {
		t.Errorf("%+v", l)
	}
	clear(files)
	if l := ReadLimits(read); l.Left != -1 || l.Most != -1 || l.Memory != -1 || l.HugePages != "" {
		t.Errorf("%+v", l)
	}
}

func TestRequests(t *testing.T) {
	q, err := ParseRequest([]byte(` {"device": 2, "kernels": "k", "rates": false} `))
	if err != nil || *q.Device != 2 || q.Kernels != "k" || *q.Rates {
		t.Errorf("%+v, %v", q, err)
	}
	if q, err := ParseRequest([]byte(`{"device": null}`)); err != nil || q.Device != nil {
		t.Errorf("%+v, %v", q, err)
	}
	for _, text := range []string{"", "{", "[]", "7", `"x"`, `{"device": -1}`, `{"device": 1.5}`, `{"device": 1e30}`, `{"device": "0"}`, `{"devices": 0}`, `{} {}`, "\xff", `{"kernels": 3}`, `{"rates": 1}`} {
		if _, err := ParseRequest([]byte(text)); !errors.Is(err, ErrRequest) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// slice is a driver whose device is a part of a GPU.
type slice struct{ *double.Driver }

func (slice) DeviceName(int) (string, error) { return "Double MIG 1g.18gb", nil }

// NVML reports the whole GPU, with another UUID and the same PCI address.
func TestASliceHasTheLinkOfItsGPU(t *testing.T) {
	m, d, b := machine(t, double.Config{})
	m.Driver = func() (cuda.Driver, error) { return slice{d}, nil }
	b.gpus[1].UUID = "GPU-whole"
	r := Examine(m, Request{})
	f := found(t, r, "device")
	want(t, f, OK, "a slice of a GPU (MIG)")
	if f.Facts["mig"] != true || f.Facts["uuid"] != "MIG"+strings.TrimPrefix(first, "GPU") {
		t.Errorf("%v", f.Facts)
	}
	want(t, found(t, r, "link"), OK)
	b.gpus[1].PCI = "00000000:11:00.0"
	want(t, found(t, Examine(m, Request{}), "link"), Absent)
}
