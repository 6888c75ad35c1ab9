package evict

import (
	"math/bits"

	"velocpy/gocore/policy/fragment"
)

// The functions here fill in the ends of fragments, and the sums of their waits or promises. Those marked noinline are loops that lose their registers,
// and half of their speed, inside a caller.

// sumPromises fills in the promises of fragments, the first of which is at a place in the lists.
func (s *scan[O]) sumPromises(entries []fragment.Entry, first int) {
	w, n := &s.window, 0
	loads, promises, sum := w.loads[first:w.end], w.promises[first:w.end], w.promises[first-1]
	if class := entries[0].Class & classMask; s.stays[class] == 0 {
		n = sumAlike(entries, loads, sum, s.promises[class], promises)
		sum = promises[n-1]
	}
	s.countPromises(entries[n:], loads[n:], sum, promises[n:])
}

// countPromises is sumPromises for fragments of any class, beginning at a sum. It has no branch that depends on a fragment.
//
//go:noinline
func (s *scale) countPromises(entries []fragment.Entry, loads []load, sum int64, promises []int64) {
	after := entries[1:]
	entries, loads, promises = entries[:len(after)], loads[:len(after)], promises[:len(after)]
	for i := range after {
		class := entries[i].Class & classMask
		sum += s.promises[class]
		loads[i].end, promises[i] = after[i].Offset|s.stays[class], sum
	}
}

// sumAlike fills in the ends and the sums of the fragments before the first of another class, and returns how many there are. Each adds the same number
// to the sum.
//
//go:noinline
func sumAlike(entries []fragment.Entry, loads []load, sum, each int64, sums []int64) int {
	class, after, sums := entries[0].Class, entries[1:][:len(loads)], sums[:len(loads)]
	for i := range loads {
		if entries[i].Class != class {
			return i
		}
		sum += each
		loads[i].end, sums[i] = after[i].Offset, sum
	}
	return len(loads)
}

// sumWaits fills in the waits of fragments, the first of which is at a place in the lists.
func (s *scan[O]) sumWaits(ids []fragment.ID, entries []fragment.Entry, first int) {
	w := &s.window
	loads, waits, sum := w.loads[first:][:len(ids)], w.waits[first:][:len(ids)], w.waits[first-1]
	n := s.sumWaitsAlike(ids, entries, loads, sum, waits)
	if n == len(ids) {
		return
	}
	if n > 0 {
		sum = waits[n-1]
	}
	ids, waits = ids[n:], waits[n:]
	t, now := s.table, s.now
	for flushing := s.findWaits(entries[n:], loads[n:], waits); flushing != 0; flushing &= flushing - 1 {
		i := bits.TrailingZeros64(flushing)
		waits[i] = max(t.At(ids[i]).ETA-now, 1)
	}
	accumulate(sum, waits)
}

// sumWaitsAlike is sumWaits for the fragments before the first of another class, and returns how many there are. It passes none if a look at three
// shows that classes differ, or if they stay.
func (s *scan[O]) sumWaitsAlike(ids []fragment.ID, entries []fragment.Entry, loads []load, sum int64, waits []int64) int {
	class := entries[0].Class
	if s.stays[class&classMask] != 0 || entries[len(ids)/2].Class != class || entries[len(ids)-1].Class != class {
		return 0
	}
	switch class {
	case fragment.Flushing:
		return s.sumFlushing(ids, entries, loads, sum, waits)
	case fragment.Dirty:
		return s.sumDirty(entries, loads, sum, waits)
	}
	return sumAlike(entries, loads, sum, 0, waits)
}

// sumDirty is sumWaitsAlike for fragments that are Dirty.
//
//go:noinline
func (s *scale) sumDirty(entries []fragment.Entry, loads []load, sum int64, waits []int64) int {
	wait, rate, after, waits := s.begin, s.rate, entries[1:][:len(loads)], waits[:len(loads)]
	begin := entries[0].Offset
	for i := range loads {
		if entries[i].Class != fragment.Dirty {
			return i
		}
		end := after[i].Offset
		sum += wait + int64(float64(end-begin)*rate)
		loads[i].end, waits[i] = end, sum
		begin = end
	}
	return len(loads)
}

// sumFlushing is sumWaitsAlike for fragments that are Flushing.
func (s *scan[O]) sumFlushing(ids []fragment.ID, entries []fragment.Entry, loads []load, sum int64, waits []int64) int {
	t, now := s.table, s.now
	entries, loads, waits = entries[:len(ids)+1], loads[:len(ids)], waits[:len(ids)]
	for i, id := range ids {
		if entries[i].Class != fragment.Flushing {
			return i
		}
		sum += max(t.At(id).ETA-now, 1)
		loads[i].end, waits[i] = entries[i+1].Offset, sum
	}
	return len(ids)
}

// findWaits fills in the wait of each Dirty fragment, and 0 for the others. It returns a bit for each fragment, which is set if it is Flushing: then its
// wait is not in its entry. The only branch is for sizes, which may be equal.
//
//go:noinline
func (s *scale) findWaits(entries []fragment.Entry, loads []load, waits []int64) (flushing uint64) {
	after, waits := entries[1:][:len(loads)], waits[:len(loads)]
	entries = entries[:len(loads)]
	size, wait := int64(-1), int64(0)
	for i := range entries {
		class, end := entries[i].Class&classMask, after[i].Offset
		loads[i].end = end | s.stays[class]
		if end -= entries[i].Offset; end != size {
			size, wait = end, s.begin+int64(float64(end)*s.rate)
		}
		waits[i] = wait & s.dirty[class]
		flushing = flushing>>1 | s.flushing[class]
	}
	return flushing >> (64 - len(loads))
}

// accumulate replaces numbers by the sums up to each, beginning at a sum.
//
//go:noinline
func accumulate(sum int64, numbers []int64) {
	for i, n := range numbers {
		sum += n
		numbers[i] = sum
	}
}
