package schedule

import (
	"cmp"
	"math"
	"slices"
)

// The default width falls with the number of checkpoints, from 128 to 8 for a thousand of them, which keeps the time within some ten milliseconds.
const (
	leastWidth = 8
	mostWidth  = 128
)

func defaultWidth(n int) int {
	return min(max(leastWidth*1000/max(n, 1), leastWidth), mostWidth)
}

// Result is the plan that a search has found.
type Result struct {
	Plan    Plan
	Outcome Outcome // of Run for that plan
	Optimal bool    // no plan is better: the search has left no state out that could lead to one
	States  int     // most states that were kept after a checkpoint
	Visited int     // states that were reached, in all
}

// Exact returns an optimal plan for any number of checkpoints. Its time and memory grow with the number of states that no other one dominates: a few
// for even checkpoints or a small cache, but very many for dozens of uneven ones. After most states it gives up and returns the plan of Bounded, with
// Optimal unset; below 1: it never gives up.
func Exact(in *Instance, most int) (Result, error) {
	bounded, err := Bounded(in, 0)
	if err != nil || bounded.Optimal {
		return bounded, err
	}
	r, err := in.rules()
	if err != nil {
		return Result{}, err
	}
	p := newSearch(r, 0, 0, bounded.Outcome.Application) // leaves out states that cannot be better
	p.most = most
	best := p.run()
	if p.exhausted() {
		return bounded, nil
	}
	return best, in.price(&best)
}

// Bounded returns a plan in a time that is linear in the number of checkpoints. It keeps at most width states after each checkpoint, as many again
// that accumulate, and those that follow the best baselines; a width below 1 stands for 8 to 128, by the number of checkpoints. The plan is never
// worse than the best one of Baselines. It is optimal, and Optimal says so, if width sufficed.
func Bounded(in *Instance, width int) (Result, error) {
	r, err := in.rules()
	if err != nil {
		return Result{}, err
	}
	if width < 1 {
		width = defaultWidth(len(in.Checkpoints))
	}
	var best Result
	for k, part := range parts {
		if k > 0 && (best.Optimal || len(in.Checkpoints) > fewCheckpoints) {
			break
		}
		p := newSearch(r, width, part, math.MaxInt64)
		if err := p.follow(); err != nil {
			return Result{}, err
		}
		if found := p.run(); k == 0 || found.Optimal || found.Outcome.Before(best.Outcome) {
			best = found
		}
	}
	return best, in.price(&best)
}

// parts are the shares of the cache that guide supposes runs to fill: an eighth, and none, where each checkpoint is encoded alone. Neither is right
// everywhere, so up to fewCheckpoints are searched with both.
var parts = [...]int64{8, math.MaxInt64}

const fewCheckpoints = 200

// price replaces the result's outcome by the simulator's.
func (in *Instance) price(r *Result) (err error) {
	r.Outcome, err = in.Run(r.Plan)
	return err
}

// search is a dynamic programme over the checkpoints. Its states after a checkpoint are those that no other one dominates.
type search struct {
	*rules
	chains chains
	added  chains // entries that drop goes through
	steps  []step
	bound  *bound
	guide  *guide // only with a width
	width  int    // 0: no limit
	limit  int64  // states whose bound is above it are left out
	cut    bool   // a state was left out because of width
	most   int    // states after which the search gives up; below 1: none

	closed, open         []state
	closedNext, openNext []state
	order                []ranked // reached states by their clocks
	ranks                []ranked // … and as the guide ranks them: only with a width
	found, chosen        []int32  // places in order: only with a width
	guards               []guard  // only with a width
	result               Result
}

func newSearch(r *rules, width int, part, limit int64) *search {
	entries := 16 + 3*min(max(width, leastWidth), 16)*len(r.Checkpoints)
	p := &search{rules: r, chains: newChains(entries), steps: make([]step, 1, entries), width: width, limit: limit}
	if width > 0 {
		p.guide = newGuide(r, part)
	} else {
		p.bound = newBound(r)
	}
	p.closed = []state{{}}
	return p
}

func (p *search) run() Result {
	for i := range p.Checkpoints {
		before := len(p.chains)
		p.expand(i)
		if p.exhausted() {
			return p.result
		}
		p.closed, p.closedNext = p.thin(p.closed[:0], p.closedNext, nil, i+1), p.closedNext[:0]
		p.open, p.openNext = p.thin(p.open[:0], p.openNext, p.closed, i+1), p.openNext[:0]
		p.drop(before)
		p.advance(i)
		p.result.States = max(p.result.States, len(p.closed)+len(p.open))
	}
	best := slices.MinFunc(p.closed, func(a, b state) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.link, b.link))
	})
	p.result.Outcome = Outcome{Application: best.time, Flushed: best.link}
	p.result.Optimal = !p.cut
	p.result.Plan = p.plan(best.step)
	return p.result
}

func (p *search) exhausted() bool { return p.most > 0 && p.result.Visited > p.most }

// expand applies all decisions on checkpoint i to all states.
func (p *search) expand(i int) {
	c, last := &p.Checkpoints[i], i == len(p.Checkpoints)-1
	add := func(list []state, s state, ok bool) []state {
		if ok {
			return append(list, s)
		}
		return list
	}
	for k := range p.closed {
		s, ok := p.whole(p.closed[k], c)
		p.closedNext = add(p.closedNext, s, ok)
		s, ok = p.encode(p.closed[k], c)
		p.closedNext = add(p.closedNext, s, ok)
		if !last {
			s, ok = p.accumulate(p.closed[k], c)
			p.openNext = add(p.openNext, s, ok)
		}
	}
	for k := range p.open {
		s, ok := p.encode(p.open[k], c)
		p.closedNext = add(p.closedNext, s, ok)
		if !last {
			s, ok = p.accumulate(p.open[k], c)
			p.openNext = add(p.openNext, s, ok)
		}
	}
	p.result.Visited += len(p.closedNext) + len(p.openNext)
}

// thin appends to kept the reached states that neither a state of others nor one of themselves dominates, and that the limit and the width allow, in the
// order of their clocks.
func (p *search) thin(kept, reached, others []state, i int) []state {
	p.arrange(reached)
	if p.width > 0 && len(reached) > p.width {
		kept = p.narrow(kept, reached, others, i)
	} else {
		kept = p.undominated(kept, reached, others, i)
	}
	for k := range kept {
		s := &kept[k]
		p.steps = append(p.steps, step{s.step, s.decision})
		s.step = int32(len(p.steps) - 1)
	}
	return kept
}

// arrange sorts the reached states by their clocks. A state that dominates another one comes before it.
func (p *search) arrange(reached []state) {
	p.order = p.order[:0]
	for k := range reached {
		p.order = append(p.order, ranked{reached[k].time, reached[k].link, int32(k)})
	}
	sortRanked(p.order)
}

// undominated keeps all states that no other one dominates, and that the limit allows.
func (p *search) undominated(kept, reached, others []state, i int) []state {
	for _, o := range p.order {
		s := &reached[o.index]
		if p.beaten(kept, s) || p.beaten(others, s) {
			continue
		}
		if p.bound == nil || p.bound.end(s, p.left(s), i) <= p.limit {
			kept = append(kept, *s)
		}
	}
	return kept
}

// beaten tells whether a kept state dominates s.
func (p *search) beaten(kept []state, s *state) bool {
	for k := range kept {
		if p.dominates(&kept[k], s) {
			return true
		}
	}
	return false
}

// left is a lower bound of the bytes that the link has to carry for the state, in the cache and not accumulated. The transfer under way counts for the
// time that it has left, at most. With Keeps the cache does not tell what is to be carried, and 0 is a bound, too.
func (p *search) left(s *state) int64 {
	if p.Keeps {
		return 0
	}
	all := p.chains.left(s.flushes, s.time)
	end, ok := p.chains.next(s.flushes, s.time)
	if !ok {
		return 0
	}
	rest := p.chains.left(s.flushes, end)
	return rest + min(all-rest, int64(float64(end-s.time)*p.Link.Rate/1e9))
}

// plan reads the decisions backwards.
func (p *search) plan(last int32) Plan {
	plan := make(Plan, len(p.Checkpoints))
	for i := len(plan) - 1; i >= 0; i-- {
		plan[i] = p.steps[last].decision
		last = p.steps[last].before
	}
	return plan
}
