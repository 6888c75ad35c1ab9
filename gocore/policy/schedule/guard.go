package schedule

import (
	"cmp"
	"slices"
)

// guards is the number of baselines that a bounded search follows.
const guards = 4

// guard is a state that follows a baseline. A bounded search always keeps it, unless a kept state dominates it. So its result is never worse than the
// baseline, and it may leave the baseline after any checkpoint.
type guard struct {
	plan    Plan
	outcome Outcome
	state   state
}

// follow chooses the best baselines.
func (p *search) follow() error {
	for _, b := range p.baselines() {
		out, err := p.simulate(b.Plan)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(p.guards, func(g guard) bool { return g.outcome == out }) {
			p.guards = append(p.guards, guard{plan: b.Plan, outcome: out})
		}
	}
	slices.SortStableFunc(p.guards, func(a, b guard) int {
		return cmp.Or(cmp.Compare(a.outcome.Application, b.outcome.Application), cmp.Compare(a.outcome.Flushed, b.outcome.Flushed))
	})
	p.guards = p.guards[:min(len(p.guards), guards)]
	return nil
}

// advance moves the guards past checkpoint i and adds them to the states.
func (p *search) advance(i int) {
	for k := range p.guards {
		g := &p.guards[k]
		g.state, _ = p.apply(g.state, g.plan[i], &p.Checkpoints[i])
		p.steps = append(p.steps, step{g.state.step, g.plan[i]})
		g.state.step = int32(len(p.steps) - 1)
		switch {
		case p.beaten(p.closed, &g.state) || p.beaten(p.open, &g.state):
		case g.state.members > 0:
			p.open = append(p.open, g.state)
		default:
			p.closed = append(p.closed, g.state)
		}
	}
}

// apply applies any decision.
func (p *search) apply(s state, d Decision, c *Checkpoint) (state, bool) {
	switch d {
	case Whole:
		return p.whole(s, c)
	case Accumulate:
		return p.accumulate(s, c)
	}
	return p.encode(s, c)
}
