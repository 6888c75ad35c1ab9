package store

import (
	"cmp"

	"velocpy/gocore/model"

	"github.com/tidwall/btree"
)

// ranking orders the checkpoints of a history that have a score: the best of them, which the retention keeps for that, and the rest, each of which another rule
// keeps. A nil ranking is that of a retention that does not ask for the best: it stays empty.
type ranking struct {
	count  uint64
	scores map[model.Key]candidate
	best   *btree.BTreeG[candidate] // count of them at the most
	rest   *btree.BTreeG[candidate]
}

// candidate is a checkpoint that counts, with its score: the smaller, the better. Of equal scores the one that was written first is better, so that a
// checkpoint which stays for its score goes for a better one alone.
type candidate struct {
	written
	score  float64
	scored bool // false: its meta has no such number, and it is never among the best
}

func (a candidate) betterThan(b candidate) bool {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.at, b.at)) < 0
}

func newRanking(count uint64) *ranking {
	unlocked := btree.Options{NoLocks: true} // the store's lock guards it
	return &ranking{
		count: count, scores: map[model.Key]candidate{},
		best: btree.NewBTreeGOptions(candidate.betterThan, unlocked), rest: btree.NewBTreeGOptions(candidate.betterThan, unlocked),
	}
}

// add ranks a checkpoint whose key has no rank yet, and returns the one that is outdone by it: one that was among the best, or the new one itself. some is
// false where there was room for one more.
func (x *ranking) add(c candidate) (outdone candidate, some bool) {
	if x == nil || !c.scored {
		return outdone, false
	}
	x.scores[c.key] = c
	x.best.Set(c)
	if uint64(x.best.Len()) <= x.count {
		return outdone, false
	}
	//mutation:best-evicted-for-worse
	outdone, _ = x.best.PopMax()
	x.rest.Set(outdone)
	return outdone, true
}

// remove forgets a checkpoint. If it was among the best, the first of the rest takes its place.
func (x *ranking) remove(k model.Key) {
	if x == nil {
		return
	}
	c, ok := x.scores[k]
	if !ok {
		return
	}
	delete(x.scores, k)
	if _, was := x.best.Delete(c); !was {
		x.rest.Delete(c)
		return
	}
	if next, ok := x.rest.PopMin(); ok {
		x.best.Set(next)
	}
}

// has tells whether a checkpoint is among the best.
func (x *ranking) has(k model.Key) bool {
	if x == nil {
		return false
	}
	c, ok := x.scores[k]
	if ok {
		_, ok = x.best.Get(c)
	}
	return ok
}
