package double

import (
	"fmt"
	"slices"

	"velocpy/gocore/device/cuda"
)

// failure makes calls fail: skip of them succeed, then times fail.
type failure struct {
	code        cuda.Code
	skip, times int
}

// Fail makes a function fail: the next skip calls succeed, the times after them return code. The name is the method's. A code that
// is sticky for the real driver loses the context of the call.
func (d *Driver) Fail(call string, code cuda.Code, skip, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures[call] = append(d.failures[call], &failure{code, skip, times})
}

// Lose loses a device's context when it is about to execute its next copy or launch but the given number: that one and what
// is queued behind it in any stream never happens. 0 loses it at once.
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

// Occupy says how many bytes of a device's memory others use.
func (d *Driver) Occupy(device int, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gpus[device].occupied = bytes
}

// LimitPinned says how much host memory can be pinned from now on; 0 means unlimited, negative none.
func (d *Driver) LimitPinned(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cfg.Pinned = bytes
}

// failing says what a call returns before it does anything.
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

// Calls is how often a function was called, whether or not it succeeded.
func (d *Driver) Calls(call string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[call]
}

// Misuse lists what was done and must not be, in order: a use of what was destroyed, memory taken away from queued work, accesses
// that nothing orders.
func (d *Driver) Misuse() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.misuse)
}

// wrong notes a misuse. Only the first of many is worth reading.
func (d *Driver) wrong(format string, a ...any) {
	if len(d.misuse) < 100 {
		d.misuse = append(d.misuse, fmt.Sprintf(format, a...))
	}
}

// Alive lists what was made and not given back: contexts, streams, events, memory, reservations, registrations, modules. What
// Foreign and Allocate made belongs to the test and is left out.
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
