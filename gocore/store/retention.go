package store

import (
	"cmp"
	"slices"

	"velocpy/gocore/catalog"
	"velocpy/gocore/durable"
	"velocpy/gocore/engine"
	"velocpy/gocore/plan"
)

// retention is a history's rule, and what it still has to decide about: a checkpoint that comes lets one go for which no rule speaks. In a durable store it counts
// from when it is durable: what it makes superfluous must not go before.
type retention struct {
	rule   *catalog.Retention
	exempt func(k plan.Key) bool
	recent []written          // the latest ones, oldest first; some have been written again
	places map[plan.Key]int64 // of those that have not: which one of recent counts
}

func newRetention(r *catalog.Retention) *retention {
	return &retention{rule: r, exempt: r.Exempts(), places: map[plan.Key]int64{}}
}

// came notes that a version counts from now on.
func (x *retention) came(k plan.Key, at int64) {
	x.recent = append(x.recent, written{at, k})
	x.places[k] = at
}

// next takes out one that the rules let go; false when there is none.
func (x *retention) next() (w written, ok bool) {
	for len(x.recent) > 0 && uint64(len(x.places)) > x.rule.Last {
		w, x.recent = x.recent[0], x.recent[1:]
		if x.places[w.key] != w.at {
			continue
		}
		delete(x.places, w.key)
		if !x.exempt(w.key) {
			return w, true
		}
	}
	return w, false
}

// Retain makes a rule that of the history, in place of the one before, and applies it to what is there. A durable store keeps it.
func (h *History) Retain(r catalog.Retention) error {
	s := h.s
	if err := s.enterToWrite(); err != nil {
		return err
	}
	defer s.leave()
	if s.kept != nil {
		s.kept.dir.Commit(&durable.Change{History: h.h.Name, Retention: &r})
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
	for _, w := range h.s.counting(h) {
		x.came(w.key, w.at)
	}
	h.retention = x
	h.s.prune(h)
}

// rule is the one that holds.
func (h *History) rule() *catalog.Retention {
	if h.retention == nil {
		return &catalog.Retention{}
	}
	return h.retention.rule
}

// counting are the checkpoints of a history that count, in the order of their writing.
func (s *Store) counting(h *History) []written {
	var all []written
	h.h.Each(func(r *engine.Record) {
		if at, ok := s.counts(r); ok {
			all = append(all, written{at, r.Key})
		}
	})
	if s.kept != nil {
		s.kept.eachAsleep(h.h, func(k plan.Key, serial uint64) { all = append(all, written{int64(serial), k}) })
	}
	slices.SortFunc(all, func(a, b written) int { return cmp.Compare(a.at, b.at) })
	return all
}

// counts tells whether a checkpoint counts for retention, and as of when.
func (s *Store) counts(r *engine.Record) (at int64, ok bool) {
	if s.kept == nil {
		return r.Written(), r.Captured()
	}
	return int64(r.Body.(*body).serial), s.eng.Complete(r, len(s.tiers)-1)
}

// arrived notes that a version counts. The lock is held, and it is called in no call of the engine.
func (s *Store) arrived(r *engine.Record) {
	h := s.histories[r.Hist.Name]
	if h.retention == nil || r.Gone() {
		return
	}
	if at, ok := s.counts(r); ok {
		h.retention.came(r.Key, at)
		s.prune(h)
	}
}

// prune drops what the rule of a history lets go.
func (s *Store) prune(h *History) {
	for {
		w, ok := h.retention.next()
		if !ok {
			return
		}
		r := h.h.Get(w.key)
		if r == nil {
			continue
		}
		if at, ok := s.counts(r); ok && at == w.at { // else it has been written again, and counts later
			s.eng.Drop(s.now(), h.h, w.key)
		}
	}
}
