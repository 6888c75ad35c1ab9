// Package retention applies the rule that says which checkpoints of a history stay. File retain.go of package durable applies the same rule to a store on
// disk without an engine: a change concerns both.
package retention

import (
	"velocpy/gocore/model"

	"github.com/tidwall/btree"
)

// Kept applies a history's rule to the checkpoints that count. In a durable store a checkpoint counts once it is durable: a checkpoint that it
// replaces under the rule must not be dropped earlier. The last checkpoints are the last by order of writing, as in durable.notKept, since transfers
// end in any order.
type Kept struct {
	Rule   *model.Retention
	exempt func(k model.Key) bool
	at     map[model.Key]int64         // time of writing of each checkpoint that counts
	last   btree.Map[int64, model.Key] // the newest checkpoints, at most rule.Last
	older  btree.Map[int64, model.Key] // the others, each of which another rule keeps
	ranked *ranking                    // checkpoints with a score; nil: the rule does not keep the best
	unkept []Written                   // checkpoints that no rule keeps, for Unkept
}

// New returns a rule that has not been applied to any checkpoint.
func New(r *model.Retention) *Kept {
	x := &Kept{Rule: r, exempt: r.Exempts(), at: map[model.Key]int64{}}
	if r.Best.Count > 0 {
		x.ranked = newRanking(r.Best.Count)
	}
	return x
}

// Add counts a version from now on, in place of an older version of its key.
func (x *Kept) Add(c Candidate) {
	x.Remove(c.Key)
	x.at[c.Key] = c.At
	x.last.Set(c.At, c.Key)
	outdone, some := x.ranked.add(c)
	if uint64(x.last.Len()) > x.Rule.Last {
		at, key, _ := x.last.PopMin()
		if x.exempt(key) || x.ranked.has(key) {
			x.older.Set(at, key)
		} else {
			x.release(Written{at, key})
		}
	}
	if some && !x.exempt(outdone.Key) {
		if _, old := x.older.Delete(outdone.At); old {
			x.release(outdone.Written)
		}
	}
}

// release gives Unkept a checkpoint that no rule keeps. The caller has removed it from last and older; it is not among the best.
func (x *Kept) release(w Written) {
	delete(x.at, w.Key)
	x.ranked.remove(w.Key)
	x.unkept = append(x.unkept, w)
}

// Remove removes a key that has no counting version any more. The newest of older then becomes one of the last, and the best of the other scores one
// of the best.
func (x *Kept) Remove(k model.Key) {
	at, ok := x.at[k]
	if !ok {
		return
	}
	delete(x.at, k)
	x.ranked.remove(k)
	if _, ok := x.last.Delete(at); !ok {
		x.older.Delete(at)
		return
	}
	if at, key, ok := x.older.PopMax(); ok {
		x.last.Set(at, key)
	}
}

// Clear removes all checkpoints.
func (x *Kept) Clear() { *x = *New(x.Rule) }

// Unkept returns the checkpoints that no rule has kept since the last call. The caller drops them.
func (x *Kept) Unkept() []Written {
	unkept := x.unkept
	x.unkept = nil
	return unkept
}
