// Package hazard records which events a range of a cache has to wait for before it is read or overwritten.
//
// Lanes run independently. The bytes of a range are valid once the events of its last writers have passed. The range may be overwritten once those and
// the events of all later readers have passed. All readers count: a slot that was read on three lanes has three events, and the event recorded last says
// nothing about the others.
//
// The order of calls is: BeforeRead, let the reading lane wait for the returned events, queue the work, then Read with an event behind it. The same
// holds for writing. A Tracker is not safe for concurrent use: the store calls it under the lock under which it decides about the cache. It never
// waits.
package hazard

import (
	"math"

	"velocpy/gocore/device"
)

// Tracker is the record of one cache. The zero value is empty and ready to use.
//
// A call costs O(log n + k) for n recorded ranges, k of which overlap its own, and the queries of some events. Every change also checks a few ranges
// in turn for passed events. So the size of the record stays proportional to the events that have not passed.
type Tracker struct {
	root  *segment
	visit uint64
	sweep int64 // position of the search for passed events
}

// note is a recorded event, shared by all segments that refer to it.
type note struct {
	event device.Event
	uses  int
	gone  bool // passed, and dropped
	visit uint64
}

// segment is a range with one history: a node of a treap, ordered by from.
type segment struct {
	from, to    int64
	writer      *note
	readers     []*note
	look        int // number of readers at which passed ones are searched next
	swept       int // how many of them Tracker.prune has checked
	priority    uint64
	left, right *segment
}

// BeforeRead appends the events of the last writers of [from, from+size) that have not passed to into. Each event is kept for the caller, who has to
// drop it.
func (t *Tracker) BeforeRead(into []device.Event, from, size int64) []device.Event {
	return t.before(into, from, size, false)
}

// BeforeWrite appends the events of the last writers of [from, from+size) and of all later readers that have not passed to into. Each event is kept for
// the caller, who has to drop it.
func (t *Tracker) BeforeWrite(into []device.Event, from, size int64) []device.Event {
	return t.before(into, from, size, true)
}

// Quiet returns the events to wait for before the range's memory is freed: the same as before it is overwritten.
func (t *Tracker) Quiet(into []device.Event, from, size int64) []device.Event {
	return t.before(into, from, size, true)
}

func (t *Tracker) before(into []device.Event, from, size int64, readers bool) []device.Event {
	t.visit++
	take := func(n *note) {
		if n != nil && n.visit != t.visit {
			n.visit = t.visit
			if !n.passed() {
				into = append(into, n.event.Keep())
			}
		}
	}
	t.root.meet(from, end(from, size), func(s *segment) {
		take(s.writer)
		if readers {
			for _, n := range s.readers {
				take(n)
			}
		}
	})
	return into
}

// Read records that work before event reads [from, from+size). The tracker keeps its own reference to the event.
func (t *Tracker) Read(from, size int64, mark device.Event) {
	to := end(from, size)
	if from >= to {
		return
	}
	n := newNote(mark)
	before, inside, after := t.cut(from, to)
	inside = inside.fill(from, to)
	inside.each(func(s *segment) { s.read(n) })
	t.root = join(join(before, inside), after)
	n.settle()
	t.prune()
}

// Wrote records that work before event, which waited for the events of BeforeWrite, writes [from, from+size). The tracker keeps its own reference to
// the event.
func (t *Tracker) Wrote(from, size int64, mark device.Event) {
	to := end(from, size)
	if from >= to {
		return
	}
	n := newNote(mark)
	before, inside, after := t.cut(from, to)
	inside.each((*segment).forget)
	s := newSegment(from, to)
	s.writer = n.use()
	t.root = join(join(before, s), after)
	n.settle()
	t.prune()
}

// Forget drops the record of [from, from+size), which no work touches any more.
func (t *Tracker) Forget(from, size int64) {
	to := end(from, size)
	if from >= to {
		return
	}
	before, inside, after := t.cut(from, to)
	inside.each((*segment).forget)
	t.root = join(before, after)
}

// Close drops all events.
func (t *Tracker) Close() {
	t.root.each((*segment).forget)
	t.root = nil
}

// Ranges is the number of recorded ranges.
func (t *Tracker) Ranges() int {
	count := 0
	t.root.each(func(*segment) { count++ })
	return count
}

// end is from+size, at most the largest int64.
func end(from, size int64) int64 {
	if size <= 0 {
		return from
	}
	if from > math.MaxInt64-size {
		return math.MaxInt64
	}
	return from + size
}

// cut splits the tree so that the middle part covers exactly the segments in [from, to).
func (t *Tracker) cut(from, to int64) (before, inside, after *segment) {
	t.root = t.root.crack(from)
	t.root = t.root.crack(to)
	before, inside = part(t.root, from)
	inside, after = part(inside, to)
	return before, inside, after
}

// These bound how many events a change checks, and for how many it asks the device. They exceed the events that a change of one range adds. They are
// small because each query may be a driver call.
const (
	looks = 8
	asks  = 2
)

// allowance is the unused part of these bounds.
type allowance struct{ looks, asks int }

func (a *allowance) spent() bool { return a.looks <= 0 || a.asks <= 0 }

// spend subtracts the cost of checking an event.
func (a *allowance) spend(n *note) {
	a.looks--
	if n != nil && !n.gone {
		a.asks--
	}
}

// prune checks the next few events for passed ones, and drops ranges without any.
func (t *Tracker) prune() {
	for left := (allowance{looks, asks}); !left.spent(); {
		s := t.root.next(t.sweep)
		if s == nil {
			t.sweep = math.MinInt64
			return
		}
		if !s.sweep(&left) {
			return
		}
		t.sweep = s.to
		if s.writer == nil && len(s.readers) == 0 {
			t.Forget(s.from, s.to-s.from)
		}
	}
}
