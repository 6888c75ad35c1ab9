package retention

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/model"
)

// Checkpoints become durable, are replaced and dropped in any order. Those stay that the rule keeps by order of writing and by score, and none that
// it would keep of the durable ones has gone meanwhile.
func TestRetentionGoesByTheOrderOfWriting(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		rule := model.Retention{Last: uint64(r.IntN(5)), Every: uint64(r.IntN(4)), Named: r.IntN(2) == 0, Keys: []model.Key{model.NumberKey(int64(r.IntN(20)))}}
		if r.IntN(3) == 0 {
			rule.Keys = nil
		}
		if seed%2 == 1 {
			rule.Best = model.Best{Count: uint64(1 + r.IntN(4)), By: []string{"loss"}}
		}
		x, there := New(&rule), map[model.Key]Candidate{}
		key := func(n int) model.Key {
			if n%7 == 3 {
				return model.TextKey(fmt.Sprint(n))
			}
			return model.NumberKey(int64(n))
		}
		for _, at := range r.Perm(60) {
			k := key(r.IntN(20))
			if int64(at) < there[k].At {
				continue // versions of a key become durable in their order
			}
			if r.IntN(6) == 0 {
				delete(there, k)
				x.Remove(k)
			} else {
				there[k] = Candidate{Written{At: int64(at), Key: k}, float64(r.IntN(9)), r.IntN(5) > 0}
				x.Add(there[k])
			}
			kept := keptBy(&rule, there)
			for _, w := range x.Unkept() {
				if kept[w.Key] || there[w.Key].At != w.At {
					t.Fatalf("seed %d: %v of %d goes, of %v the rule %+v keeps %v", seed, w.Key, w.At, there, rule, kept)
				}
				delete(there, w.Key)
			}
			if len(kept) != len(there) {
				t.Fatalf("seed %d: %v are there, the rule %+v keeps %v", seed, there, rule, kept)
			}
		}
	}
}

// keptBy returns the checkpoints that a rule keeps.
func keptBy(rule *model.Retention, there map[model.Key]Candidate) map[model.Key]bool {
	all := slices.Collect(maps.Values(there))
	slices.SortFunc(all, func(a, b Candidate) int { return int(b.At - a.At) })
	kept, exempt := map[model.Key]bool{}, rule.Exempts()
	for i, c := range all {
		if i < int(rule.Last) || exempt(c.Key) {
			kept[c.Key] = true
		}
	}
	for _, c := range all {
		better := 0
		for _, other := range all {
			if other.Scored && (other.Score < c.Score || other.Score == c.Score && other.At < c.At) {
				better++
			}
		}
		if c.Scored && better < int(rule.Best.Count) {
			kept[c.Key] = true
		}
	}
	return kept
}
