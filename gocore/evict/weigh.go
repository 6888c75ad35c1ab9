package evict

import (
	"math"

	"velocpy/gocore/fragment"
)

const (
	classes   = 8 // a power of two above the last class, so that an index masked with classMask needs no check
	classMask = classes - 1
)

// stays marks, in a measure, what cannot go.
const stays = int64(math.MinInt64)

// measure is how fragments of one class are weighed.
type measure struct {
	fresh int64 // s-score of what nobody expects, were it untouched since the beginning
	stays int64 // stays, or 0
}

// scale is a request, prepared for weighing one fragment after the other: what depends on the class is looked up, not branched upon.
type scale struct {
	measures [classes]measure
	count    uint32
	floor    int64 // what is expected within this distance stays
	kind     Kind
	open     bool // windows may differ in more than their scores

	heads []int64
	now   int64
	begin int64 // ns until a future flush would have begun
	rate  float64
}

func newScale(k Kind, r *Request) scale {
	s := scale{
		count: uint32(r.Count), floor: r.Floor, kind: k, open: r.Break || k == Score && !r.NoWait,
		heads: r.Heads, now: r.Now, begin: r.Backlog + 1, rate: r.FlushRate,
	}
	fresh := r.Count
	if k == Score {
		fresh += unexpectedWeight
	}
	for c := range s.measures {
		s.measures[c] = measure{fresh: fresh, stays: stays}
	}
	m := &s.measures
	m[fragment.Gap] = measure{fresh: gapWeight}
	m[fragment.Free].stays = 0
	if !r.NoWait {
		m[fragment.Flushing].stays = 0
	}
	if !r.NoWait && r.FlushRate > 0 {
		m[fragment.Dirty].stays = 0
	}
	if r.Break {
		m[fragment.Promised].stays = 0
	}
	return s
}

// settle makes scores the only difference: there is a window without promises and, if the policy minds, without waiting.
func (s *scale) settle() {
	s.open = false
	s.measures[fragment.Promised].stays = stays
	if s.kind == Score {
		s.measures[fragment.Flushing].stays, s.measures[fragment.Dirty].stays = stays, stays
	}
}

// wait is how long it takes until a fragment is evictable.
func wait[O any](s *scale, f *fragment.Fragment[O]) int64 {
	switch f.Class {
	case fragment.Flushing:
		return max(f.ETA-s.now, 1)
	case fragment.Dirty:
		return s.begin + int64(float64(f.Size)*s.rate)
	}
	return 0
}

// weigh fills in what the fragments weigh, whose scores add to sum. No loop branches on what differs between fragments.
func weigh[O any](s *scale, t *fragment.Table[O], ids []fragment.ID, sum int64, loads []load) {
	switch s.kind {
	case Score:
		weighDistance(s, t, ids, sum, loads)
	case LRU:
		weighAge(s, t, ids, sum, loads)
	case FIFO:
		weighStay(s, t, ids, sum, loads)
	}
	if s.floor >= 0 {
		keep(s, t, ids, loads)
	}
}

// weighDistance scores by the distance to the next restore, and what nobody expects by its age.
func weighDistance[O any](s *scale, t *fragment.Table[O], ids []fragment.ID, sum int64, loads []load) {
	loads = loads[:len(ids)]
	for i, id := range ids {
		f := t.At(id)
		m := &s.measures[f.Class&classMask]
		l := &loads[i]
		l.end = (f.Offset + f.Size) | m.stays
		score := m.fresh - f.Touched
		if distance := max(f.Seq-s.heads[f.Lane], 0); f.Seq != fragment.Unexpected {
			score = distance
		}
		sum += score
		l.sum = sum
	}
}

// weighAge scores by the time since a fragment was last used.
func weighAge[O any](s *scale, t *fragment.Table[O], ids []fragment.ID, sum int64, loads []load) {
	loads = loads[:len(ids)]
	for i, id := range ids {
		f := t.At(id)
		m := &s.measures[f.Class&classMask]
		sum += m.fresh - f.Touched
		loads[i] = load{end: (f.Offset + f.Size) | m.stays, sum: sum}
	}
}

// weighStay scores by the time since a fragment was placed.
func weighStay[O any](s *scale, t *fragment.Table[O], ids []fragment.ID, sum int64, loads []load) {
	loads = loads[:len(ids)]
	for i, id := range ids {
		f := t.At(id)
		m := &s.measures[f.Class&classMask]
		score := int64(s.count - f.Born)
		if f.Class == fragment.Gap {
			score = gapWeight
		}
		sum += score
		loads[i] = load{end: (f.Offset + f.Size) | m.stays, sum: sum}
	}
}

// score is what the loops above compute, of one fragment.
func score[O any](s *scale, m *measure, f *fragment.Fragment[O]) int64 {
	if s.kind == Score && f.Seq != fragment.Unexpected {
		return max(f.Seq-s.heads[f.Lane], 0)
	}
	if s.kind == FIFO && f.Class != fragment.Gap {
		return int64(s.count - f.Born)
	}
	return m.fresh - f.Touched
}

// near tells whether a restore within the floor is expected.
func near[O any](s *scale, f *fragment.Fragment[O]) bool {
	return f.Seq != fragment.Unexpected && f.Seq-s.heads[f.Lane] <= s.floor
}

// keep lets stay what is expected within the floor.
func keep[O any](s *scale, t *fragment.Table[O], ids []fragment.ID, loads []load) {
	for i, id := range ids {
		if near(s, t.At(id)) {
			loads[i].end |= stays
		}
	}
}

// delay is what one fragment adds to the p-score of its window, and to the promises.
type delay struct {
	wait     int64 // 0 if the policy does not mind
	promises int64
}

func delays[O any](s *scale, t *fragment.Table[O], ids []fragment.ID, to []delay) {
	for i, id := range ids {
		f := t.At(id)
		to[i] = delay{}
		if f.Class == fragment.Promised {
			to[i].promises = 1
		}
		if s.kind == Score {
			to[i].wait = wait(s, f)
		}
	}
}
