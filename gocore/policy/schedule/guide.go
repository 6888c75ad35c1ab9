package schedule

import "math"

// levels is the number of backlogs for which guide keeps a value.
const levels = 64

// guide estimates for how long the application will be blocked after checkpoint i, given how far the link lags behind the application's clock. It is
// a dynamic programme over a smaller model, from the last checkpoint backwards: the lag is the only state, the cache holds as many bytes as the link
// carries in that time, and each checkpoint is flushed as it is or encoded at the price that it has in a run. The estimate ranks states. It is no bound.
type guide struct {
	step  float64 // ns between two levels
	room  float64 // ns that the link needs for a full cache
	delay []row   // by index of the next checkpoint
}

// row is the estimate for one checkpoint, by backlog.
type row [levels]float32

func newGuide(r *rules, part int64) *guide {
	n, most := len(r.Checkpoints), 0.0
	for i := range r.Checkpoints {
		most = max(most, float64(r.transfer(min(r.Checkpoints[i].Size, r.Cache))))
	}
	room := float64(r.Cache) * (1e9 / r.Link.Rate)
	g := &guide{step: max((room+most)/(levels-1), 1), room: room, delay: make([]row, n+1)}
	for i := n - 1; i >= 0; i-- {
		m := r.moves(&r.Checkpoints[i], n-i, part)
		g.fill(i, float64(r.Checkpoints[i].Interval), &m)
	}
	return g
}

// moves are the two decisions on a checkpoint in the smaller model; all times are ns.
type moves struct {
	raw, hold float64 // that the link needs for the room which flushing it, or encoding it, takes
	whole     float64 // that the link carries it as it is …
	encoded   float64 // … or encoded
	past      bool    // it is larger than the cache
	blocked   float64 // for which encoding blocks the application …
	beside    float64 // … and goes on beside it
}

func (r *rules) moves(c *Checkpoint, left int, part int64) moves {
	carry := 1e9 / r.Link.Rate
	price, run := r.inRun(c, left, part)
	m := moves{
		raw: float64(c.Size) * carry, whole: float64(r.transfer(c.Size)), past: c.Size > r.Cache, blocked: price,
		hold:    float64(min(r.hold(c.Size, c.Encoded), math.MaxInt64/2)) * carry,
		encoded: float64(r.transfer(c.Encoded)) - float64(r.Link.Fixed)*(1-1/float64(run)),
	}
	if r.Overlap {
		m.blocked = price * (1 - float64(r.share)/(1<<shareBits))
	}
	m.beside = price - m.blocked
	return m
}

// fill computes the row of checkpoint i from the next one's.
func (g *guide) fill(i int, interval float64, m *moves) {
	to, next := &g.delay[i], &g.delay[i+1]
	for k := range levels {
		lag := float64(k)*g.step - interval
		if lag <= 0 && k > 0 { // as the level before: the link has caught up
			to[k] = to[k-1]
			continue
		}
		to[k] = float32(g.least(next, max(lag, 0), m))
	}
}

// least is the estimate of the better decision for a lag at the capture.
func (g *guide) least(next *row, lag float64, m *moves) float64 {
	wait := max(lag+m.raw-g.room, 0)
	if m.past {
		wait = lag + m.whole
	}
	least := wait + next.at(g.step, max(lag-wait, 0)+m.whole)
	if m.hold <= g.room {
		wait = max(lag+m.hold-g.room, 0)
		least = min(least, wait+m.blocked+next.at(g.step, max(lag-wait-m.blocked, m.beside)+m.encoded))
	}
	return least
}

// inRun is what encoding costs for each checkpoint of a long run: a part of the cache, at most those that are left.
func (r *rules) inRun(c *Checkpoint, left int, part int64) (price float64, run int64) {
	run = 1
	if c.Size > 0 {
		run = max(min(int64(left), r.Cache/part/c.Size), 1)
	}
	return float64(r.encodeTime(run*c.Size)) / float64(run), run
}

// at interpolates the estimate for a lag.
func (r *row) at(step, lag float64) float64 {
	x := min(lag/step, levels-1)
	k := min(uint(x), levels-2)
	low, high := float64(r[k]), float64(r[k+1])
	return low + (x-float64(k))*(high-low)
}

// worth estimates the end of the application, without the intervals that are left, for a state whose next checkpoint is i. An accumulation counts as
// if it were encoded now.
func (p *search) worth(s *state, i int) int64 {
	at, link := s.time, s.link
	if s.members > 0 {
		t := p.encodeTime(s.raw)
		done := max(s.encoder, at) + t
		link = max(link, done) + p.transfer(s.encoded)
		if p.Overlap {
			t -= int64(float64(t) * float64(p.share) / (1 << shareBits))
		}
		at += t
	}
	return at + int64(p.guide.delay[i].at(p.guide.step, float64(link-at)))
}
