// Package evict chooses which neighbouring fragments of a cache buffer make room for a checkpoint (seed 000, section 4.2,
// algorithm 1). A window of consecutive fragments slides over the allocation table; both of its scores are kept up to date
// as it moves, so that one decision costs O(fragments looked at).
//
// The package is pure: time, bandwidth and the heads of the restore orders come in with the request.
package evict

import (
	"math"

	"velocpy/gocore/fragment"
)

// Kind is an eviction policy.
type Kind uint8

// The policies. Score is the paper's; the other two are there to be compared with it.
const (
	Score Kind = iota // least waiting first, then the farthest from being restored
	LRU               // the longest untouched, whatever the restore order says
	FIFO              // the longest in the buffer
)

// ParseKind reads a policy's name.
func ParseKind(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), true
		}
	}
	return 0, false
}

var kindNames = [...]string{"score", "lru", "fifo"}

func (k Kind) String() string { return kindNames[k] }

// Weights of the s-score. A gap outweighs whatever is not expected, which outweighs every expected restore; among what is
// not expected the longest untouched goes first.
const (
	gapWeight        = int64(1) << 42
	unexpectedWeight = int64(1) << 40
)

// Never is the p-score of what no waiting makes evictable.
const Never = int64(math.MaxInt64)

// Request describes the room that is wanted and the state of the world.
type Request struct {
	Size, Align int64
	Now         int64   // ns
	Count       int64   // the engine's count of operations, the clock of Touched and Born
	Heads       []int64 // by lane: the head of each restore order; distance = Seq - head
	Backlog     int64   // ns until a flush that were queued now would begin
	FlushRate   float64 // ns per byte of the link below; <= 0: there is no way down, Dirty fragments stay
	Floor       int64   // prefetch only: what is expected within this distance stays; below 0: no floor
	NoWait      bool    // only what is evictable now
	Break       bool    // demand only: Promised fragments may go too
	Limit       int     // fragments looked at, at the most; 0: all
	Start       fragment.ID
}

// Window is a run of neighbouring fragments whose bytes together make the room.
type Window struct {
	First, Last fragment.ID
	Wait        int64 // p-score: summed ns until its fragments are evictable
	Score       int64 // s-score
	Promises    int   // Promised fragments in it
}

// Choose returns the best window, or false when no run of fragments could make the room. Of equal windows the first one met is
// taken. The scan begins at Start (None: at the beginning) and wraps around; a window never does.
//
// Among all windows of consecutive fragments that hold the room it compares those from which no fragment at the end could be left out.
func Choose[O any](k Kind, t *fragment.Table[O], r *Request) (Window, bool) {
	s := scan[O]{table: t, scale: newScale(k, r), best: Window{First: fragment.None, Promises: math.MaxInt, Wait: Never, Score: math.MinInt64}}
	limit := r.Limit
	if limit <= 0 {
		limit = math.MaxInt
	}
	start := r.Start
	if start == fragment.None {
		start = t.First()
	}
	limit = s.run(start, fragment.None, limit)
	if start != t.First() && limit > 0 {
		s.run(t.First(), start, limit)
	}
	return s.best, s.best.First != fragment.None
}

type scan[O any] struct {
	scale
	table *fragment.Table[O]
	best  Window
}

// run slides the window over the fragments from first up to, not including, end, and returns what is left of the limit.
// A fragment that cannot go ends every window before it.
func (s *scan[O]) run(first, end fragment.ID, limit int) int {
	t := s.table
	i := first // the window begins here and ends before j; its sums:
	var wait, score, bytes int64
	promises := 0
	for j := first; j != end && j != fragment.None && limit > 0; limit-- {
		at, f := j, t.At(j)
		j = t.Next(j)
		m := &s.measures[f.Class&classMask]
		if m.never || m.expectable && f.Seq <= s.near(f.Lane) {
			i, wait, score, bytes, promises = j, 0, 0, 0, 0
			continue
		}
		p := int64(0)
		if m.waits {
			if s.best.Wait == 0 && s.waits != 0 && s.best.Promises <= m.promise && i == at && f.Size >= s.size+s.padding(f.Offset) {
				i = j // alone it would be enough, and cannot be better than what need not be waited for
				continue
			}
			p = max(f.ETA-s.now, 1)&m.flush + (s.begin+int64(float64(f.Size)*s.rate))&m.down
		}
		v := weigh(&s.scale, m, f)
		if i == at && f.Size >= s.size+s.padding(f.Offset) { // alone it is enough: so it is with most windows when sizes are alike
			if s.better(p, v, m.promise) {
				s.best = Window{First: at, Last: at, Wait: p, Score: v, Promises: m.promise}
			}
			i = j
			continue
		}
		wait, score, bytes, promises = wait+p, score+v, bytes+f.Size, promises+m.promise
		for i != j {
			f := t.At(i)
			pad := s.padding(f.Offset)
			if bytes < s.size+pad {
				break
			}
			if pad < f.Size && s.better(wait, score, promises) { // what lies in the padding only would go for nothing
				s.best = Window{First: i, Last: at, Wait: wait, Score: score, Promises: promises}
			}
			m := &s.measures[f.Class&classMask]
			wait -= max(f.ETA-s.now, 1)&m.flush + (s.begin+int64(float64(f.Size)*s.rate))&m.down
			score -= weigh(&s.scale, m, f)
			bytes, promises = bytes-f.Size, promises-m.promise
			i = t.Next(i)
		}
	}
	return limit
}

// better compares a window with the best so far: fewer broken promises, then (by Score) less waiting, then the higher s-score.
func (s *scan[O]) better(wait, score int64, promises int) bool {
	b := &s.best
	if promises != b.Promises {
		return promises < b.Promises
	}
	if wait &= s.waits; wait != b.Wait&s.waits {
		return wait < b.Wait&s.waits
	}
	return score > b.Score
}

const (
	classes   = 8 // a power of two above the last class, so that an index masked with classMask needs no check
	classMask = classes - 1
)

// measure is how fragments of one class are weighed.
type measure struct {
	never       bool // it cannot go
	expectable  bool // it can lie within the floor
	waits       bool
	promise     int   // 1: it is a promise
	flush, down int64 // all ones when the wait is that of a running, or of a future flush
	base, age   int64 // s-score of what nobody expects: base, and the staleness masked with age
}

// scale is a request, prepared for weighing one fragment after the other without branches that the classes decide.
type scale struct {
	measures    [classes]measure
	size, align int64
	mask        int64 // align-1 for a power of two, or else -1
	now, count  int64
	begin       int64
	rate        float64
	heads       []int64
	floor       int64
	kind        Kind
	waits       int64 // all ones when the policy compares waits
}

func newScale(k Kind, r *Request) scale {
	s := scale{
		size: r.Size, align: max(r.Align, 1), mask: -1, now: r.Now, count: r.Count, begin: r.Backlog + 1, rate: r.FlushRate, heads: r.Heads,
		floor: max(r.Floor, -1), kind: k,
	}
	if s.align&(s.align-1) == 0 {
		s.mask = s.align - 1
	}
	unexpected := int64(0)
	if k == Score {
		s.waits, unexpected = -1, unexpectedWeight
	}
	for c := range s.measures {
		s.measures[c] = measure{never: true, expectable: r.Floor >= 0, base: unexpected, age: -1}
	}
	m := &s.measures
	m[fragment.Gap] = measure{base: gapWeight}
	m[fragment.Free].never = false
	m[fragment.Flushing].never, m[fragment.Flushing].flush = r.NoWait, -1
	m[fragment.Dirty].never, m[fragment.Dirty].down = r.NoWait || r.FlushRate <= 0, -1
	m[fragment.Flushing].waits, m[fragment.Dirty].waits = true, true
	m[fragment.Promised].never, m[fragment.Promised].promise = !r.Break, 1
	return s
}

func (s *scale) padding(offset int64) int64 {
	if s.mask >= 0 {
		return -offset & s.mask
	}
	return fragment.Padding(offset, s.align)
}

// near is the last place of a restore order that lies within the floor.
func (s *scale) near(lane int32) int64 { return s.heads[lane] + s.floor }

// weigh gives the s-score.
func weigh[O any](s *scale, m *measure, f *fragment.Fragment[O]) int64 {
	if s.kind == Score && f.Seq != fragment.Unexpected {
		return max(f.Seq-s.heads[f.Lane], 0)
	}
	age := s.count - f.Touched
	if s.kind == FIFO {
		age = int64(uint32(s.count) - f.Born)
	}
	return m.base + age&m.age
}
