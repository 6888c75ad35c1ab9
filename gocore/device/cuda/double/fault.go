package double

import (
	"fmt"
	"slices"

	"velocpy/gocore/device/cuda"
)

// failure makes calls fail: the first skip calls succeed, the next times calls fail.
type failure struct {
	code        cuda.Code
	skip, times int
}

// Fail makes a function fail: the next skip calls succeed, the times calls after them return code. call is the name of the method. A code that is
// sticky for the real driver loses the context of the call.
func (d *Driver) Fail(call string, code cuda.Code, skip, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures[call] = append(d.failures[call], &failure{code, skip, times})
}

// Lose makes a device lose its context when it is about to run its next copy or launch after the given number. That one, and all work queued behind
// it in any stream, never runs. 0 loses it at once.
func (d *Driver) Lose(device, after int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.gpus[device]
	if g.countdown = after; after == 0 {
		g.lose(cuda.IllegalAddress)
	}
}

func (g *gpu) lose(code cuda.Code) {
	if g.lost == 0 {
		g.lost = code
	}
}

// Occupy sets how many bytes of a device's memory other processes use.
func (d *Driver) Occupy(device int, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gpus[device].occupied = bytes
}

// LimitPinned sets how much host memory can be pinned from now on; 0: unlimited, negative: none.
func (d *Driver) LimitPinned(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cfg.Pinned = bytes
}

// failing is the error that a call returns before it does anything.
func (d *Driver) failing(call string, g *gpu) error {
	if g != nil && g.lost != 0 {
		return fail(call, g.lost)
	}
	for _, f := range d.failures[call] {
		switch {
		case f.times == 0:
			continue
		case f.skip > 0:
			f.skip--
			continue
		}
		f.times--
		if g != nil && f.code.Sticky() {
			g.lose(f.code)
		}
		return fail(call, f.code)
	}
	return nil
}

// Calls is how often a function was called, successfully or not. "Launch" and a kernel's name count the launches of that kernel.
func (d *Driver) Calls(call string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[call]
}

// Misuse lists forbidden calls, in order: uses of destroyed objects, memory freed under queued work, unordered accesses.
func (d *Driver) Misuse() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.misuse)
}

// wrong records a misuse. It keeps the first 100; usually only the first matters.
func (d *Driver) wrong(format string, a ...any) {
	if len(d.misuse) < 100 {
		d.misuse = append(d.misuse, fmt.Sprintf(format, a...))
	}
}

// Alive lists objects that were created and not freed: contexts, streams, events, memory, reservations, registrations, modules. Objects of Foreign
// and Allocate belong to the test and are left out.
func (d *Driver) Alive() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var alive []string
	add := func(format string, a ...any) { alive = append(alive, fmt.Sprintf(format, a...)) }
	for _, g := range d.gpus {
		if g.retained > 0 {
			add("context of device %d, retained %d times", g.number, g.retained)
		}
	}
	for _, s := range d.streams {
		if !s.foreign && !s.destroyed {
			add("%s", s.name)
		}
	}
	for h, e := range d.events {
		if !e.destroyed {
			add("event %#x", uintptr(h))
		}
	}
	for h, m := range d.memories {
		if !m.released || m.mapped {
			add("memory %#x of %d bytes, released %v, mapped %v", uintptr(h), m.bytes, m.released, m.mapped)
		}
	}
	for _, p := range d.places {
		if !p.freed && !p.foreign {
			add("reservation %v", p.span)
		}
	}
	for _, p := range d.pins {
		add("pinned memory %v", p.span)
	}
	for h := range d.modules {
		add("module %#x", uintptr(h))
	}
	slices.Sort(alive)
	return alive
}
