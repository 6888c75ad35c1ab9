package store

import (
	"cmp"
	"slices"

	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/tier/disk/catalog"

	"github.com/tidwall/btree"
)

// retention applies a history's rule to the checkpoints that count. In a durable store a checkpoint counts once it is durable: a checkpoint that it
// replaces under the rule must not be dropped earlier. The last checkpoints are the last by order of writing, as in durable.notKept, since transfers
// end in any order.
type retention struct {
	rule   *catalog.Retention
	exempt func(k model.Key) bool
	at     map[model.Key]int64         // time of writing of each checkpoint that counts
	last   btree.Map[int64, model.Key] // the newest checkpoints, at most rule.Last
	older  btree.Map[int64, model.Key] // the others, each of which another rule keeps
	ranked *ranking                    // checkpoints with a score; nil: the rule does not keep the best
	unkept []written                   // checkpoints that no rule keeps, for prune to drop
}

func newRetention(r *catalog.Retention) *retention {
	x := &retention{rule: r, exempt: r.Exempts(), at: map[model.Key]int64{}}
	if r.Best.Count > 0 {
		x.ranked = newRanking(r.Best.Count)
	}
	return x
}

// add counts a version from now on, in place of an older version of its key.
func (x *retention) add(c candidate) {
	x.remove(c.key)
	x.at[c.key] = c.at
	x.last.Set(c.at, c.key)
	outdone, some := x.ranked.add(c)
	if uint64(x.last.Len()) > x.rule.Last {
		at, key, _ := x.last.PopMin()
		if x.exempt(key) || x.ranked.has(key) {
			x.older.Set(at, key)
		} else {
			x.release(written{at, key})
		}
	}
	if some && !x.exempt(outdone.key) {
		if _, old := x.older.Delete(outdone.at); old {
			x.release(outdone.written)
		}
	}
}

// release hands prune a checkpoint that no rule keeps. The caller has removed it from last and older; it is not among the best.
func (x *retention) release(w written) {
	delete(x.at, w.key)
	x.ranked.remove(w.key)
	x.unkept = append(x.unkept, w)
}

// remove removes a key that has no counting version any more. The newest of older then becomes one of the last, and the best of the other scores one
// of the best.
func (x *retention) remove(k model.Key) {
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

// clear removes all checkpoints.
func (x *retention) clear() { *x = *newRetention(x.rule) }

// Retain sets the rule of the history, in place of the previous one, and applies it to the existing checkpoints. A durable store stores the rule in
// the catalog.
func (h *History) Retain(r catalog.Retention) error {
	s := h.s
	if err := s.enterToWrite(); err != nil {
		return err
	}
	defer s.leave()
	if s.disk != nil {
		s.disk.SetRule(h.h.Name, &r)
	}
	h.retain(&r)
	return nil
}

// retain applies a rule. The lock is held.
func (h *History) retain(r *catalog.Retention) {
	h.retention = nil
	if r.None() {
		return
	}
	x := newRetention(r)
	for _, c := range h.s.retained(h, x) {
		x.add(c)
	}
	h.retention = x
	h.s.prune(h)
}

// rule returns the history's present rule.
func (h *History) rule() *catalog.Retention {
	if h.retention == nil {
		return &catalog.Retention{}
	}
	return h.retention.rule
}

// standing scores a checkpoint by its meta, if the rule keeps the best. text is the text of the checkpoint's layout.
func (x *retention) standing(w written, text, meta string) candidate {
	c, b := candidate{written: w}, &x.rule.Best
	if b.Count == 0 {
		return c
	}
	n, ok := description.Number(text, meta, b.By)
	c.score, c.scored = b.Score(n), ok
	return c
}

// ofRecord returns the standing of a checkpoint of which the engine has a record.
func (x *retention) ofRecord(at int64, r *engine.Record) candidate {
	b := r.Version
	return x.standing(written{at, r.Key}, b.Layout.Text, b.Meta)
}

// ofRow returns the standing of a checkpoint that only the catalog has. It reads the meta from the catalog and makes no record.
func (x *retention) ofRow(d *disk.Tier, h *engine.History, w written) candidate {
	if x.rule.Best.Count == 0 {
		return candidate{written: w}
	}
	text, meta, ok := d.Meta(h.Name, w.key)
	if !ok {
		return candidate{written: w}
	}
	return x.standing(w, text, meta)
}

// retained returns the checkpoints of a history that count, in the order of writing, as candidates of a retention.
func (s *Store) retained(h *History, x *retention) []candidate {
	var all []candidate
	h.h.Each(func(r *engine.Record) {
		if at, ok := s.counts(r); ok {
			all = append(all, x.ofRecord(at, r))
		}
	})
	if s.disk != nil {
		s.disk.EachNotLoaded(h.h, func(k model.Key, serial uint64) {
			all = append(all, x.ofRow(s.disk, h.h, written{int64(serial), k}))
		})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.at, b.at) })
	return all
}

// counts tells whether a checkpoint counts for retention, and its time of writing.
func (s *Store) counts(r *engine.Record) (at int64, ok bool) {
	if !s.isDurable() {
		return r.Written(), r.Captured()
	}
	//mutation:undurable-counts-for-retention
	return int64(r.Version.Serial), s.eng.Complete(r, len(s.tiers)-1)
}

// countForRetention records that a version counts. The lock is held. The engine must not call it, since prune calls the engine.
func (s *Store) countForRetention(r *engine.Record) {
	h := s.histories[r.Hist.Name]
	if h.retention == nil || r.Gone() {
		return
	}
	if at, ok := s.counts(r); ok {
		h.retention.add(h.retention.ofRecord(at, r))
		s.prune(h)
	}
}

// prune drops the checkpoints that the rule of a history does not keep.
func (s *Store) prune(h *History) {
	unkept := h.retention.unkept
	h.retention.unkept = nil
	for _, w := range unkept {
		r := h.h.Get(w.key)
		if r == nil {
			continue
		}
		if at, ok := s.counts(r); ok && at == w.at { // otherwise the key was written again, and counts later
			s.eng.Drop(s.now(), h.h, w.key)
		}
	}
}
