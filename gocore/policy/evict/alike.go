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
func (s *scan[O]) alike(ids []fragment.ID, entries []fragment.Entry) int {
	w, r := &s.window, &s.streak
	if w.to-w.from != r.need-1 || r.count < r.need-1 || !s.uniform(r.class) {
		return 0
	}
	if r.class == fragment.Flushing && s.open && s.kind == Score {
		return s.alikeFlushing(ids, entries)
	}
	each := s.delayOf(r.class, r.size)
	all := delay{each.wait * int64(r.need), each.promises * r.need}
	best := w.threshold(all)
	n, last := s.compare(entries[:len(ids)+1], w.loads[w.to:], w.loads[w.to-r.need:], w.loads[w.to-1].sum, best)
	if last >= 0 {
		last += w.to
		w.best = Window{
			First: w.ids[last-r.need+1], Last: w.ids[last],
			Wait: all.wait, Promises: all.promises, Score: w.loads[last].sum - w.loads[last-r.need].sum,
		}
	}
	r.count += n
	w.advance(n, each)
	if last >= 0 {
		s.settle()
	}
	return n
}

// alikeFlushing is alike for fragments with individual waits. Few windows wait as short as the best so far: only their fragments are weighed.
func (s *scan[O]) alikeFlushing(ids []fragment.ID, entries []fragment.Entry) int {
	w, r := &s.window, &s.streak
	if s.breaks {
		return 0
	}
	weighed, n := w.to, 0
	for {
		i, found := s.skipAlike(ids[n:], entries[n:])
		n += i
		w.from, w.to, r.count = w.from+i, w.to+i, r.count+i
		if !found {
			break
		}
		weighed = s.weighLate(ids, entries, w.from, w.to+1, weighed)
		w.compare(w.from, w.to)
		w.from, w.to, r.count = w.from+1, w.to+1, r.count+1
		n++
	}
	s.weighLate(ids, entries, w.from-1, w.to, weighed) // with the one before the window, since its end is the begin of the window
	return n
}

// skipAlike sums the waits of fragments that continue the streak, and looks for a window that waits as short as the best so far. It returns how many
// fragments it has passed before the last of that window, and whether there is one.
func (s *scan[O]) skipAlike(ids []fragment.ID, entries []fragment.Entry) (int, bool) {
	w, t, now, size := &s.window, s.table, s.now, s.streak.size
	sum, least := w.waits[w.to-1], w.best.Wait
	before, waits := w.waits[w.from-1:][:len(ids)], w.waits[w.to:][:len(ids)]
	entries = entries[:len(ids)+1]
	for i, id := range ids {
		e := &entries[i]
		if e.Class != fragment.Flushing || entries[i+1].Offset-e.Offset != size {
			return i, false
		}
		sum += max(t.At(id).ETA-now, 1)
		waits[i] = sum
		if sum-before[i] <= least {
			return i, true
		}
	}
	return len(ids), false
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

// uniform tells whether fragments of the class can be evicted, and differ only by their delays and scores.
func (s *scan[O]) uniform(c fragment.Class) bool {
	return s.stays[c&classMask] == 0 && s.simple()
}

// delay is how much worse a fragment or a window is than one that is evictable now.
type delay struct {
	wait     int64 // 0 if the policy does not count it
	promises int
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
		w.waits[i] = w.waits[i-1] + each.wait
		w.promises[i] = w.promises[i-1] + int64(each.promises)
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
