package schedule

import "math"

// levels is the number of backlogs for which guide keeps a value.
const levels = 64

// guide estimates for how long the application will be blocked after checkpoint i, given how far the link lags behind the application's clock. It is
// a dynamic programme over a smaller model, from the last checkpoint backwards: the lag is the only state, the cache holds as many bytes as the link
// carries in that time, and each checkpoint is flushed as it is or encoded at the price that it has in a run. The estimate ranks states. It is no bound.
type guide struct {
	step  float64 // ns between two levels
	delay []float32
}

func newGuide(r *rules, part int64) *guide {
	n, most := len(r.Checkpoints), 0.0
	carry := 1e9 / r.Link.Rate
	for i := range r.Checkpoints {
		most = max(most, float64(r.transfer(min(r.Checkpoints[i].Size, r.Cache))))
	}
	room := float64(r.Cache) * carry
	g := &guide{step: max((room+most)/(levels-1), 1), delay: make([]float32, (n+1)*levels)}
	for i := n - 1; i >= 0; i-- {
		c := &r.Checkpoints[i]
		whole, encoded := float64(r.transfer(c.Size)), float64(r.transfer(c.Encoded))
		raw := float64(c.Size) * carry
		price, run := r.inRun(c, n-i, part)
		hold := float64(min(r.hold(c.Size, c.Encoded), math.MaxInt64/2)) * carry
		encoded -= float64(r.Link.Fixed) * (1 - 1/float64(run))
		for k := range levels {
			lag := max(float64(k)*g.step-float64(c.Interval), 0)
			wait := max(lag+raw-room, 0)
			if c.Size > r.Cache {
				wait = lag + whole
			}
			least := wait + g.at(i+1, max(lag-wait, 0)+whole)
			if hold <= room {
				wait = max(lag+hold-room, 0)
				blocked := price
				if r.Overlap {
					blocked = price * (1 - float64(r.share)/(1<<shareBits))
				}
				least = min(least, wait+blocked+g.at(i+1, max(lag-wait-blocked, price-blocked)+encoded))
			}
			g.delay[i*levels+k] = float32(least)
		}
	}
	return g
}

// inRun is what encoding costs for each checkpoint of a long run: a part of the cache, at most those that are left.
func (r *rules) inRun(c *Checkpoint, left int, part int64) (price float64, run int64) {
	run = 1
	if c.Size > 0 {
		run = max(min(int64(left), r.Cache/part/c.Size), 1)
	}
	return float64(r.encodeTime(run*c.Size)) / float64(run), run
}

// at interpolates the estimate for the checkpoints from i on.
func (g *guide) at(i int, lag float64) float64 {
	x := min(lag/g.step, levels-1)
	k := min(int(x), levels-2)
	low, high := float64(g.delay[i*levels+k]), float64(g.delay[i*levels+k+1])
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
	return at + int64(p.guide.at(i, float64(link-at)))
}
