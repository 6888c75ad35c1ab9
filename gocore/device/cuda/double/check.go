package double

import (
	"fmt"
	"slices"
)

// checks tells a test what the caller of the driver did: its calls, its misuse, and the objects that it has not freed.
type checks struct {
	*state

	calls  map[string]int // by function
	misuse []string
}

// Calls is how often a function was called, successfully or not. "Launch" and a kernel's name count the launches of that kernel.
func (cs *checks) Calls(call string) int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.calls[call]
}

// Misuse lists forbidden calls, in order: uses of destroyed objects, memory freed under queued work, unordered accesses.
func (cs *checks) Misuse() []string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.misuse)
}

// wrong records a misuse. It keeps the first 100; usually only the first matters.
func (cs *checks) wrong(format string, a ...any) {
	if len(cs.misuse) < 100 {
		cs.misuse = append(cs.misuse, fmt.Sprintf(format, a...))
	}
}

// Alive lists objects that were created and not freed: contexts, streams, events, memory, reservations, registrations, modules. Objects of Foreign
// and Allocate belong to the test and are left out.
func (cs *checks) Alive() []string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var alive []string
	add := func(format string, a ...any) { alive = append(alive, fmt.Sprintf(format, a...)) }
	for _, g := range cs.gpus {
		if g.retained > 0 {
			add("context of device %d, retained %d times", g.number, g.retained)
		}
	}
	for _, s := range cs.streams.byHandle {
		if !s.foreign && !s.destroyed {
			add("%s", s.name)
		}
	}
	for h, e := range cs.events.byHandle {
		if !e.destroyed {
			add("event %#x", uintptr(h))
		}
	}
	for h, m := range cs.virtual.memories {
		if !m.released || m.mapped {
			add("memory %#x of %d bytes, released %v, mapped %v", uintptr(h), m.bytes, m.released, m.mapped)
		}
	}
	for _, p := range cs.virtual.places {
		if !p.freed && !p.foreign {
			add("reservation %v", p.span)
		}
	}
	for _, p := range cs.pinned.pins {
		add("pinned memory %v", p.span)
	}
	for h := range cs.modules.loaded {
		add("module %#x", uintptr(h))
	}
	slices.Sort(alive)
	return alive
}
