package double

import (
	"fmt"
	"slices"
)

// watch finds accesses that no stream and no event orders, whether or not they met this time. Every piece of work carries a clock,
// by stream, of what is known to have happened before it. The host counts as one: what one goroutine waited for, all know.
// The race detector of Go cannot do this, since it does not look at memory outside of the heap, and since the queues' lock
// orders everything for it.
type watch struct {
	host  clock
	lanes int
	past  []access
}

// clock is, by stream, how many of its operations have happened. Lane 0 is nobody's.
type clock []int

func (c *clock) join(o clock) {
	for len(*c) < len(o) {
		*c = append(*c, 0)
	}
	for i, n := range o {
		(*c)[i] = max((*c)[i], n)
	}
}

func (c clock) knows(a access) bool { return a.lane < len(c) && c[a.lane] >= a.time }

// access is what is remembered of a range: the last write, and the reads since.
type access struct {
	Span
	lane, time int
	write      bool
	what       string
}

func (a access) String() string {
	if a.write {
		return a.what + ", which writes " + a.Span.String()
	}
	return a.what + ", which reads " + a.Span.String()
}

func (h *watch) asked() clock { return slices.Clone(h.host) }

// learn says that the host has waited for a piece of work.
func (h *watch) learn(w *work) {
	if w != nil {
		h.host.join(w.clock)
	}
}

// begin advances a stream's clock to a piece of its work.
func (h *watch) begin(s *stream, w *work) {
	if s.lane == 0 {
		h.lanes++
		s.lane = h.lanes
		s.clock = make(clock, s.lane+1)
	}
	s.clock.join(w.asked)
	if w.after != nil {
		s.clock.join(w.after.clock)
	}
	s.clock[s.lane]++
	w.clock = slices.Clone(s.clock)
}

// access notes what a piece of work touches, and returns what it is not ordered after.
func (h *watch) access(s *stream, w *work) (races []string) {
	note := func(touched Span, write bool) {
		now := access{touched, s.lane, s.clock[s.lane], write, w.what + " in " + s.name}
		races = append(races, h.note(now, w.clock)...)
	}
	for _, r := range w.reads {
		note(r, false)
	}
	for _, r := range w.writes {
		note(r, true)
	}
	return races
}

func (h *watch) note(now access, known clock) (races []string) {
	if now.Bytes == 0 {
		return nil
	}
	kept, rest := h.past[:0], []access(nil) // their order means nothing
	for _, old := range h.past {
		if !old.meets(now.Span) {
			kept = append(kept, old)
			continue
		}
		ordered := known.knows(old)
		if (old.write || now.write) && !ordered {
			races = append(races, fmt.Sprintf("%v, is not ordered after %v", now, old))
		}
		if now.write || !old.write && ordered { // it stands for the old one from now on
			rest = append(rest, old.without(now.Span)...)
		} else {
			kept = append(kept, old)
		}
	}
	h.past = append(append(kept, rest...), now)
	return races
}

// without is what remains of an access beside a range.
func (a access) without(s Span) (rest []access) {
	if a.At < s.At {
		left := a
		left.Bytes = int64(s.At - a.At)
		rest = append(rest, left)
	}
	if a.end() > s.end() {
		right := a
		right.At, right.Bytes = s.end(), int64(a.end()-s.end())
		rest = append(rest, right)
	}
	return rest
}

// forget drops a range whose memory goes, and returns what the host has not waited for.
func (h *watch) forget(gone Span) (open []string) {
	var kept []access
	for _, a := range h.past {
		if !a.meets(gone) {
			kept = append(kept, a)
			continue
		}
		if !h.host.knows(a) {
			open = append(open, a.String())
		}
		kept = append(kept, a.without(gone)...)
	}
	h.past = kept
	return open
}
