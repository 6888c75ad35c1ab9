package schedule

// scale is by what the checkpoints of a profile are multiplied.
type scale struct{ size, encoded, interval float64 }

// mostScale bounds it: a run that deviates by more resembles its profile no longer.
const mostScale = 64

func (s *scale) correct(d Deviation) {
	s.size = within(s.size * (1 + d.size))
	s.encoded = within(s.encoded * (1 + d.encoded))
	s.interval = within(s.interval * (1 + d.interval))
}

func within(x float64) float64 { return min(max(x, 1.0/mostScale), mostScale) }

func (s *scale) of(c Checkpoint) Checkpoint {
	return Checkpoint{
		Size: rounded(float64(c.Size) * s.size), Encoded: rounded(float64(c.Encoded) * s.encoded), Interval: rounded(float64(c.Interval) * s.interval),
	}
}

// defaultCost is the encoder's, until calls with two sizes were timed: about that of the codec's kernels on an H100, and of a launch and a wait.
var defaultCost = Cost{Fixed: 50e-6, Rate: 500e9}

// Search is a plan to be made.
type Search struct {
	Instance *Instance
	from     int // number of its first checkpoint
}

// Due returns the search for a plan that is due; nil: none is. The search takes milliseconds, and the caller need not hold its lock meanwhile. Take ends
// it; until then no other is due.
func (c *Course) Due(t Terms) *Search {
	if c.searching || len(c.repeat) > 0 || c.captured >= mostCourse {
		return nil
	}
	if !c.stale && len(c.planned) > 0 && (c.captured < len(c.profile) || c.captured+ahead/4 < c.first+len(c.planned)) {
		return nil
	}
	if c.stale {
		c.scale.correct(c.deviation)
		c.deviation, c.stale = Deviation{}, false
	}
	all := c.coming()
	if len(all) == 0 {
		return nil
	}
	c.searching = true
	in := &Instance{
		Checkpoints: all, Link: t.Link, Cache: t.Cache, Overlap: true, Slowdown: 1,
		// What is encoded stays in the cache until the link has taken it, and the encoder's buffers are set aside.
		Encoder: Encoder{Time: c.cost().Time, Temporary: func(int64) int64 { return 0 }},
	}
	return &Search{Instance: in, from: c.captured}
}

// coming predicts the next checkpoints.
func (c *Course) coming() []Checkpoint {
	if c.captured < len(c.profile) {
		all := make([]Checkpoint, len(c.profile)-c.captured)
		for i := range all {
			all[i] = c.scale.of(c.profile[c.captured+i])
		}
		return all
	}
	if c.captured < least || !c.forecast.sized {
		return nil
	}
	return c.forecast.Next(ahead)
}

func (c *Course) cost() Cost {
	if cost, err := FitCost(c.calls); err == nil {
		return cost
	}
	if cost, err := FitCost(c.told); err == nil {
		return cost
	}
	return defaultCost
}

// Take takes the result of a search over.
func (c *Course) Take(s *Search, found Result, err error) {
	c.searching = false
	if err != nil {
		c.first, c.planned = s.from, s.Instance.Checkpoints // no other search before these have come
		return
	}
	c.adopt(s, found.Plan)
}

// adopt goes on with a plan. Checkpoints that were captured while it was searched keep what was decided of them. If that was to be accumulated, their run
// ends with the last of them.
func (c *Course) adopt(s *Search, p Plan) {
	if skip := c.captured - s.from; skip < len(p) {
		c.plan = c.plan[:min(len(c.plan), c.captured)]
		if last := c.captured - 1; c.decided(last) == Accumulate {
			c.plan[last] = Bulk
		}
		for i, d := range p[skip:] {
			if i == 0 && d == Bulk { // those before it went their own way
				d = Alone
			}
			c.set(c.captured+i, d)
		}
		c.first, c.planned = c.captured, s.Instance.Checkpoints[skip:]
		c.plans++
	}
}
