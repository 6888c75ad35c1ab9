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

// Scheduled is the course that a checkpoint belongs to, and its number there; nil: it belongs to none, or to one before. The lock is held.
func (c *Cache) Scheduled(rec *engine.Record) (*schedule.Course, int) {
	r, place := c.Reductions[rec.Hist.Name], rec.Version.Place
	if r == nil || r.Course == nil || place <= r.Before {
		return nil, 0
	}
	return r.Course, int(place - r.Before - 1)
}

// BeginScheduled counts a capture from a device in the course of its history.
func (c *Cache) BeginScheduled(history string, v *checkpoint.Version, size int64) {
	if r := c.Reductions[history]; r != nil && r.Course != nil {
		v.Place = r.Before + int64(r.Course.Begin(c.Now(), size)) + 1
	}
}

// EndScheduled tells that the capture of a checkpoint has returned, and whether a device tier has it. Where a plan is due, a goroutine searches it.
func (c *Cache) EndScheduled(r *engine.Record, onDevice bool) {
	course, number := c.Scheduled(r)
	if course == nil || c.Closing {
		return
	}
	course.End(c.Now())
	if !onDevice {
		course.Skip(number)
	}
	s := c.due(course, r.Top())
	if s == nil {
		return
	}
	c.Users++
	safego.Go("schedule", func() {
		found, err := s.Find()
		c.Lock()
		defer c.Leave()
		c.Users--
		course.Take(s, found, err)
	})
}

// PlanNow searches the first plan of a course that nothing was captured for yet. The lock is not held.
func (c *Cache) PlanNow(course *schedule.Course) error {
	if err := c.Enter(); err != nil {
		return err
	}
	var s *schedule.Search
	if len(c.Devices) > 0 {
		s = c.due(course, 0)
	}
	c.Unlock()
	if s == nil {
		return nil
	}
	found, err := s.Find()
	c.Lock()
	defer c.Unlock()
	course.Take(s, found, err)
	return nil
}

// due returns the search for a plan that is due for a device tier; nil: none is, or nothing leaves the tier.
func (c *Cache) due(course *schedule.Course, t int) *schedule.Search {
	if c.Engine.Below(t) < 0 {
		return nil
	}
	return course.Due(c.terms(t))
}

// terms are those of plans for a device tier.
func (c *Cache) terms(t int) schedule.Terms {
	terms := schedule.Terms{
		Link:  schedule.Link{Rate: c.Engine.FlushRate(t), Fixed: linkFixed},
		Cache: c.Engine.Capacity(t), Longest: c.Engine.Capacity(c.Engine.Below(t)) / HeldPart,
	}
	if s := c.staging[t]; s != nil && s.group > 0 {
		terms.Group, terms.Cache = s.group, max(terms.Cache-stagingBytes(s.group), 0)
	}
	return terms
}

// Decision is what the schedule of its history says of a checkpoint. The lock is held.
func (c *Cache) Decision(r *engine.Record) schedule.Decision {
	if course, number := c.Scheduled(r); course != nil {
		return course.Decision(number)
	}
	return schedule.Undecided
}

// GoesWhole tells whether the schedule of its history leaves a checkpoint as it is. The lock is held.
func (c *Cache) GoesWhole(r *engine.Record) bool { return c.Decision(r) == schedule.Whole }
