package evict

import (
	"math"
	"slices"

	"velocpy/gocore/policy/fragment"
)

const (
	classes   = 8 // a power of two above the last class, so that indexing with classMask needs no bounds check
	classMask = classes - 1
	fewLanes  = 32 // up to so many are prepared without an allocation; two of them are no restore orders
)

// A number has a bit for each fragment of a leaf: this does not compile otherwise.
const _ = uint(64 - fragment.LeafSize)

// stays marks fragments that cannot be evicted.
const stays = int64(math.MinInt64)

// scale is a request prepared for weighing many fragments: values that depend on the class or the lane are looked up, without a branch.
type scale struct {
	stays  [classes]int64 // stays, or 0
	lanes  []lane         // by the lanes of entries
	floor  int64          // fragments expected within this distance stay
	kind   Kind
	open   bool // windows may differ in more than their scores
	breaks bool // and also in their promises

	now    int64
	begin  int64 // ns until a future flush would have begun
	rate   float64
	barred func(fragment.ID) bool

	promises [classes]int64  // 1 for Promised
	dirty    [classes]int64  // a mask, of ones for Dirty
	flushing [classes]uint64 // the highest bit for Flushing
}

// lane converts the values of a restore order's entries to scores.
type lane struct {
	base, each int64 // base is added to a value, each is the factor of the sum
}

func (l *lane) score(value int64) int64 { return max(value+l.base, 0) * l.each }

// newScale prepares a request. O(restore orders). lanes is a list to be filled in, or to be replaced if it is too short.
func newScale(k Kind, r *Request, lanes []lane) scale {
	s := scale{
		floor: r.Floor, kind: k, breaks: r.Break, open: r.Break || k == Score && !r.NoWait,
		now: r.Now, begin: r.Backlog + 1, rate: r.FlushRate, barred: r.Barred,
	}
	fresh := r.Count
	if k == Score {
		fresh += unexpectedWeight
	}
	s.lanes = append(slices.Grow(lanes, fragment.Lanes+len(r.Heads)), lane{gapWeight, 1}, lane{fresh, 1})
	for i, head := range r.Heads {
		s.lanes = append(s.lanes, lane{-head, r.Intervals[i]})
	}
	s.promises[fragment.Promised] = 1
	s.dirty[fragment.Dirty], s.flushing[fragment.Flushing] = -1, 1<<63
	for c := range s.stays {
		s.stays[c] = stays
	}
	s.stays[fragment.Gap], s.stays[fragment.Free] = 0, 0
	if !r.NoWait {
		s.stays[fragment.Flushing] = 0
	}
	if !r.NoWait && r.FlushRate > 0 {
		s.stays[fragment.Dirty] = 0
	}
	if r.Break {
		s.stays[fragment.Promised] = 0
	}
	return s
}

// settle prepares for windows that must be better than one without promises. So promised fragments stay. If that window needs no waiting either, and the
// policy counts waits, the fragments that need it stay, and only scores differ.
func (s *scale) settle(wait int64) {
	s.breaks = false
	s.stays[fragment.Promised] = stays
	if wait == 0 {
		s.open = false
		if s.kind == Score {
			s.stays[fragment.Flushing], s.stays[fragment.Dirty] = stays, stays
		}
	}
}

// wait is how long it takes until a fragment is evictable.
func (s *scale) wait(c fragment.Class, size, eta int64) int64 {
	switch c {
	case fragment.Flushing:
		return max(eta-s.now, 1)
	case fragment.Dirty:
		return s.begin + int64(float64(size)*s.rate)
	}
	return 0
}

// weigh fills in the loads of fragments, beginning at a sum of scores. It has no branch that depends on a fragment.
func (s *scale) weigh(entries []fragment.Entry, sum int64, loads []load) {
	if s.kind == FIFO {
		s.weighStay(entries, sum, loads)
		return
	}
	lanes, after := s.lanes, entries[1:][:len(loads)]
	entries = entries[:len(loads)]
	for i := range entries {
		e := &entries[i]
		sum += lanes[e.Lane].score(e.Value)
		loads[i] = load{end: after[i].Offset | s.stays[e.Class&classMask], sum: sum}
	}
}

// weighStay is weigh for FIFO, which has only the low half of the count at which a fragment was placed.
func (s *scale) weighStay(entries []fragment.Entry, sum int64, loads []load) {
	for i := range loads {
		e := &entries[i]
		score := s.lanes[e.Lane].base
		if e.Lane != fragment.LaneOfGaps {
			score = int64(uint32(e.Value + score))
		}
		sum += score
		loads[i] = load{end: entries[i+1].Offset | s.stays[e.Class&classMask], sum: sum}
	}
}

// keep marks the fragments that are expected within the floor as staying.
func (s *scan[O]) keep(ids []fragment.ID, entries []fragment.Entry, loads []load) {
	for i, id := range ids {
		near := false
		if e := &entries[i]; s.kind == Score {
			near = e.Lane >= fragment.Lanes && s.lanes[e.Lane].score(e.Value) <= s.floor
		} else {
			f := s.table.At(id)
			near = f.Expected != fragment.Unexpected && s.lanes[fragment.Lanes+f.Lane].score(f.Expected) <= s.floor
		}
		if near {
			loads[i].end |= stays
		}
	}
}

// bar marks the fragments as staying that need an impossible flush.
func (s *scan[O]) bar(ids []fragment.ID, entries []fragment.Entry, loads []load) {
	for i, id := range ids {
		if loads[i].end >= 0 && entries[i].Class == fragment.Dirty && s.barred(id) {
			loads[i].end |= stays
		}
	}
}
