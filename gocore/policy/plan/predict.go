package plan

import "velocpy/gocore/model"

// The predictors: ways in which the next restore of a sweep may follow from the previous ones.
const (
	repeated = iota // as in the last sweep
	backward        // the key written before this one
	stacked         // the newest key, if any was written since the last restore, otherwise as backward: reversal schedules
	forward         // the key written after this one
	strided         // by the difference between the last two of every p-th restore: p = 1, 2 … maxLag
	maxLag   = 8
	kinds    = strided + maxLag
)

const undecided = -1

// sweep is the state from which the next restore is predicted: the last restore, and the expectation of each predictor.
type sweep struct {
	begun  bool
	last   model.Key
	before likely // of backward
	top    likely // of stacked
	after  likely // of forward
	match  int64  // of repeated: position in the trail of the next key, or -1
	recent [2 * maxLag]int64
	count  int // numbers in a row in recent, most recent at (count-1) mod its length
}

// likely is a key that may come next, if there is one.
type likely struct {
	key model.Key
	ok  bool
}

func maybe(k model.Key, ok bool) likely { return likely{k, ok} }

// next is the restore that one predictor expects. The key of a stride need not exist. O(1).
func (s *sweep) next(kind int, t *trail) likely {
	switch kind {
	case repeated:
		return maybe(t.at(s.match))
	case backward:
		return s.before
	case stacked:
		return s.top
	case forward:
		return s.after
	}
	lag := kind - strided + 1
	if s.count < 2*lag {
		return likely{}
	}
	return likely{model.NumberKey(2*s.number(lag) - s.number(2*lag)), true}
}

// foresees tells whether next expects k.
func (s *sweep) foresees(kind int, k model.Key, t *trail) bool {
	if lag := kind - strided + 1; lag > 0 {
		return s.count >= 2*lag && !k.IsText && k.Number == 2*s.number(lag)-s.number(2*lag)
	}
	n := s.next(kind, t)
	return n.ok && n.key == k
}

// number is the key restored back restores ago.
func (s *sweep) number(back int) int64 { return s.recent[uint(s.count-back)%uint(len(s.recent))] }

// follow makes k the last restore, for every predictor.
func (s *sweep) follow(k model.Key, w *written, t *trail) {
	s.begun, s.last = true, k
	s.before = maybe(w.beside(k, -1))
	s.top = s.before
	s.after = maybe(w.beside(k, +1))
	s.rematch(k, t)
	s.note(k)
}

// rematch finds k in the trail: at the continuation of the last sweep, or else at the last restore of k.
func (s *sweep) rematch(k model.Key, t *trail) {
	if x, ok := t.at(s.match); s.match >= 0 && ok && x == k {
		s.match++
		return
	}
	s.match = -1
	if pos, ok := t.last(k); ok {
		s.match = pos + 1
	}
}

func (s *sweep) note(k model.Key) {
	if k.IsText {
		s.count = 0
		return
	}
	s.recent[s.count%len(s.recent)] = k.Number
	s.count++
}

// step makes the restore that one predictor expects next the last one, for this predictor only. ok=false: it expects none, or the key does not exist.
func (s *sweep) step(kind int, w *written, t *trail) (k model.Key, ok bool) {
	n := s.next(kind, t)
	if !n.ok || !w.has(n.key) {
		return model.Key{}, false
	}
	switch kind {
	case repeated:
		s.match++
	case backward:
		s.before = maybe(w.beside(n.key, -1))
	case stacked:
		s.top = maybe(w.beside(n.key, -1))
	case forward:
		s.after = maybe(w.beside(n.key, +1))
	default:
		s.note(n.key)
	}
	return n.key, true
}

// leave tells that x is about to leave its place in the list of written keys.
func (s *sweep) leave(x model.Key, w *written) {
	if s.before.ok && s.before.key == x {
		s.before = maybe(w.beside(x, -1))
	}
	if s.top.ok && s.top.key == x {
		s.top = maybe(w.beside(x, -1))
	}
	if s.after.ok && s.after.key == x {
		s.after = maybe(w.beside(x, +1))
	}
}

// arrive tells that k was written, as the newest key.
func (s *sweep) arrive(k model.Key, w *written) {
	if !s.begun {
		return
	}
	s.top = likely{k, true}
	if !s.after.ok && k != s.last {
		s.after = maybe(w.beside(s.last, +1))
	}
}
