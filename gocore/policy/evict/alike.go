package evict

import (
	"math"

	"velocpy/gocore/policy/fragment"
)

// streak describes the last fragments that the scan has passed: neighbours of one class and one size. While a streak continues, each window has the
// same number of fragments and the same delay. So only scores are compared, and the window's ends need no search.
type streak struct {
	class fragment.Class
	size  int64
	count int // its fragments that are in the window, or at least need
	need  int // how many fragments of this size make the room
}

// alike passes the fragments that continue the streak, and returns their number. The window keeps all but one of the fragments that it needs, as pass
// leaves it.
func (s *scan[O]) alike(ids []fragment.ID, entries []fragment.Entry, loads []load) int {
	w, r := &s.window, &s.streak
	if w.to-w.from != r.need-1 || r.count < r.need-1 || !s.uniform(r.class) {
		return 0
	}
	if r.class == fragment.Flushing && s.open && s.kind == Score {
		return s.alikeFlushing(ids, entries, loads)
	}
	each := s.delayOf(r.class, r.size)
	all := delay{each.wait * int64(r.need), each.promises * r.need}
	sum, best := w.loads[w.to-1].sum, w.threshold(all)
	n, last := s.compare(entries[:len(ids)+1], loads, w.loads[w.to-r.need:w.end], sum, best)
	if last >= 0 {
		w.best = Window{
			First: w.ids[w.to+last-r.need+1], Last: ids[last],
			Wait: all.wait, Promises: all.promises, Score: loads[last].sum - w.loads[w.to+last-r.need].sum,
		}
	}
	r.count += n
	w.advance(n, each)
	if s.open && last >= 0 && all == (delay{}) {
		s.settle()
	}
	return n
}

// compare weighs fragments as long as they continue the streak. before begins with the load before the first window. It returns the number of weighed
// fragments, and the last fragment of the first window with the highest score above best, or -1.
func (s *scan[O]) compare(entries []fragment.Entry, loads, before []load, sum, best int64) (n, last int) {
	class, size, lanes := s.streak.class, s.streak.size, s.lanes
	loads, before = loads[:len(entries)-1], before[:len(entries)-1]
	last = -1
	for i := range loads {
		e := &entries[i]
		end := entries[i+1].Offset
		if e.Class != class || end-e.Offset != size {
			return i, last
		}
		sum += lanes[e.Lane].score(e.Value)
		loads[i] = load{end: end, sum: sum}
		if score := sum - before[i].sum; score > best {
			best, last = score, i
		}
	}
	return len(loads), last
}

// alikeFlushing is alike for fragments with individual waits.
func (s *scan[O]) alikeFlushing(ids []fragment.ID, entries []fragment.Entry, loads []load) int {
	w, need := &s.window, s.streak.need
	n, last := s.compareWaits(ids, entries[:len(ids)+1], loads, w.to-need)
	if last >= 0 {
		at := w.to + last
		w.best = Window{First: w.ids[at-need+1], Last: ids[last], Wait: w.delays[at].since(w.delays[at-need]).wait, Score: loads[last].sum - w.loads[at-need].sum}
	}
	s.streak.count += n
	w.from, w.to = w.from+n, w.to+n
	return n
}

// compareWaits is compare for fragments that are Flushing. The first window begins behind place first of the lists.
func (s *scan[O]) compareWaits(ids []fragment.ID, entries []fragment.Entry, loads []load, first int) (n, last int) {
	w, class, size := &s.window, s.streak.class, s.streak.size
	sum, delayed := w.loads[w.to-1].sum, w.delays[w.to-1]
	best, least := w.best.Score, w.best.Wait
	if w.best.Promises > 0 {
		best, least = math.MinInt64, math.MaxInt64
	}
	before, waited := w.loads[first:][:len(ids)], w.delays[first:][:len(ids)]
	delays := w.delays[w.to:][:len(ids)]
	loads, last = loads[:len(ids)], -1
	for i, id := range ids {
		e := &entries[i]
		end := entries[i+1].Offset
		if e.Class != class || end-e.Offset != size {
			return i, last
		}
		sum += s.lanes[e.Lane].score(e.Value)
		delayed.wait += max(s.table.At(id).ETA-s.now, 1)
		loads[i], delays[i] = load{end: end, sum: sum}, delayed
		wait, score := delayed.wait-waited[i].wait, sum-before[i].sum
		if wait < least || wait == least && score > best {
			least, best, last = wait, score, i
		}
	}
	return len(ids), last
}

// uniform tells whether fragments of the class can be evicted, and differ only by their delays and scores.
func (s *scan[O]) uniform(c fragment.Class) bool {
	return s.stays[c&classMask] == 0 && s.simple()
}

// delayOf is the delay of one fragment that is not Flushing, as far as the policy counts it.
func (s *scale) delayOf(c fragment.Class, size int64) (d delay) {
	if !s.open {
		return d
	}
	if s.kind == Score {
		d.wait = s.wait(c, size, 0)
	}
	if c == fragment.Promised {
		d.promises = 1
	}
	return d
}

// threshold is the score that a window with this delay must exceed to be better than the best so far.
func (w *sliding) threshold(d delay) int64 {
	b := &w.best
	switch {
	case d.promises == b.Promises && d.wait == b.Wait:
		return b.Score
	case d.promises < b.Promises || d.promises == b.Promises && d.wait < b.Wait:
		return math.MinInt64
	}
	return math.MaxInt64
}

// advance moves the window by n fragments. It sets the delays of those in the window: the others are never read, and of these only differences.
func (w *sliding) advance(n int, each delay) {
	first := max(w.to, w.from+n)
	w.from, w.to = w.from+n, w.to+n
	for i := first; i < w.to; i++ {
		before := w.delays[i-1]
		w.delays[i] = delay{before.wait + each.wait, before.promises + each.promises}
	}
}

// end determines the streak at the end of the fragments last passed.
func (r *streak) end(entries []fragment.Entry, room int64) {
	last := len(entries) - 2
	class, size := entries[last].Class, entries[last+1].Offset-entries[last].Offset
	if size <= 0 {
		*r = streak{}
		return
	}
	if size != r.size {
		r.need = int(min((room-1)/size+1, math.MaxInt32))
	}
	before := *r
	r.class, r.size, r.count = class, size, 0
	for i := last; i >= 0; i-- {
		if entries[i].Class != class || entries[i+1].Offset-entries[i].Offset != size {
			return
		}
		if r.count++; r.count >= r.need {
			return
		}
	}
	if before.class == class && before.size == size {
		r.count += before.count
	}
}
