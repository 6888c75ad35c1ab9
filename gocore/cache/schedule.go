package cache

import (
	"velocpy/gocore/base/safego"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/schedule"
)

// linkFixed is the pause of a link between two transfers, in ns. It is of the size that was measured on an H100.
const linkFixed = 10_000

// HeldPart is the part (as a divisor) of the tier below a device that checkpoints may take which move together. What is on its way has its room and cannot be
// evicted.
const HeldPart = 16

// schedules counts the captures of histories in their courses, has plans searched, and tells what they decide.
type schedules struct {
	*state
	stagings *stagings
}

// Scheduled is the course that a checkpoint belongs to, and its number there; nil: it belongs to none, or to one before. The lock is held.
func (sc *schedules) Scheduled(rec *engine.Record) (*schedule.Course, int) {
	r, place := sc.Reductions[rec.Hist.Name], rec.Version.Place
	if r == nil || r.Course == nil || place <= r.Before {
		return nil, 0
	}
	return r.Course, int(place - r.Before - 1)
}

// BeginScheduled counts a capture from a device in the course of its history.
func (sc *schedules) BeginScheduled(history string, v *checkpoint.Version, size int64) {
	if r := sc.Reductions[history]; r != nil && r.Course != nil {
		v.Place = r.Before + int64(r.Course.Begin(sc.Now(), size)) + 1
	}
}

// EndScheduled tells that the capture of a checkpoint has returned, and whether a device tier has it. Where a plan is due, a goroutine searches it.
func (sc *schedules) EndScheduled(r *engine.Record, onDevice bool) {
	course, number := sc.Scheduled(r)
	if course == nil || sc.Closing {
		return
	}
	course.End(sc.Now())
	if !onDevice {
		course.Skip(number)
	}
	s := sc.due(course, r.Top())
	if s == nil {
		return
	}
	sc.Users++
	safego.Go("schedule", func() {
		found, err := s.Find()
		sc.Lock()
		defer sc.Leave()
		sc.Users--
		course.Take(s, found, err)
	})
}

// PlanNow searches the first plan of a course that nothing was captured for yet. The lock is not held.
func (sc *schedules) PlanNow(course *schedule.Course) error {
	if err := sc.Enter(); err != nil {
		return err
	}
	var s *schedule.Search
	if len(sc.Devices) > 0 {
		s = sc.due(course, 0)
	}
	sc.Unlock()
	if s == nil {
		return nil
	}
	found, err := s.Find()
	sc.Lock()
	defer sc.Unlock()
	course.Take(s, found, err)
	return nil
}

// due returns the search for a plan that is due for a device tier; nil: none is, or nothing leaves the tier.
func (sc *schedules) due(course *schedule.Course, t int) *schedule.Search {
	if sc.Engine.Below(t) < 0 {
		return nil
	}
	return course.Due(sc.terms(t))
}

// terms are those of plans for a device tier.
func (sc *schedules) terms(t int) schedule.Terms {
	terms := schedule.Terms{
		Link:  schedule.Link{Rate: sc.Engine.FlushRate(t), Fixed: linkFixed},
		Cache: sc.Engine.Capacity(t), Longest: sc.Engine.Capacity(sc.Engine.Below(t)) / HeldPart,
	}
	if s := sc.stagings.byTier[t]; s != nil && s.group > 0 {
		terms.Group, terms.Cache = s.group, max(terms.Cache-stagingBytes(s.group), 0)
	}
	return terms
}

// Decision is what the schedule of its history says of a checkpoint. The lock is held.
func (sc *schedules) Decision(r *engine.Record) schedule.Decision {
	if course, number := sc.Scheduled(r); course != nil {
		return course.Decision(number)
	}
	return schedule.Undecided
}

// GoesWhole tells whether the schedule of its history leaves a checkpoint as it is. The lock is held.
func (sc *schedules) GoesWhole(r *engine.Record) bool { return sc.Decision(r) == schedule.Whole }
