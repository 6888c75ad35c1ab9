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

// slowdown is how much longer an application needs beside an encoder that is always busy. On an H100 1.045 was measured, beside flushes that encode by flushes that
// do not (docs/results-tables.md, encoded). It lets checkpoints go as they are where nothing waits for the link.
const slowdown = 1.05

// longestRun bounds the bytes of a run, beside the terms. Nothing of its room is free before the end, and on an H100 runs of some 300 MiB took longer than such of
// 32 to 128 MiB.
const longestRun = 64 << 20

// Search is a plan to be made.
type Search struct {
	Instance *Instance
	from     int  // number of its first checkpoint
	alike    bool // all checkpoints are like the last ones
}

// longest is the most bytes of a run.
func (t *Terms) longest() int64 {
	if t.Longest > 0 {
		return min(t.Longest, longestRun)
	}
	return longestRun
}

// Find searches the plan. `python -m benchmarks twins` measures how long that takes for 1000 checkpoints. With a cache that holds them all it takes several times as
// long, so no caller waits for it but Reduce.
func (s *Search) Find() (Plan, error) {
	if s.alike {
		best, _, err := BestBaseline(s.Instance)
		return best.Plan, err
	}
	found, err := Bounded(s.Instance, 0)
	return found.Plan, err
}

// Due returns the search for a plan that is due; nil: none is. The caller need not hold its lock while it searches. Take ends it; until then no other is due.
func (c *Course) Due(t Terms) *Search {
	if c.searching || len(c.repeat) > 0 || c.captured >= mostCourse {
		return nil
	}
	alike := c.captured >= len(c.profile)
	if _, planned := c.expected(c.captured); planned && !c.stale && !c.endsSoon() {
		return nil
	}
	if c.stale {
		c.scale.correct(c.deviation)
		c.deviation, c.stale = Deviation{}, false
	}
	all := c.coming(t.Cache)
	if len(all) == 0 {
		return nil
	}
	c.searching = true
	return &Search{from: c.captured, alike: alike, Instance: &Instance{
		Checkpoints: all, Link: t.Link, Cache: t.Cache, Overlap: true, Slowdown: slowdown, Keeps: true, Longest: t.longest(),
		Encoder: Encoder{Time: c.inGroups(t.Group), Temporary: func(int64) int64 { return 0 }}, // the encoder's buffers are set aside
	}}
}

// mostPlanned bounds the checkpoints of a plan, and so the time of its search. The next plan is searched when there are early ones left.
const mostPlanned, early = 1024, 128

// endsSoon tells whether the plan will end before the profile does.
func (c *Course) endsSoon() bool {
	end := c.first + len(c.planned)
	return end < len(c.profile) && c.captured+early >= end
}

// coming predicts the next checkpoints.
func (c *Course) coming(cache int64) []Checkpoint {
	if c.captured < len(c.profile) {
		all := make([]Checkpoint, min(len(c.profile)-c.captured, mostPlanned))
		for i := range all {
			all[i] = c.scale.of(c.profile[c.captured+i])
		}
		return all
	}
	if c.captured < least || !c.forecast.sized {
		return nil
	}
	return c.forecast.Next(horizon(cache, rounded(c.forecast.size)))
}

// horizon is for how many checkpoints that are alike letters are compared: for enough to fill the cache several times.
func horizon(cache, size int64) int {
	const fewest, most, caches = 128, 1024, 2
	return int(min(max(caches*(cache/max(size, 1)), fewest), most))
}

// inGroups is the time of an encoder that takes so many bytes at once, and is called again for the others.
func (c *Course) inGroups(group int64) func(bytes int64) int64 {
	cost := c.cost()
	if group <= 0 {
		return cost.Time
	}
	return func(bytes int64) int64 {
		whole, rest := bytes/group, bytes%group
		t := whole * cost.Time(group)
		if rest > 0 {
			t += cost.Time(rest)
		}
		return t
	}
}

func (c *Course) cost() Cost {
	for _, calls := range [][]Measurement{c.calls, c.told} {
		if cost, err := FitCost(calls); err == nil {
			return cost
		}
		if len(calls) > 0 { // of one size: what is not the time for the bytes is that of the call
			fixed := calls[len(calls)-1].Seconds - float64(calls[len(calls)-1].Bytes)/defaultCost.Rate
			return Cost{Fixed: max(fixed, 0), Rate: defaultCost.Rate}
		}
	}
	return defaultCost
}

// Take goes on with the plan of a search, or as if there were none where it has failed. Checkpoints that were captured while it was searched keep what was decided
// of them. If the last of them was to be accumulated, its run ends with it.
func (c *Course) Take(s *Search, p Plan, err error) {
	c.searching = false
	switch skip := c.captured - s.from; {
	case err != nil:
		c.first, c.planned = s.from, s.Instance.Checkpoints // no other search before these have come, unless they deviate
		return
	case s.alike:
		c.cut()
		c.steady = steady{letters: p.firstRun(), from: c.captured, each: s.Instance.Checkpoints[0]}
		c.first, c.planned = 0, nil
	case skip < len(p):
		c.cut()
		for i, d := range p[skip:] {
			c.set(c.captured+i, d)
		}
		c.first, c.planned = c.captured, s.Instance.Checkpoints[skip:]
	default:
		return
	}
	c.plans++
}

// cut forgets what was decided of checkpoints to come.
func (c *Course) cut() {
	c.plan = c.plan[:min(len(c.plan), c.captured)]
	c.endRun(c.captured - 1)
	c.changes++
}

// firstRun is the plan up to the end of its first run.
func (p Plan) firstRun() Plan {
	for i, d := range p {
		if d != Accumulate {
			return p[:i+1]
		}
	}
	return p
}
