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

// Driver implements cuda.Driver. Its parts are one concern each, with the state that only this concern has.
type Driver struct {
	*state
	*devices
	*virtualMemory
	*pinnedMemory
	*streams
	*queues
	*events
	*copies
	*modules
	*faults
	*checks
}

// state is what the parts share, and how they reach one another.
type state struct {
	cfg Config

	mu      sync.Mutex // guards the state of all parts
	gpus    []*gpu
	handles uintptr

	devices *devices
	virtual *virtualMemory
	pinned  *pinnedMemory
	streams *streams
	queues  *queues
	events  *events
	copies  *copies
	modules *modules
	faults  *faults
	checks  *checks
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
	s := &state{cfg: cfg, handles: 0x1000}
	for i := range cfg.Devices {
		g := &gpu{number: i, countdown: -1}
		g.legacy = &stream{gpu: g, name: fmt.Sprintf("the legacy stream of device %d", i)}
		s.gpus = append(s.gpus, g)
	}
	return assemble(s)
}

// assemble makes the parts of a driver, each with the state that all share.
func assemble(s *state) *Driver {
	s.devices = &devices{state: s}
	s.virtual = &virtualMemory{state: s, memories: map[cuda.Memory]*physical{}}
	s.pinned = &pinnedMemory{state: s}
	s.streams = &streams{state: s, byHandle: map[cuda.Stream]*stream{}, ofThreads: map[thread]*stream{}}
	s.queues = &queues{state: s, random: rand.New(rand.NewPCG(s.cfg.Seed, 1))}
	s.events = &events{state: s, byHandle: map[cuda.Event]*event{}}
	s.copies = &copies{state: s}
	s.modules = &modules{state: s, loaded: map[cuda.Module]*gpu{}, functions: map[cuda.Function]*function{}}
	s.faults = &faults{state: s, failures: map[string][]*failure{}}
	s.checks = &checks{state: s, calls: map[string]int{}}
	return &Driver{
		state: s, devices: s.devices, virtualMemory: s.virtual, pinnedMemory: s.pinned, streams: s.streams, queues: s.queues, events: s.events,
		copies: s.copies, modules: s.modules, faults: s.faults, checks: s.checks,
	}
}

// Close waits for queued work and frees all memory. No call may run concurrently or afterwards.
func (d *Driver) Close() {
	d.queues.Settle()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.virtual.places {
		_ = p.mapping.Unmap()
	}
	for _, p := range d.pinned.pins {
		if p.mapping != nil {
			_ = p.mapping.Unmap()
		}
	}
	d.virtual.places, d.pinned.pins = nil, nil
}

func (s *state) handle() uintptr {
	s.handles += 0x10
	return s.handles
}

// enter begins a call without a context.
func (s *state) enter(call string) error {
	s.checks.calls[call]++
	return s.faults.failing(call, nil)
}

// within begins a call in a context.
func (s *state) within(call string, c cuda.Context) (*gpu, error) {
	s.checks.calls[call]++
	i := int(c) - contextBase
	if i < 0 || i >= len(s.gpus) || s.gpus[i].retained == 0 {
		s.checks.wrong("%s in a context that is not retained", call)
		return nil, fail(call, cuda.InvalidContext)
	}
	return s.gpus[i], s.faults.failing(call, s.gpus[i])
}

// outside runs fn without the lock.
func (s *state) outside(fn func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	fn()
}

func fail(call string, code cuda.Code) error { return &cuda.Error{Call: call, Code: code} }
