// Package hostdevice is the device interface on plain host memory. Every policy of the store runs on it, without an accelerator.
//
// A lane is a queue that a goroutine works off in order, so that work which no event orders really runs in any order. Options.Delay adds random
// pauses. Options.Direct makes every lane do its work inside the call instead. Borrowed lanes are the same: one queue per number, 0 and 1 one queue.
// They have no other order relative to our own lanes. Callers queue no work of their own in them. So before an array is overwritten, its owner has to
// wait for an event behind its capture.
//
// Like the real one, it refuses a copy that crosses the border of two pinned ranges. It also refuses one that leaves a pinned range or the mapped
// part of an arena. Its memory is limited.
package hostdevice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
)

// Options of a device. The zero value is a device of 1 GiB.
type Options struct {
	Ordinal int
	Memory  int64         // 1 GiB
	Piece   int64         // size of an arena's pieces: 2 MiB
	Delay   time.Duration // the longest pause before a piece of work
	Seed    uint64
	Direct  bool // work is done inside the call that queues it
	Place   device.Place
}

// Device implements device.Device.
type Device struct {
	opt Options

	mu       sync.Mutex
	random   *rand.Rand
	used     int64
	arenas   []*arena
	pins     []pinned
	borrowed map[uint64]*lane
	lanes    int // number of open lanes of our own
	closed   bool
	lost     error
}

// pinned is a range of host memory.
type pinned struct {
	at    device.Address
	bytes int64
}

func (p pinned) end() device.Address { return p.at + device.Address(p.bytes) }

// New returns a device.
func New(opt Options) *Device {
	if opt.Memory == 0 {
		opt.Memory = 1 << 30
	}
	if opt.Piece == 0 {
		opt.Piece = 2 << 20
	}
	return &Device{opt: opt, random: rand.New(rand.NewPCG(opt.Seed, 2)), borrowed: map[uint64]*lane{}}
}

// Name implements device.Device.
func (d *Device) Name() string { return fmt.Sprintf("host:%d (memory of the host)", d.opt.Ordinal) }

// Ordinal implements device.Device.
func (d *Device) Ordinal() int { return d.opt.Ordinal }

// Place implements device.Device.
func (d *Device) Place() device.Place { return d.opt.Place }

// Memory implements device.Device.
func (d *Device) Memory() (free, total int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(0, d.opt.Memory-d.used), d.opt.Memory, d.lost
}

// Occupy takes device memory away from arenas, or returns it (negative), as if other processes used it.
func (d *Device) Occupy(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used += bytes
}

// Lose makes the device lost: queued work does not run any more, and every call returns device.ErrLost.
func (d *Device) Lose(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = fmt.Errorf("%s: %w: %w", d.Name(), device.ErrLost, cause)
	}
}

// Lost implements device.Device.
func (d *Device) Lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// Pin implements device.Device: it records the range, and copies are checked against it.
func (d *Device) Pin(m *memory.Mapping, off, n int64) error {
	p, err := d.within("pin", m, off, n)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return d.lost
	}
	if slices.ContainsFunc(d.pins, func(o pinned) bool { return o.at < p.end() && p.at < o.end() }) {
		return fmt.Errorf("pin [%d, +%d): %w: a part is pinned already", off, n, device.ErrPinning)
	}
	d.pins = append(d.pins, p)
	return nil
}

// Border implements device.Device: here copies may cross any border that is not pinned.
func (d *Device) Border(m *memory.Mapping, off, n int64) error {
	if _, err := d.within("border", m, off, n); err != nil {
		return err
	}
	return d.Lost()
}

// Unpin implements device.Device.
func (d *Device) Unpin(m *memory.Mapping, off, n int64) error {
	p, err := d.within("unpin", m, off, n)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.pins, p)
	if i < 0 {
		return fmt.Errorf("unpin [%d, +%d): %w: it was not pinned so", off, n, device.ErrPinning)
	}
	d.pins = slices.Delete(d.pins, i, i+1)
	return nil
}

func (d *Device) within(what string, m *memory.Mapping, off, n int64) (pinned, error) {
	if n <= 0 || m.Bytes(off, n) == nil {
		return pinned{}, fmt.Errorf("%s [%d, +%d) of %d bytes: %w", what, off, n, m.Size(), memory.ErrRange)
	}
	return pinned{device.Address(m.Base()) + device.Address(off), n}, nil
}

// Close implements device.Device. It fails if anything is still in use.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if len(d.arenas) > 0 || len(d.pins) > 0 || d.lanes > 0 {
		return fmt.Errorf("close %s: %d arenas, %d pinned ranges, %d lanes: %w", d.Name(), len(d.arenas), len(d.pins), d.lanes, ErrInUse)
	}
	d.closed = true
	return nil
}
