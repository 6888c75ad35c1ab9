package plan

import (
	"math"

	"velocpy/gocore/model"
)

const (
	proof      = 2  // restores in a row that a predictor must explain to be trusted
	proofLimit = 64 // the most that is demanded after guesses that failed
	paysOff    = 8  // restores guessed right after which a guess that ends has not failed

	creditStart = 4 // what a trusted predictor begins with
	creditLimit = 8 // hits add one up to this
	creditMiss  = 4 // a miss takes away: the first one ends a young guess, the second in a row any
)

// guess expects restores of a history that gives no hints. Every predictor is scored by the restores in a row which it explains; the best one is
// trusted once it explains enough, and loses the trust when it fails. After every guess that failed early the next needs twice the proof.
type guess struct {
	live      written
	trail     trail
	constants constants
	sweep     sweep
	run       tally // restores in a row that each predictor explains
	holding   bool  // the last restore did not belong to the sweep, as it seems
	held      pause // the sweep before it
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

// pause is a sweep that was interrupted by a single restore, and may go on.
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
	case g.holding: // the sweep that was interrupted has come to its end meanwhile
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

// existing leaves out a key that does not exist: strides run past their ends.
func (g *guess) existing(n likely) likely {
	n.ok = n.ok && g.live.has(n.key)
	return n
}

// anchor is where the guess goes on: the sweep, or the one that a single restore interrupted.
func (g *guess) anchor() *sweep {
	if g.holding {
		return &g.held.sweep
	}
	return &g.sweep
}

// score counts for each predictor whether it expected k. A trusted one that expected nothing neither gains nor loses.
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

// judge rewards or charges the trusted predictor, which expected something before this restore of k.
func (g *guess) judge(k model.Key, foreseen bool, before tally) {
	if foreseen {
		g.credit = min(g.credit+1, creditLimit)
		if g.hits++; g.hits == paysOff {
			g.proof = proof
		}
		return
	}
	resumed := g.holding && g.foresaw(g.trusted) // the restore before was no interruption: the sweep went on from there
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
	// A restore from the window skips what lies before it; a first one from elsewhere interrupts.
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

// choose trusts the best predictor, unless one that still expects something is trusted already.
func (g *guess) choose() {
	if g.holding || g.next().ok {
		return
	}
	if best := g.best(g.goesOn); best != undecided {
		g.trust(best)
	}
}

// best is the predictor with the most evidence of those that are proven and in the running.
func (g *guess) best(runs func(kind int) bool) int {
	best := undecided
	for kind := range g.run {
		if g.evidence(kind) >= g.proof && (best == undecided || g.evidence(kind) > g.evidence(best)) && runs(kind) {
			best = kind
		}
	}
	return best
}

// foresaw tells whether a predictor expected the restore just scored; goesOn, whether it expects another.
func (g *guess) foresaw(kind int) bool { return g.run[kind] > 1 }
func (g *guess) goesOn(kind int) bool  { return g.existing(g.sweep.next(kind, &g.trail)).ok }

// evidence is how many restores in a row speak for a predictor; a stride over several restores explains its first ones trivially.
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
	// What the last sweep began with exists again: the trusted predictor, at its end, may hand over.
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
