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

	ids    []fragment.ID
	loads  []load
	delays []delay
}

const some = 256 // length of the lists without an allocation

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
	w.loads[0], w.delays[0] = load{end: offset}, delay{}
}

// begin is the start of the room in a window that begins at offset.
func (w *sliding) begin(offset int64) int64 {
	if w.mask >= 0 {
		return (offset + w.mask) &^ w.mask
	}
	return offset + fragment.Padding(offset, w.align)
}

// take appends fragments behind the window and returns the list of their loads, to be filled in.
func (w *sliding) take(ids []fragment.ID) []load {
	if len(w.ids)-w.end < len(ids) {
		w.compact(len(ids))
	}
	copy(w.ids[w.end:], ids)
	w.end += len(ids)
	return w.loads[w.end-len(ids) : w.end]
}

// compact moves the window to the beginning of the lists, and enlarges them if n more do not fit behind it.
func (w *sliding) compact(n int) {
	before := w.from - 1 // it ends where the window begins
	ids, loads, delays := w.ids, w.loads, w.delays
	if need := w.end - before + n; need > len(ids) {
		w.ids, w.loads, w.delays = make([]fragment.ID, 2*need), make([]load, 2*need), make([]delay, 2*need)
	}
	copy(w.ids, ids[before:w.end])
	copy(w.loads, loads[before:w.end])
	copy(w.delays, delays[before:w.end])
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

// passOpen is pass that compares promises and waiting first.
func (w *sliding) passOpen() {
	loads, delays := w.loads[:w.end], w.delays[:w.end]
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
			if begin < after && w.better(delays[to].since(delays[from-1]), l.sum-loads[from-1].sum) {
				w.best.First, w.best.Last = w.ids[from], w.ids[to]
			}
			begin = w.begin(after)
		}
	}
	w.from, w.to = from, w.end
}

// passOpenAligned is passOpen when all offsets are aligned. As passAligned, it has few variables.
func (w *sliding) passOpenAligned() {
	loads, delays := w.loads[:w.end], w.delays[:w.end]
	from, size := w.from, w.size
	promises, wait, score := w.best.Promises, w.best.Wait, w.best.Score
	before, held := loads[from-1], delays[from-1] // the start of the window, the scores before it, and the delays
	for to := w.to; to < len(loads); to++ {
		l := &loads[to]
		if l.end < 0 {
			l.end &= math.MaxInt64
			from, before, held = to+1, *l, delays[to]
			continue
		}
		last, sum, delayed := l.end-size, l.sum, delays[to]
		if last < before.end {
			continue
		}
		for {
			p, d := delayed.promises-held.promises, delayed.wait-held.wait
			if p < promises || p == promises && (d < wait || d == wait && sum-before.sum > score) {
				promises, wait, score = p, d, sum-before.sum
				w.best = Window{First: w.ids[from], Last: w.ids[to], Wait: wait, Promises: promises, Score: score}
			}
			before, held = loads[from], delays[from]
			if from++; last < before.end {
				break
			}
		}
	}
	w.from, w.to = from, w.end
}

// better compares a window with the best so far and replaces it if better: fewer broken promises, then less waiting, then the higher s-score.
func (w *sliding) better(d delay, sum int64) bool {
	b := &w.best
	switch {
	case d.promises != b.Promises:
		if d.promises > b.Promises {
			return false
		}
	case d.wait != b.Wait:
		if d.wait > b.Wait {
			return false
		}
	case sum <= b.Score:
		return false
	}
	b.Promises, b.Wait, b.Score = d.promises, d.wait, sum
	return true
}

// settle removes the fragments that need waiting or are promised from the window, and all before them.
func (w *sliding) settle() {
	for w.delays[w.to-1] != w.delays[w.from-1] {
		w.from++
	}
}
