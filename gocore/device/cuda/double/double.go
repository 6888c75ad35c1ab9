// Package double is a CUDA driver on host memory, for tests. Package cuda runs on it as on the real one, under the race detector and on machines
// without a GPU.
//
// Its guarantees:
//
//   - A stream is a queue that a goroutine works off in order. With Config.Delay, random pauses precede every operation and interrupt
//     copies, so that operations which no stream or event orders run in any order.
//   - An operation reads and writes its memory when its stream reaches it, not when it is called. As with the real driver, a copy from
//     pageable memory has read its source when the call returns: at once up to 1 MiB, and when its stream has reached it beyond.
//     A copy from the device to pageable memory, and any within the host, is complete when the call returns.
//   - StreamWaitEvent waits for the latest record before the call, and for nothing if there was none. A later record does not
//     change that. An event that was never recorded is complete.
//   - Streams 0 and 1 are the legacy default stream, 2 the default stream of the calling thread. The legacy stream waits for all earlier
//     work in blocking streams (the per-thread ones, and Foreign ones that ask for it), and they wait for it. Streams of CreateStream
//     do neither.
//   - Addresses are those of host memory that is protected until it is mapped and accessible. Work that touches other parts of a
//     reservation, or a freed one, fails with IllegalAddress and loses the context. It does not crash, as the real driver may. New
//     memory is filled with Fresh, never with zeroes. An allocation can be mapped once at a time, and loses its bytes when unmapped.
//   - Copies must be inside the accessible part of one reservation, inside one registered range, or entirely outside of all. A copy
//     that crosses a border is refused with InvalidValue, and the context stays valid.
//   - A lost context fails every call with its code and runs no queued work any more; waits end.
//
// It leaves out graphs (a stream can be marked as being captured), priorities (accepted, but without effect), and slower copies between two devices.
// It has no kernels of its own: Config.Twins provides their twins in Go.
//
// The results of wrong calls, the moment at which copies read, and events were compared with driver 580 on an H200. Where that driver accepts a wrong
// call (unmapping an unmapped range, a second mapping), the double refuses it.
//
// A Driver checks its caller. Misuse lists calls that a real driver might have accepted, Alive the objects that were not freed, Calls the number of
// calls of a function. Fail, Lose, Occupy and Config inject faults.
package double

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/kernel"
)

// Config describes the machine. Zero values are usable defaults.
type Config struct {
	Devices     int   // 1
	Memory      int64 // of each device: 1 GiB
	Pinned      int64 // host memory that can be registered or allocated in total: unlimited
	Granularity int64 // of mapped memory: 2 MiB; a multiple of 4096
	Version     int   // 13000
	Attributes  map[cuda.Attribute]int
	// Delay is the longest pause before an operation; 0 means none.
	Delay time.Duration
	Seed  uint64
	// Twins finds the twin of a kernel by its name; nil if there is none: kernel.Twin.
	Twins func(name string) func(blocks, threads int, parameter []byte) error
	// Touches tells which ranges a launch reads and writes, so that launches are checked like copies: kernel.Touches.
	Touches func(name string, parameter []byte) (reads, writes []kernel.Range)
}

// Span is a range of addresses.
type Span kernel.Range

func (s Span) end() cuda.Pointer { return s.At + cuda.Pointer(s.Bytes) }
func (s Span) meets(o Span) bool {
	return s.Bytes > 0 && o.Bytes > 0 && s.At < o.end() && o.At < s.end()
}
func (s Span) holds(o Span) bool         { return s.At <= o.At && o.end() <= s.end() }
func (s Span) String() string            { return fmt.Sprintf("[%#x, +%d)", s.At, s.Bytes) }
func span(at cuda.Pointer, n int64) Span { return Span{at, n} }

// Driver implements cuda.Driver.
type Driver struct {
	cfg Config

	mu        sync.Mutex
	random    *rand.Rand
	gpus      []*gpu
	handles   uintptr
	streams   map[cuda.Stream]*stream
	threads   map[thread]*stream
	events    map[cuda.Event]*event
	memories  map[cuda.Memory]*physical
	modules   map[cuda.Module]*gpu
	functions map[cuda.Function]*function
	places    []*place
	pins      []*pin
	pinned    int64
	failures  map[string][]*failure
	calls     map[string]int
	misuse    []string
	watch     watch
}

var _ cuda.Driver = (*Driver)(nil)

// gpu is a device and its primary context.
type gpu struct {
	number    int
	retained  int
	used      int64 // by CreateMemory and Allocate
	occupied  int64 // by other processes
	lost      cuda.Code
	countdown int // operations until the context is lost; negative: never
	legacy    *stream
}

// contextBase makes context handles recognisable.
const contextBase = 0xC000

func (g *gpu) context() cuda.Context { return cuda.Context(contextBase + g.number) }

// New returns a driver. Close frees its memory.
func New(cfg Config) *Driver {
	if cfg.Devices == 0 {
		cfg.Devices = 1
	}
	if cfg.Memory == 0 {
		cfg.Memory = 1 << 30
	}
	if cfg.Granularity == 0 {
		cfg.Granularity = 2 << 20
	}
	if cfg.Version == 0 {
		cfg.Version = 13000
	}
	if cfg.Twins == nil {
		cfg.Twins, cfg.Touches = kernel.Twin, kernel.Touches
	}
	d := &Driver{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 1)), handles: 0x1000,
		streams: map[cuda.Stream]*stream{}, threads: map[thread]*stream{}, events: map[cuda.Event]*event{},
		memories: map[cuda.Memory]*physical{}, modules: map[cuda.Module]*gpu{}, functions: map[cuda.Function]*function{},
		failures: map[string][]*failure{}, calls: map[string]int{},
	}
	for i := range cfg.Devices {
		g := &gpu{number: i, countdown: -1}
		g.legacy = &stream{gpu: g, name: fmt.Sprintf("the legacy stream of device %d", i)}
		d.gpus = append(d.gpus, g)
	}
	return d
}

// Close waits for queued work and frees all memory. No call may run concurrently or afterwards.
func (d *Driver) Close() {
	d.Settle()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.places {
		_ = p.mapping.Unmap()
	}
	for _, p := range d.pins {
		if p.mapping != nil {
			_ = p.mapping.Unmap()
		}
	}
	d.places, d.pins = nil, nil
}

func (d *Driver) handle() uintptr {
	d.handles += 0x10
	return d.handles
}

// enter begins a call without a context.
func (d *Driver) enter(call string) error {
	d.calls[call]++
	return d.failing(call, nil)
}

// within begins a call in a context.
func (d *Driver) within(call string, c cuda.Context) (*gpu, error) {
	d.calls[call]++
	i := int(c) - contextBase
	if i < 0 || i >= len(d.gpus) || d.gpus[i].retained == 0 {
		d.wrong("%s in a context that is not retained", call)
		return nil, fail(call, cuda.InvalidContext)
	}
	return d.gpus[i], d.failing(call, d.gpus[i])
}

func (d *Driver) device(call string, number int) (*gpu, error) {
	if err := d.enter(call); err != nil {
		return nil, err
	}
	if number < 0 || number >= len(d.gpus) {
		return nil, fail(call, cuda.InvalidDevice)
	}
	return d.gpus[number], nil
}

func fail(call string, code cuda.Code) error { return &cuda.Error{Call: call, Code: code} }

// Version implements cuda.Driver.
func (d *Driver) Version() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.Version, d.enter("Version")
}

// Devices implements cuda.Driver.
func (d *Driver) Devices() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.gpus), d.enter("Devices")
}

// DeviceName implements cuda.Driver.
func (d *Driver) DeviceName(number int) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.device("DeviceName", number)
	return "Double", err
}

// DeviceUUID implements cuda.Driver.
func (d *Driver) DeviceUUID(number int) ([16]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.device("DeviceUUID", number)
	return [16]byte{0: 0xD0, 15: byte(number)}, err
}

// DeviceAttribute implements cuda.Driver.
func (d *Driver) DeviceAttribute(a cuda.Attribute, number int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.device("DeviceAttribute", number); err != nil {
		return 0, err
	}
	if v, ok := d.cfg.Attributes[a]; ok {
		return v, nil
	}
	switch a {
	case cuda.ComputeMajor:
		return 9, nil
	case cuda.Processors:
		return 132, nil
	case cuda.PCIBus:
		return 0x10 + number, nil
	case cuda.SupportsVMM:
		return 1, nil
	case cuda.CopyEngines:
		return 3, nil
	}
	return 0, nil
}

// RetainPrimary implements cuda.Driver.
func (d *Driver) RetainPrimary(number int) (cuda.Context, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.device("RetainPrimary", number)
	if err != nil {
		return 0, err
	}
	g.retained++
	return g.context(), nil
}

// ReleasePrimary implements cuda.Driver.
func (d *Driver) ReleasePrimary(number int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.device("ReleasePrimary", number)
	if err != nil {
		return err
	}
	if g.retained == 0 {
		d.wrong("ReleasePrimary of device %d, which nobody retains", number)
		return fail("ReleasePrimary", cuda.InvalidContext)
	}
	g.retained--
	return nil
}

// MemoryInfo implements cuda.Driver.
func (d *Driver) MemoryInfo(c cuda.Context) (free, total int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("MemoryInfo", c)
	if err != nil {
		return 0, 0, err
	}
	return d.free(g), d.cfg.Memory, nil
}

func (d *Driver) free(g *gpu) int64 { return max(0, d.cfg.Memory-g.used-g.occupied) }
