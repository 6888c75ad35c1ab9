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
	var ( // here, not in the window itself: they would not stay on the stack
		ids    [some]fragment.ID
		loads  [some]load
		delays [some]delay
	)
	s := scan[O]{table: t, scale: newScale(k, r), window: newSliding(r)}
	s.window.ids, s.window.loads, s.window.delays = ids[:], loads[:], delays[:]
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
	best := s.window.best
	if best.First == fragment.None {
		return best, false
	}
	best.Wait = s.waitFor(best)
	return best, true
}

type scan[O any] struct {
	scale
	table  *fragment.Table[O]
	window sliding
}

// run looks at the fragments from first up to, not including, end, and returns what is left of the limit.
func (s *scan[O]) run(first, end fragment.ID, limit int) int {
	if first == fragment.None {
		return limit
	}
	w := &s.window
	w.restart(s.table.At(first).Offset)
	for id := first; id != end && id != fragment.None && limit > 0; {
		var n int
		space := w.space()
		n, id = s.table.List(id, end, space[:min(len(space), limit)])
		limit -= n
		if ids := space[:n]; w.from < w.to {
			s.pass(ids)
		} else if rest := s.alone(ids); len(rest) > 0 {
			s.pass(w.space()[:copy(w.space(), rest)])
		}
	}
	return limit
}

// alone passes fragments each of which cannot go or is large enough alone, as most are when sizes are alike, at less cost than a window's. The
// window is empty before and after. It returns those from the first on that is neither.
func (s *scan[O]) alone(ids []fragment.ID) (rest []fragment.ID) {
	w := &s.window
	for i, id := range ids {
		f := s.table.At(id)
		m := &s.measures[f.Class&classMask]
		if m.stays != 0 || s.floor >= 0 && near(&s.scale, f) {
			continue
		}
		if s.open || f.Offset+f.Size-w.begin(f.Offset) < w.size {
			w.restart(f.Offset)
			return ids[i:]
		}
		if score := score(&s.scale, m, f); score > w.best.Score {
			w.best = Window{First: id, Last: id, Score: score}
		}
	}
	return nil
}

// pass moves the window over fragments listed behind it: it weighs all of them, then compares windows, in two small loops of which only the first
// waits for memory.
func (s *scan[O]) pass(ids []fragment.ID) {
	w := &s.window
	before := w.loads[w.end-1].sum
	weigh(&s.scale, s.table, ids, before, w.take(len(ids)))
	if s.open || w.mask < 0 {
		s.passOpen(ids)
	} else {
		w.pass()
	}
}

// passOpen moves the window while promises and waits count, until there is a window without any: from then on what waits or is promised is
// as good as held, and only scores differ.
func (s *scan[O]) passOpen(ids []fragment.ID) {
	w := &s.window
	delays(&s.scale, s.table, ids, w.delays[w.to:])
	w.passOpen()
	if best := &w.best; best.First != fragment.None && best.Wait == 0 && best.Promises == 0 {
		s.settle()
		w.settle()
	}
}

// waitFor is the p-score of a window.
func (s *scan[O]) waitFor(w Window) (sum int64) {
	for id := w.First; ; id = s.table.Next(id) {
		f := s.table.At(id)
		sum += wait(&s.scale, f)
		if id == w.Last {
			return sum
		}
	}
}
