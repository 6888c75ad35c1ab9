package sim

import (
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// scatter describes how a policy's evictions from a tier are spread.
type scatter struct {
	evicted int
	apart   int   // evictions of a checkpoint that was not captured directly after the one evicted before it
	empty   int64 // free bytes of the tier, summed over the evictions
}

// evictions plays the shot in docs/policy-grid.md in which the score policy loses. All restores are hinted, in the order of capture, and flushes are
// eager. It counts evictions from the host tier in the forward sweep.
func evictions(t *testing.T, p evict.Kind, sizes []int64) (s scatter, r Result) {
	var m *Machine
	last, restoring := int64(-1), false
	cfg := engine.Config{Tiers: append([]engine.TierConfig(nil), hostMachine.tiers...), Policy: p, Flush: engine.Eager, Prefetch: true, Guess: true}
	cfg.Trace = func(e engine.Event) {
		restoring = restoring || e.Kind == engine.Restored
		if e.Kind != engine.Evicted || e.Tier != 0 || restoring {
			return
		}
		if e.Rec.Key.Number != last+1 {
			s.apart++
		}
		last = e.Rec.Key.Number
		s.evicted++
		use := m.Engine.Use(0)
		s.empty += use.Capacity - use.Used
	}
	m = NewMachine(cfg, hostMachine.media, hostMachine.copy)
	shot := Shot{Sizes: sizes, Compute: 10e6, Order: Sequential(shotLength), Hints: AllHints, Last: true}
	r, err := shot.Run(m)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// The evictions of the score policy are scattered. That costs nothing where sizes are equal, and leaves unusable gaps where they are not.
func TestEvictionsThatLieApartLeaveGaps(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int64
		gaps  bool
	}{{"alike", uniform(shotLength, 128<<20), false}, {"trace", traceSizes(t), true}} {
		score, byScore := evictions(t, evict.Score, c.sizes)
		lru, byUse := evictions(t, evict.LRU, c.sizes)
		t.Logf("%s: score %+v, %d bytes read; lru %+v, %d bytes read", c.name, score, byScore.Read, lru, byUse.Read)
		if score.apart <= lru.apart {
			t.Errorf("%s: score evicts apart %d times, lru %d times", c.name, score.apart, lru.apart)
		}
		emptier := score.empty/int64(score.evicted) > 2*(lru.empty/int64(lru.evicted))
		if emptier != c.gaps || (byScore.Read > byUse.Read) != c.gaps {
			t.Errorf("%s: score %+v, read %d; lru %+v, read %d", c.name, score, byScore.Read, lru, byUse.Read)
		}
	}
}
