package plan

import (
	"math"

	"velocpy/gocore/model"
)

const (
	proof      = 2  // restores in a row that a predictor must explain to be trusted
	proofLimit = 64 // the largest proof demanded after failed guesses
	paysOff    = 8  // after so many restores guessed right, the end of a guess is no failure

	creditStart = 4 // credit of a newly trusted predictor
	creditLimit = 8 // each hit adds one, up to this
	creditMiss  = 4 // a miss subtracts this: the first miss ends a young guess, the second in a row ends any
)

// guess predicts the restores of a history that gives no hints. Each predictor is scored by the number of restores in a row that it explains. The
// best one is trusted once it explains enough, and loses the trust when it fails. After a guess that failed early the next one needs twice the proof.
type guess struct {
	live      written
	trail     trail
	constants constants
	sweep     sweep
	run       tally // restores in a row that each predictor explains
	holding   bool  // the last restore apparently did not belong to the sweep
	held      pause // the sweep before that restore
	trusted   int   // predictor, or undecided
	credit    int
	hits      int // of the trusted predictor
	proof     int
	ahead     window
}

func newGuess(keys *Keys, lookahead int) *guess {
	g := &guess{live: newWritten(keys), trail: trail{keys: keys}, trusted: undecided, proof: proof}
	g.sweep.match = -1
	g.ahead.limit = lookahead
	return g
}

// pause is a sweep that was interrupted by a single restore, and may continue.
type pause struct {
	sweep sweep
	run   tally
}

type tally [kinds]int32

// observe learns from a restore of k. O(1).
func (g *guess) observe(k model.Key) {
	n := g.next()
	foreseen := n.ok && n.key == k
	recurs, changed := g.constants.observe(k, foreseen)
	if changed {
		g.ahead.stale = true
	}
	if recurs {
		return
	}
	if foreseen && g.holding {
		g.sweep, g.run = g.held.sweep, g.held.run
		g.holding = false
	}
	before := g.run
	g.score(k)
	switch {
	case n.ok:
		g.judge(k, foreseen, before)
	case g.holding: // the interrupted sweep has ended meanwhile
		g.holding = false
		g.ahead.stale = true
	}
	g.sweep.follow(k, &g.live, &g.trail)
	g.trail.add(k)
	g.choose()
}

// next is the restore of the sweep that the trusted predictor expects.
func (g *guess) next() likely {
	if g.trusted == undecided {
		return likely{}
	}
	return g.existing(g.anchor().next(g.trusted, &g.trail))
}

// existing rejects a key that does not exist: strides run past their ends.
func (g *guess) existing(n likely) likely {
	n.ok = n.ok && g.live.has(n.key)
	return n
}

// anchor is the sweep that the guess continues: the current one, or the one that a single restore interrupted.
func (g *guess) anchor() *sweep {
	if g.holding {
		return &g.held.sweep
	}
	return &g.sweep
}

// score updates for each predictor whether it expected k. A trusted one that expected no restore neither gains nor loses.
func (g *guess) score(k model.Key) {
	for kind := range g.run {
		switch {
		case g.sweep.foresees(kind, k, &g.trail):
			g.run[kind] = min(g.run[kind]+1, math.MaxInt32-1)
		case kind != g.trusted || g.goesOn(kind):
			g.run[kind] = 1
		}
	}
}

// judge rewards or charges the trusted predictor, which expected a restore before this restore of k.
func (g *guess) judge(k model.Key, foreseen bool, before tally) {
	if foreseen {
		g.credit = min(g.credit+1, creditLimit)
		if g.hits++; g.hits == paysOff {
			g.proof = proof
		}
		return
	}
	resumed := g.holding && g.foresaw(g.trusted) // the previous restore was no interruption: the sweep continued from there
	again := g.holding
	g.holding = false
	if resumed {
		g.ahead.stale = true
		return
	}
	if rival := g.best(g.foresaw); rival != undecided {
		g.trust(rival)
		return
	}
	if g.credit -= creditMiss; g.credit <= 0 {
		g.giveUp()
		return
	}
	// A restore from the window skips the restores before it; a first one from elsewhere interrupts.
	if _, skips := g.ahead.find(k); skips || again {
		g.ahead.stale = true
	} else {
		g.held, g.holding = pause{g.sweep, before}, true
	}
}

func (g *guess) giveUp() {
	if g.hits < paysOff {
		g.proof = min(2*g.proof, proofLimit)
	}
	g.trust(undecided)
}

// choose trusts the best predictor, unless the trusted one still expects a restore.
func (g *guess) choose() {
	if g.holding || g.next().ok {
		return
	}
	if best := g.best(g.goesOn); best != undecided {
		g.trust(best)
	}
}

// best is the predictor with the most evidence among the proven ones for which runs is true.
func (g *guess) best(runs func(kind int) bool) int {
	best := undecided
	for kind := range g.run {
		if g.evidence(kind) >= g.proof && (best == undecided || g.evidence(kind) > g.evidence(best)) && runs(kind) {
			best = kind
		}
	}
	return best
}

// foresaw tells whether a predictor expected the restore just scored, goesOn whether it expects a further one.
func (g *guess) foresaw(kind int) bool { return g.run[kind] > 1 }
func (g *guess) goesOn(kind int) bool  { return g.existing(g.sweep.next(kind, &g.trail)).ok }

// evidence is how many restores in a row support a predictor. A stride over several restores explains its first ones trivially.
func (g *guess) evidence(kind int) int {
	n := int(g.run[kind])
	if kind > strided {
		return n - (kind - strided)
	}
	return n
}

func (g *guess) trust(kind int) {
	g.trusted, g.credit, g.hits = kind, creditStart, 0
	g.ahead.stale = true
}

func (g *guess) wrote(k model.Key) {
	g.leave(k)
	g.live.write(k)
	g.sweep.arrive(k, &g.live)
	if g.holding {
		g.held.sweep.arrive(k, &g.live)
	}
	if g.trusted == stacked || g.ahead.ended {
		g.ahead.stale = true
	}
	// The first key of the last sweep exists again: the trusted predictor, at its end, may hand over.
	if n := g.sweep.next(repeated, &g.trail); n.ok && n.key == k && g.evidence(repeated) >= g.proof {
		g.choose()
	}
}

func (g *guess) dropped(k model.Key) {
	g.leave(k)
	g.live.drop(k)
	if _, ok := g.ahead.find(k); ok {
		g.ahead.stale = true
	}
}

func (g *guess) leave(k model.Key) {
	g.sweep.leave(k, &g.live)
	if g.holding {
		g.held.sweep.leave(k, &g.live)
	}
}
