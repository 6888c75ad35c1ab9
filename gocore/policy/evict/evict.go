// Package evict chooses which neighbouring fragments of a cache buffer make room for a checkpoint (Maurya et al., HPDC'23, section 4.2, algorithm 1).
// A window of consecutive fragments slides over the allocation table. Both of its scores are updated as it moves, so that one decision costs
// O(fragments scanned).
//
// The package is pure: time, bandwidth and the heads of the restore orders come with the request.
package evict

import (
	"math"

	"velocpy/gocore/policy/fragment"
)

// Kind is an eviction policy.
type Kind uint8

// The policies. Score is the paper's; the other two are for comparison.
const (
	Score Kind = iota // least waiting first, then the restore farthest ahead
	LRU               // the longest untouched, regardless of the restore order
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

// Weights of the s-score. A gap outweighs every unexpected fragment, which outweighs every expected restore. Among unexpected fragments the longest
// untouched is evicted first.
const (
	gapWeight        = int64(1) << 42
	unexpectedWeight = int64(1) << 40
)

// LongestInterval is the largest weight of an interval: a restore 2^24 of them ahead still counts as nearer than an unexpected one.
const LongestInterval = int64(1) << 15

const farthest = int64(1) << 24 // intervals; larger distances are capped here

// Distance is how far ahead a restore is: the number of intervals before it, times the weight of each.
func Distance(intervals, each int64) int64 { return min(max(intervals, 0), farthest) * each }

// Never is the p-score of fragments that no waiting makes evictable.
const Never = int64(math.MaxInt64)

// Request describes the room needed and the state of the engine.
type Request struct {
	Size, Align int64
	Now         int64   // ns
	Count       int64   // the engine's count of operations, the clock of Touched and Born
	Heads       []int64 // by lane: position of the head of each restore order; Expected - head is the number of intervals until a restore
	Intervals   []int64 // by lane: weight of an interval, from 1 to LongestInterval, so that distances of several orders compare
	Backlog     int64   // ns until a flush queued now would begin
	FlushRate   float64 // ns per byte of the link below; <= 0: no flush is possible, Dirty fragments stay
	Floor       int64   // prefetch only: fragments expected within this Distance stay; below 0: no floor
	NoWait      bool    // consider only fragments that are evictable now
	Break       bool    // demand only: Promised fragments may go too
	Limit       int     // maximum number of fragments scanned; 0: all
	Start       fragment.ID
	Barred      func(fragment.ID) bool // tells that a Dirty fragment cannot be flushed, so that it stays; nil: none
}

// Window is a run of neighbouring fragments that together make the room.
type Window struct {
	First, Last fragment.ID
	Wait        int64 // p-score: summed ns until its fragments are evictable
	Score       int64 // s-score
	Promises    int   // Promised fragments in it
}

// Choose returns the best window within the table's capacity, or false if no run of fragments could make the room. Of equal windows it returns the
// first. The scan begins at Start (None: at the beginning) and wraps around; a window never does.
//
// It compares the windows of consecutive fragments that hold the room and from which no fragment at an end could be left out.
//
// It ranks the table by the policy's order: a table used with one policy only is ranked once.
func Choose[O any](k Kind, t *fragment.Table[O], r *Request) (Window, bool) {
	// Declared here: inside the window they would escape to the heap.
	var (
		ids      [some]fragment.ID
		loads    [some]load
		waits    [some]int64
		promises [some]int64
		lanes    [fewLanes]lane
	)
	t.RankBy(k.rank())
	s := scan[O]{table: t, scale: newScale(k, r, lanes[:0]), window: newSliding(r)}
	s.window.ids, s.window.loads, s.window.waits, s.window.promises = ids[:], loads[:], waits[:], promises[:]
	if t.Aligned(s.window.mask + 1) {
		s.window.mask = 0
	}
	limit := r.Limit
	if limit <= 0 {
		limit = math.MaxInt
	}
	start := r.Start
	if start == fragment.None {
		start = t.First()
	}
	if start == fragment.None {
		return s.window.best, false
	}
	limit = s.run(start, t.Capacity(), limit)
	if start != t.First() && limit > 0 {
		s.run(t.First(), min(t.At(start).Offset, t.Capacity()), limit)
	}
	best := s.window.best
	if best.First == fragment.None {
		return best, false
	}
	best.Wait = s.waitFor(best)
	return best, true
}

// rank is the order that the policy compares by.
func (k Kind) rank() fragment.Rank {
	switch k {
	case LRU:
		return fragment.ByUse
	case FIFO:
		return fragment.ByStay
	}
	return fragment.ByRestore
}

type scan[O any] struct {
	table *fragment.Table[O]
	scale
	window sliding
	streak streak
}

// run scans the fragments from first up to offset end, and returns the rest of the limit. Here and below, fragments are passed as two lists, with one
// more entry than IDs: combined in a struct they would be copied through memory.
func (s *scan[O]) run(first fragment.ID, end int64, limit int) int {
	s.window.restart(s.table.At(first).Offset)
	for at, i := s.table.LeafOf(first); at != fragment.None && limit > 0; i = 0 {
		ids, entries, next := s.table.Leaf(at)
		n := min(len(ids)-i, limit)
		for n > 0 && entries[i+n].Offset > end {
			n--
		}
		if n == 0 {
			break
		}
		s.look(ids[i:i+n], entries[i:i+n+1])
		at, limit = next, limit-n
	}
	return limit
}

func (s *scan[O]) look(ids []fragment.ID, entries []fragment.Entry) {
	n := 0
	if s.window.from == s.window.to && s.simple() {
		if s.open {
			n = s.aloneOpen(ids, entries)
		}
		if !s.open {
			n += s.alone(ids[n:], entries[n:])
		}
	}
	if n < len(ids) {
		s.pass(ids[n:], entries[n:])
	}
}

// simple tells whether the entries alone show which single fragments can be evicted.
func (s *scan[O]) simple() bool {
	return s.window.mask == 0 && s.kind != FIFO && s.floor < 0 && s.barred == nil
}

// alone passes fragments that cannot be evicted or are large enough by themselves, at less cost than a window. Most fragments are so when sizes are
// equal. The window is empty before and after. It returns the number of fragments before the first that is neither.
func (s *scan[O]) alone(ids []fragment.ID, entries []fragment.Entry) int {
	w := &s.window
	size, best := w.size, w.best.Score
	entries = entries[:len(ids)+1]
	begin := entries[0].Offset
	for i := range ids {
		e := &entries[i]
		end := entries[i+1].Offset
		if s.stays[e.Class&classMask] == 0 {
			if end-begin < size {
				w.restart(begin)
				return i
			}
			if score := s.lanes[e.Lane].score(e.Value); score > best {
				best = score
				w.best = Window{First: ids[i], Last: ids[i], Score: score}
			}
		}
		begin = end
	}
	w.restart(begin)
	return len(ids)
}

// aloneOpen is alone while promises and waits count. It also returns at the first fragment without either: from then on only scores differ.
func (s *scan[O]) aloneOpen(ids []fragment.ID, entries []fragment.Entry) int {
	w, best, dirty := &s.window, s.window.best, s.begin
	entries = entries[:len(ids)+1]
	begin := entries[0].Offset
	for i := range ids {
		e := &entries[i]
		bytes := entries[i+1].Offset - begin
		begin += bytes
		if s.stays[e.Class&classMask] != 0 {
			continue
		}
		if bytes < w.size {
			w.best = best
			w.restart(begin - bytes)
			return i
		}
		wait, promises := int64(0), 0
		switch e.Class {
		case fragment.Promised:
			promises = 1
		case fragment.Flushing:
			wait = max(s.table.At(ids[i]).ETA-s.now, 1)
		case fragment.Dirty:
			wait = dirty + int64(float64(bytes)*s.rate)
		}
		if s.kind != Score {
			wait = 0
		}
		if promises > best.Promises || promises == best.Promises && wait > best.Wait {
			continue
		}
		if score := s.lanes[e.Lane].score(e.Value); promises < best.Promises || wait < best.Wait || score > best.Score {
			best = Window{First: ids[i], Last: ids[i], Wait: wait, Promises: promises, Score: score}
			if promises == 0 && wait == 0 {
				w.best = best
				s.scale.settle(0)
				w.restart(begin)
				return i + 1
			}
		}
	}
	w.best = best
	w.restart(begin)
	return len(ids)
}

// pass moves the window over the fragments behind it. It weighs them, then compares windows, in small loops.
func (s *scan[O]) pass(ids []fragment.ID, entries []fragment.Entry) {
	w := &s.window
	w.take(ids)
	if n := s.alike(ids, entries); n > 0 {
		ids, entries = ids[n:], entries[n:]
	}
	if len(ids) == 0 {
		return
	}
	s.streak.end(entries, w.size)
	lazy := s.open && w.mask == 0
	s.fill(ids, entries, lazy)
	switch {
	case lazy:
		s.passLazily(ids, entries)
	case w.mask == 0:
		w.passAligned()
	case s.open || w.mask < 0:
		w.passOpen()
	default:
		w.pass()
	}
	s.settle()
}

// fill fills in the lists for the fragments behind the window. If lazy, it fills in only what windows differ in first: promises, if any may be broken,
// or else waits.
func (s *scan[O]) fill(ids []fragment.ID, entries []fragment.Entry, lazy bool) {
	w, first := &s.window, s.window.end-len(ids)
	loads := w.loads[first:w.end]
	if s.breaks {
		s.sumPromises(entries, first)
	}
	if s.open && s.kind == Score && !(lazy && s.breaks) {
		s.sumWaits(ids, entries, first)
	}
	if !lazy {
		s.weigh(entries, w.loads[first-1].sum, loads)
	}
	if s.floor >= 0 {
		s.keep(ids, entries, loads)
	}
	if s.barred != nil {
		s.bar(ids, entries, loads)
	}
}

// passLazily moves the window while promises and waits count, when all offsets are aligned. Few windows break as few promises as the best so far, or
// wait as short: only the fragments of these are weighed. If there are more such windows, the rest is passed as if offsets were not aligned.
func (s *scan[O]) passLazily(ids []fragment.ID, entries []fragment.Entry) {
	w, weighed := &s.window, s.window.to
	for range few {
		if s.breaks {
			w.skip(w.promises[:w.end], int64(w.best.Promises))
		} else {
			w.skip(w.waits[:w.end], w.best.Wait)
		}
		if w.to == w.end {
			s.weighLate(ids, entries, w.from, w.end, weighed) // later windows begin with these
			return
		}
		weighed = s.weighLate(ids, entries, w.from, w.to+1, weighed)
		w.compare(w.from, w.to)
		w.from++
	}
	if rest := w.end - max(weighed, w.from); rest > 0 {
		s.fill(ids[len(ids)-rest:], entries[len(ids)-rest:], false)
	}
	w.passOpen()
}

// weighLate weighs the fragments from one place up to, but not including, another, except those before the place weighed. It returns the place before
// which they are weighed now. ids and entries are of the last fragments in the lists; those before these are weighed already.
func (s *scan[O]) weighLate(ids []fragment.ID, entries []fragment.Entry, from, to, weighed int) int {
	first := max(weighed, from)
	if first >= to {
		return weighed
	}
	w, begin := &s.window, s.window.end-len(ids)
	ids, entries = ids[first-begin:to-begin], entries[first-begin:to-begin+1]
	if s.breaks && s.kind == Score {
		s.sumWaits(ids, entries, first)
	}
	s.weigh(entries, w.loads[first-1].sum, w.loads[first:to])
	return to
}

// settle reduces what windows differ in, once one of them has no promises, and again once one needs no waiting either. It removes the fragments that
// then stay from the window, and all before them.
func (s *scan[O]) settle() {
	w := &s.window
	if !s.open || w.best.First == fragment.None || w.best.Promises > 0 || !s.breaks && w.best.Wait > 0 {
		return
	}
	s.scale.settle(w.best.Wait)
	for w.promises[w.to-1] != w.promises[w.from-1] || !s.open && w.waits[w.to-1] != w.waits[w.from-1] {
		w.from++
	}
	clear(w.promises)
	if !s.open {
		clear(w.waits)
	}
}

// waitFor is the p-score of a window.
func (s *scan[O]) waitFor(w Window) (sum int64) {
	for id := w.First; ; id = s.table.Next(id) {
		f := s.table.At(id)
		sum += s.wait(f.Class, f.Size, f.ETA)
		if id == w.Last {
			return sum
		}
	}
}
