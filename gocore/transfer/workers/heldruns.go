package workers

import (
	"slices"
	"time"

	"velocpy/gocore/cache"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/schedule"
	"velocpy/gocore/transfer/path"
)

// A schedule lets checkpoints accumulate in the device's cache until a later one of their history is captured, and then one call encodes all of them (Maurya et
// al., HiPC'23, section III-B: A until X). The worker of the link puts their flushes aside meanwhile. It ends a run early when a capture or a flush waits for room
// in one of their tiers, when a caller waits for one of these checkpoints in a lower tier or drops it, and when the run has taken too long.

// heldRun is the flushes of one run so far.
type heldRun struct {
	course  *schedule.Course
	members []*engine.Transfer // in the order in which they came
	bytes   int64              // plain bytes of the members
	most    int64              // that there may be
	last    int                // the checkpoint that ends the run, as it was …
	changes int                // … after so many changes of the course
	until   int64              // the time at which the run ends in any case, ns
	timer   *time.Timer        // wakes a worker then
}

const (
	// patience is how many times as long as predicted a run may take.
	patience = 2
	// grace is what it may take in addition.
	grace = 2 * time.Millisecond
	// longestRun bounds both, ns.
	longestRun = int64(10 * time.Second)
)

// heldRuns decides how long flushes are held back, and which.
type heldRuns struct {
	*cache.Cache

	Grace time.Duration // for which a run that is held back may take longer than twice what was predicted. The lock guards it
	wake  func()        // wakes the workers that may have something to do; the lock is held
}

// hold puts the flush of a checkpoint aside that is to be encoded with later ones, and that of the last one of such a run. The lock is held.
func (hr *heldRuns) hold(c *workerPool, x *engine.Transfer) bool {
	if c.device == nil || x.Kind != engine.Flush || x.Side != engine.UpperSide || x.Lower == engine.Deduplicated || x.Rec.Version.Waited || !hr.Set.Together {
		return false
	}
	course, number := hr.Scheduled(x.Rec)
	if course == nil {
		return false
	}
	switch course.Decision(number) {
	case schedule.Accumulate, schedule.Bulk:
	default:
		return false
	}
	last := course.Last(number)
	i := slices.IndexFunc(c.held, func(r *heldRun) bool {
		return r.course == course && r.members[0].From == x.From && hr.last(r) == last && !r.isFull()
	})
	if i < 0 {
		if last == number {
			return false
		}
		i = len(c.held)
		c.held = append(c.held, hr.newRun(course, last, x))
	}
	r := c.held[i]
	hr.Engine.PutAside(x)
	x.Rec.Version.Waited = true
	r.members, r.bytes = append(r.members, x), r.bytes+x.Rec.Size
	return true
}

// newRun begins a run with the flush of its first checkpoint.
func (hr *heldRuns) newRun(course *schedule.Course, last int, x *engine.Transfer) *heldRun {
	wait := min(float64(patience)*float64(course.Until(last))+float64(hr.Grace), float64(longestRun))
	return &heldRun{
		course: course, last: last, changes: course.Changes(), most: hr.Engine.Capacity(x.To) / cache.HeldPart,
		until: hr.Now() + int64(wait), timer: hr.wakeAfter(int64(wait)),
	}
}

// isFull tells whether no more checkpoints join the run.
func (r *heldRun) isFull() bool { return r.bytes >= r.most || len(r.members) >= mostAccumulated }

// last is the checkpoint that ends a run; -1: the history has another course now.
func (hr *heldRuns) last(r *heldRun) int {
	course, first := hr.Scheduled(r.members[0].Rec)
	if course != r.course {
		return -1
	}
	if n := course.Changes(); n != r.changes {
		r.last, r.changes = course.Last(first), n
	}
	return r.last
}

// wakeAfter wakes the workers after so many ns. A store that closes does not wait for it.
func (hr *heldRuns) wakeAfter(ns int64) *time.Timer {
	return time.AfterFunc(time.Duration(ns)+time.Millisecond, func() {
		hr.Lock()
		defer hr.Unlock()
		if !hr.Closing {
			hr.wake()
		}
	})
}

// releasable is the index of a run whose checkpoints leave the device now; -1: there is none.
func (hr *heldRuns) releasable(c *workerPool) int {
	if len(c.held) == 0 {
		return -1
	}
	return slices.IndexFunc(c.held, hr.isOver)
}

func (hr *heldRuns) isOver(r *heldRun) bool {
	return hr.Now() >= r.until || r.isFull() || hr.isComplete(r) || slices.ContainsFunc(r.members, hr.Engine.Needed)
}

// isComplete tells whether the flush of the run's last checkpoint is there, or the history has another course now.
func (hr *heldRuns) isComplete(r *heldRun) bool {
	last := hr.last(r)
	return last < 0 || slices.ContainsFunc(r.members, func(x *engine.Transfer) bool {
		_, number := hr.Scheduled(x.Rec)
		return number == last
	})
}

// Held is how many flushes are held back. The lock is held.
func (s *Workers) Held() (n int) {
	s.eachHeld(func(*engine.Transfer) { n++ })
	return n
}

func (s *Workers) eachHeld(f func(x *engine.Transfer)) {
	for _, c := range s.pools {
		for _, r := range c.held {
			for _, x := range r.members {
				f(x)
			}
		}
	}
}

// release takes the flushes of a run that is over, and tells how many they are; none, if no run is. The flushes of the same run that are still queued join them.
// Another flush, which the worker has found while it looked for these, may be the last of all. The lock is held.
func (s *Workers) release(c *workerPool) (all []*engine.Transfer, together int) {
	i := s.heldRuns.releasable(c)
	if i < 0 {
		return nil, 0
	}
	r := c.held[i]
	var next *engine.Transfer
	for next == nil && !s.heldRuns.isComplete(r) && !r.isFull() {
		x := c.another(s.Engine, s.Now(), false)
		if x == nil {
			break
		}
		if !s.setAside(c, x) {
			next = x
		}
	}
	c.held = slices.DeleteFunc(c.held, func(o *heldRun) bool { return o == r })
	r.timer.Stop()
	now := s.Now()
	for _, x := range r.members {
		s.Engine.TakeUp(now, x)
	}
	if all = r.members; next != nil {
		all = append(all, next)
	}
	return all, len(r.members)
}

// count tells the schedule what became of a checkpoint. The lock is held.
func (hr *heldRuns) count(x *engine.Transfer, did *path.Staged) {
	course, number := hr.Scheduled(x.Rec)
	if course == nil || x.Kind != engine.Flush || x.Side != engine.UpperSide {
		return
	}
	switch {
	case did.Encoding != nil:
		course.Flushed(number, did.Bytes())
	case course.Decision(number) == schedule.Whole:
		course.Flushed(number, -1)
	default: // it does not become smaller
		course.Flushed(number, did.Plain)
	}
	if did.Call.Took > 0 {
		course.Call(did.Call.Bytes, did.Call.Took)
	}
}

// stopTimers ends the timers of runs that are held when the store closes.
func (s *Workers) stopTimers() {
	for _, c := range s.pools {
		for _, r := range c.held {
			r.timer.Stop()
		}
	}
}
