// Package hazard keeps account of which marks a range of a cache has to wait for before it is read or overwritten.
//
// Lanes run on their own. What lies in a range is there once the last writers' marks have passed, and the range may be overwritten
// once those and the marks of all who have read it since have passed. All readers: a slot that was read on three lanes has three
// marks, and the last one to be noted says nothing of the others.
//
// The order of calls is: BeforeRead, let the reading lane wait for what that gives, queue the work, Read with a mark behind
// it; the same for writing. A Tracker is not safe for concurrent use: the store calls it under the lock under which it decides
// about the cache. It never waits for anything.
package hazard

import (
	"math"

	"velocpy/gocore/device"
)

// Tracker is the account of one cache. The zero value is empty and ready.
//
// A call costs O(log n + k) for n ranges in the account, k of which it meets, and the queries of some marks. Passed marks are found on the
// way: every change looks at a few ranges in turn, so that the account stays in proportion to what has not passed.
type Tracker struct {
	root  *segment
	visit uint64
	sweep int64 // where looking for passed marks goes on
}

// note is a mark in the account, shared by all segments that name it.
type note struct {
	mark  device.Mark
	uses  int
	gone  bool // passed, and dropped
	visit uint64
}

// segment is a range with one history: a node of a treap, ordered by from.
type segment struct {
	from, to    int64
	writer      *note
	readers     []*note
	look        int // how many readers there have to be before they are looked through again
	swept       int // how many of them Tracker.prune has been through
	priority    uint64
	left, right *segment
}

// BeforeRead appends to into the marks of the last writers of [from, from+size) that have not passed. Every mark is kept for the
// caller, who drops it.
func (t *Tracker) BeforeRead(into []device.Mark, from, size int64) []device.Mark {
	return t.marks(into, from, size, false)
}

// BeforeWrite appends to into the marks of the last writers of [from, from+size) and of all readers since that have not passed. Every
// mark is kept for the caller, who drops it.
func (t *Tracker) BeforeWrite(into []device.Mark, from, size int64) []device.Mark {
	return t.marks(into, from, size, true)
}

// Quiet is what has to be waited for before the range's memory may be given back: the same as before it is overwritten.
func (t *Tracker) Quiet(into []device.Mark, from, size int64) []device.Mark {
	return t.marks(into, from, size, true)
}

func (t *Tracker) marks(into []device.Mark, from, size int64, readers bool) []device.Mark {
	t.visit++
	take := func(n *note) {
		if n != nil && n.visit != t.visit {
			n.visit = t.visit
			if !n.passed() {
				into = append(into, n.mark.Keep())
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

// Read notes that work before mark reads [from, from+size). The tracker keeps the mark for itself.
func (t *Tracker) Read(from, size int64, mark device.Mark) {
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

// Wrote notes that work before mark, which waited for what BeforeWrite gave, writes [from, from+size). The tracker keeps the mark for itself.
func (t *Tracker) Wrote(from, size int64, mark device.Mark) {
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

// Forget drops everything that is known of [from, from+size): nothing touches it any more.
func (t *Tracker) Forget(from, size int64) {
	to := end(from, size)
	if from >= to {
		return
	}
	before, inside, after := t.cut(from, to)
	inside.each((*segment).forget)
	t.root = join(before, after)
}

// Close drops all marks.
func (t *Tracker) Close() {
	t.root.each((*segment).forget)
	t.root = nil
}

// Ranges is how many ranges the account has.
func (t *Tracker) Ranges() int {
	count := 0
	t.root.each(func(*segment) { count++ })
	return count
}

// end is from+size, cut where numbers end.
func end(from, size int64) int64 {
	if size <= 0 {
		return from
	}
	if from > math.MaxInt64-size {
		return math.MaxInt64
	}
	return from + size
}

// cut takes the tree apart so that the middle part is exactly what lies in [from, to).
func (t *Tracker) cut(from, to int64) (before, inside, after *segment) {
	t.root = t.root.crack(from)
	t.root = t.root.crack(to)
	before, inside = part(t.root, from)
	inside, after = part(inside, to)
	return before, inside, after
}

// Every change looks at so many marks at the most, and asks so many of them: more than a change of one range adds, and few, as each question
// may be a call of the driver.
const (
	looks = 8
	asks  = 2
)

// allowance is what is left of that.
type allowance struct{ looks, asks int }

func (a *allowance) spent() bool { return a.looks <= 0 || a.asks <= 0 }

// spend takes off what looking at a mark costs.
func (a *allowance) spend(n *note) {
	a.looks--
	if n != nil && !n.gone {
		a.asks--
	}
}

// prune looks at the next few marks for ones that have passed, and drops ranges without any.
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
