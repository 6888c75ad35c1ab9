package evict

import (
	"math"

	"velocpy/gocore/policy/fragment"
)

// load is a fragment's part in a window.
type load struct {
	end int64 // end of the fragment and start of the next; the sign bit is set if it cannot be evicted
	sum int64 // the s-scores of the fragments up to this one
}

// sliding is the window as it moves over weighed fragments: from fragment from up to, but not including, to. The lists hold the fragments in it and
// before it, so that a fragment that leaves is not weighed again.
type sliding struct {
	best        Window
	size, align int64
	mask        int64 // align-1 for a power of two, or else -1

	from, to, end int // places in the lists; they begin at 1

	ids   []fragment.ID
	loads []load

	// The sums of the waits and of the promises of the fragments up to each. They are 0 where the policy or the scan does not count them.
	waits, promises []int64
}

const (
	some = 256 // length of the lists without an allocation
	few  = 8   // windows among the fragments of a leaf that may be better than the best so far
)

func newSliding(r *Request) sliding {
	w := sliding{
		best: Window{First: fragment.None, Promises: math.MaxInt, Wait: Never, Score: math.MinInt64},
		size: max(r.Size, 1), align: max(r.Align, 1), mask: -1,
	}
	if w.align&(w.align-1) == 0 {
		w.mask = w.align - 1
	}
	return w
}

// restart empties the window; the next fragment begins at offset.
func (w *sliding) restart(offset int64) {
	w.from, w.to, w.end = 1, 1, 1
	w.loads[0], w.waits[0], w.promises[0] = load{end: offset}, 0, 0
}

// begin is the start of the room in a window that begins at offset.
func (w *sliding) begin(offset int64) int64 {
	if w.mask >= 0 {
		return (offset + w.mask) &^ w.mask
	}
	return offset + fragment.Padding(offset, w.align)
}

// take appends fragments behind the window. All but their IDs is to be filled in.
func (w *sliding) take(ids []fragment.ID) {
	if len(w.ids)-w.end < len(ids) {
		w.compact(len(ids))
	}
	copy(w.ids[w.end:], ids)
	w.end += len(ids)
}

// compact moves the window to the beginning of the lists, and enlarges them if n more do not fit behind it.
func (w *sliding) compact(n int) {
	before := w.from - 1 // it ends where the window begins
	old := *w
	if need := w.end - before + n; need > len(w.ids) {
		w.ids, w.loads = make([]fragment.ID, 2*need), make([]load, 2*need)
		w.waits, w.promises = make([]int64, 2*need), make([]int64, 2*need)
	}
	copy(w.ids, old.ids[before:w.end])
	copy(w.loads, old.loads[before:w.end])
	copy(w.waits, old.waits[before:w.end])
	copy(w.promises, old.promises[before:w.end])
	w.from, w.to, w.end = 1, w.to-before, w.end-before
}

// passAligned moves the window over weighed fragments and compares scores, when all offsets are aligned. It has few variables: variables that get no
// register make the loop twice as slow.
func (w *sliding) passAligned() {
	loads := w.loads[:w.end]
	from, size, best := w.from, w.size, w.best.Score
	before := loads[from-1] // the start of the window, and the scores before it
	for to := w.to; to < len(loads); to++ {
		l := &loads[to]
		if l.end < 0 {
			l.end &= math.MaxInt64
			from, before = to+1, *l
			continue
		}
		last, sum := l.end-size, l.sum
		if last < before.end {
			continue
		}
		for { // the condition at the end costs fewer jumps
			if sum-before.sum > best {
				best = sum - before.sum
				w.best = Window{First: w.ids[from], Last: w.ids[to], Score: best}
			}
			before = loads[from]
			if from++; last < before.end {
				break
			}
		}
	}
	w.from, w.to = from, w.end
}

// pass moves the window over weighed fragments and compares scores, when the alignment is a power of two.
func (w *sliding) pass() {
	loads := w.loads[:w.end]
	from, mask, size, best := w.from, w.mask, w.size, w.best.Score
	begin := (loads[from-1].end + mask) &^ mask
	for to := w.to; to < len(loads); to++ {
		end := loads[to].end
		if end < 0 {
			end &= math.MaxInt64
			loads[to].end = end
			from, begin = to+1, (end+mask)&^mask
			continue
		}
		for end-size >= begin {
			sum := loads[to].sum - loads[from-1].sum
			after := loads[from].end
			if sum > best && begin < after { // a fragment inside the padding would be evicted for nothing
				best = sum
				w.best = Window{First: w.ids[from], Last: w.ids[to], Score: sum}
			}
			from++
			begin = (after + mask) &^ mask
		}
	}
	w.from, w.to = from, w.end
}

// passOpen is pass that compares promises and waiting first, with any alignment.
func (w *sliding) passOpen() {
	loads := w.loads[:w.end]
	from, size := w.from, w.size
	begin := w.begin(loads[from-1].end)
	for to := w.to; to < len(loads); to++ {
		l := &loads[to]
		if l.end < 0 {
			l.end &= math.MaxInt64
			from, begin = to+1, w.begin(l.end)
			continue
		}
		for end := l.end; end-size >= begin; from++ {
			after := loads[from].end
			if begin < after {
				w.compare(from, to)
			}
			begin = w.begin(after)
		}
	}
	w.from, w.to = from, w.end
}

// skip moves the window, when all offsets are aligned, until it holds the room and the difference of these sums in it is at most the one given: it then
// consists of the fragments from from to to, inclusive. If there is no such place, to is end. As passAligned, it has few variables.
func (w *sliding) skip(sums []int64, most int64) {
	loads, size := w.loads[:len(sums)], w.size
	from, to := w.from, w.to
	begin, before := loads[from-1].end, sums[from-1]
	for ; to < len(loads); to++ {
		last := loads[to].end
		if last < 0 {
			begin, before = last&math.MaxInt64, sums[to]
			loads[to].end = begin
			from = to + 1
			continue
		}
		if last -= size; last < begin {
			continue
		}
		for sum := sums[to]; ; {
			if sum-before <= most {
				w.from, w.to = from, to
				return
			}
			begin, before = loads[from].end, sums[from]
			if from++; last < begin {
				break
			}
		}
	}
	w.from, w.to = from, to
}

// compare replaces the best window by the one from one fragment to another, if that is better: fewer broken promises, then less waiting, then the
// higher s-score.
func (w *sliding) compare(from, to int) {
	b := &w.best
	promises, wait, score := int(w.promises[to]-w.promises[from-1]), w.waits[to]-w.waits[from-1], w.loads[to].sum-w.loads[from-1].sum
	switch {
	case promises != b.Promises:
		if promises > b.Promises {
			return
		}
	case wait != b.Wait:
		if wait > b.Wait {
			return
		}
	case score <= b.Score:
		return
	}
	*b = Window{First: w.ids[from], Last: w.ids[to], Promises: promises, Wait: wait, Score: score}
}
