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

// Choose returns the best window, or false when no run of fragments could make the room.
// The scan begins at Start (None: at the beginning) and wraps around; a window never does.
func Choose[O any](k Kind, t *fragment.Table[O], r *Request) (Window, bool) {
	s := scan[O]{kind: k, table: t, req: r, best: Window{First: fragment.None}}
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
	kind  Kind
	table *fragment.Table[O]
	req   *Request
	best  Window
}

// run slides the window over the fragments from first up to, not including, end, and returns what is left of the limit.
// A fragment that cannot go ends every window before it.
func (s *scan[O]) run(first, end fragment.ID, limit int) int {
	var pSum, sSum, bytes int64
	promises := 0
	i := first
	for j := first; j != end && j != fragment.None && limit > 0; limit-- {
		f := s.table.At(j)
		p, w := s.weigh(f)
		j2 := s.table.Next(j)
		if p == Never {
			pSum, sSum, bytes, promises = 0, 0, 0, 0
			i, j = j2, j2
			continue
		}
		pSum, sSum, bytes = pSum+p, sSum+w, bytes+f.Size
		if f.Class == fragment.Promised {
			promises++
		}
		for i != fragment.None {
			fi := s.table.At(i)
			if bytes-fragment.Padding(fi.Offset, s.req.Align) < s.req.Size {
				break
			}
			s.consider(Window{First: i, Last: j, Wait: pSum, Score: sSum, Promises: promises})
			p, w := s.weigh(fi)
			pSum, sSum, bytes = pSum-p, sSum-w, bytes-fi.Size
			if fi.Class == fragment.Promised {
				promises--
			}
			if i == j {
				i = j2
				break
			}
			i = s.table.Next(i)
		}
		j = j2
	}
	return limit
}

func (s *scan[O]) consider(w Window) {
	b := &s.best
	switch {
	case b.First == fragment.None:
	case w.Promises != b.Promises:
		if w.Promises > b.Promises {
			return
		}
	case s.kind == Score && w.Wait != b.Wait:
		if w.Wait > b.Wait {
			return
		}
	case w.Score <= b.Score:
		return
	}
	s.best = w
}

// weigh gives the fragment's p-score (ns until it is evictable, or Never) and s-score.
func (s *scan[O]) weigh(f *fragment.Fragment[O]) (wait, score int64) {
	r := s.req
	switch f.Class {
	case fragment.Gap:
		return 0, gapWeight
	case fragment.Free:
	case fragment.Flushing:
		wait = max(f.ETA-r.Now, 1)
	case fragment.Dirty:
		if r.FlushRate <= 0 {
			return Never, 0
		}
		wait = r.Backlog + int64(float64(f.Size)*r.FlushRate) + 1
	case fragment.Promised:
		if !r.Break {
			return Never, 0
		}
	default:
		return Never, 0
	}
	if wait > 0 && r.NoWait {
		return Never, 0
	}
	expected := f.Seq != fragment.Unexpected
	distance := int64(0)
	if expected {
		distance = max(f.Seq-r.Heads[f.Lane], 0)
		if r.Floor >= 0 && distance <= r.Floor {
			return Never, 0
		}
	}
	switch {
	case s.kind == LRU:
		return wait, r.Count - f.Touched
	case s.kind == FIFO:
		return wait, r.Count - f.Born
	case expected:
		return wait, distance
	default:
		return wait, unexpectedWeight + r.Count - f.Touched
	}
}
