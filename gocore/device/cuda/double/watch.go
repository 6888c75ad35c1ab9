package double

import (
	"fmt"
	"slices"
)

// watch finds accesses that no stream and no event orders, even if they did not collide this time. Every piece of work carries a vector clock, by
// stream, of the operations known to have happened before it. The host counts as one: a wait of one goroutine counts for all. Go's race detector
// cannot do this. It does not check memory outside of the heap, and the lock of the queues orders everything for it.
type watch struct {
	host  clock
	lanes int
	past  []access
}

// clock is the number of finished operations by stream. Lane 0 is unused.
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

// access is the record of a range: the last write, or a read since then.
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

// learn records that the host has waited for a piece of work.
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

// access records the ranges that a piece of work touches, and returns the accesses that it is not ordered after.
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
	kept, rest := h.past[:0], []access(nil) // their order does not matter
	for _, old := range h.past {
		if !old.meets(now.Span) {
			kept = append(kept, old)
			continue
		}
		ordered := known.knows(old)
		if (old.write || now.write) && !ordered {
			races = append(races, fmt.Sprintf("%v, is not ordered after %v", now, old))
		}
		if now.write || !old.write && ordered { // it replaces the old one from now on
			rest = append(rest, old.without(now.Span)...)
		} else {
			kept = append(kept, old)
		}
	}
	h.past = append(append(kept, rest...), now)
	return races
}

// without is the part of an access outside of a range.
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

// forget drops a range whose memory is freed, and returns the accesses that the host has not waited for.
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
