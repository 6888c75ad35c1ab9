package plan

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
	run       [kinds]int // restores in a row that each predictor explains
	trusted   int        // predictor, or undecided
	credit    int
	hits      int // of the trusted predictor
	proof     int
	ahead     window
}

func newGuess(lookahead int) *guess {
	g := &guess{live: newWritten(), trusted: undecided, proof: proof}
	g.sweep.match = -1
	g.ahead.limit = lookahead
	return g
}

// observe learns from a restore of k. O(1).
func (g *guess) observe(k Key) {
	recurs, changed := g.constants.observe(k)
	if changed {
		g.ahead.stale = true
	}
	if recurs {
		return
	}
	g.score(k)
	g.sweep.follow(k, &g.live, &g.trail)
	g.trail.add(k)
	g.choose()
}

// score counts for each predictor whether it expected k, and charges the trusted one.
func (g *guess) score(k Key) {
	for kind := range g.run {
		n := g.sweep.next(kind, &g.trail)
		hit := n.ok && n.key == k
		switch {
		case hit:
			g.run[kind]++
		case n.ok || kind != g.trusted:
			g.run[kind] = 1
		}
		if kind == g.trusted && n.ok {
			g.charge(hit)
		}
	}
}

func (g *guess) charge(hit bool) {
	if hit {
		g.credit = min(g.credit+1, creditLimit)
		if g.hits++; g.hits == paysOff {
			g.proof = proof
		}
		return
	}
	if g.credit -= creditMiss; g.credit > 0 {
		return
	}
	if g.hits < paysOff {
		g.proof = min(2*g.proof, proofLimit)
	}
	g.trust(undecided)
}

// choose trusts the best predictor, unless one that still expects something is trusted already.
func (g *guess) choose() {
	if g.trusted != undecided && g.evidence(g.trusted) > 0 && g.sweep.next(g.trusted, &g.trail).ok {
		return
	}
	best := undecided
	for kind := range g.run {
		if g.evidence(kind) < g.proof || !g.sweep.next(kind, &g.trail).ok {
			continue
		}
		if best == undecided || g.evidence(kind) > g.evidence(best) {
			best = kind
		}
	}
	if best != undecided {
		g.trust(best)
	}
}

// evidence is how many restores in a row speak for a predictor; a stride over several restores explains its first ones trivially.
func (g *guess) evidence(kind int) int {
	if kind > strided {
		return g.run[kind] - (kind - strided)
	}
	return g.run[kind]
}

func (g *guess) trust(kind int) {
	g.trusted, g.credit, g.hits = kind, creditStart, 0
	g.ahead.stale = true
}

func (g *guess) wrote(k Key) {
	g.sweep.leave(k, &g.live)
	g.live.write(k)
	g.sweep.arrive(k, &g.live)
	if g.trusted == stacked || g.ahead.ended {
		g.ahead.stale = true
	}
}

func (g *guess) dropped(k Key) {
	g.sweep.leave(k, &g.live)
	g.live.drop(k)
	if _, ok := g.ahead.find(k); ok {
		g.ahead.stale = true
	}
}
