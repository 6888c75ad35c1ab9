package retention

import (
	"cmp"

	"velocpy/gocore/model"

	"github.com/tidwall/btree"
)

// ranking orders the checkpoints of a history that have a score. best holds those that the retention keeps for their score; rest holds the others,
// each of which another rule keeps. A nil ranking belongs to a retention without a rule for the best, and stays empty.
type ranking struct {
	count  uint64
	scores map[model.Key]Candidate
	best   *btree.BTreeG[Candidate] // at most count of them
	rest   *btree.BTreeG[Candidate]
}

// Candidate is a checkpoint that counts, with its score: the smaller, the better. Of equal scores the one that was written first is better. A
// checkpoint that is kept for its score therefore goes only for a strictly better one.
type Candidate struct {
	Written
	Score  float64
	Scored bool // false: its meta has no such number, and it is never among the best
}

func (a Candidate) betterThan(b Candidate) bool {
	return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.At, b.At)) < 0
}

func newRanking(count uint64) *ranking {
	unlocked := btree.Options{NoLocks: true} // the store's lock guards it
	return &ranking{
		count: count, scores: map[model.Key]Candidate{},
		best: btree.NewBTreeGOptions(Candidate.betterThan, unlocked), rest: btree.NewBTreeGOptions(Candidate.betterThan, unlocked),
	}
}

// add ranks a checkpoint whose key has no rank. It returns the checkpoint that is not among the best any more, which may be the new one. some is
// false if all fit among the best.
func (x *ranking) add(c Candidate) (outdone Candidate, some bool) {
	if x == nil || !c.Scored {
		return outdone, false
	}
	x.scores[c.Key] = c
	x.best.Set(c)
	if uint64(x.best.Len()) <= x.count {
		return outdone, false
	}
	//mutation:best-evicted-for-worse
	outdone, _ = x.best.PopMax()
	x.rest.Set(outdone)
	return outdone, true
}

// remove removes a checkpoint. If it was among the best, the first of the rest replaces it.
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
