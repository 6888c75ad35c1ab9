package store

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/segment"
)

// A segment of which a sync has failed takes nothing any more: nobody knows what of its file is on the medium. What lies there and counts stays, and its other
// room is retired and given back to the file system; only then as much room is given out elsewhere, so that the data files never take more than the budget.
// When nothing counts in it any more its file is removed, and the segment may begin another one.

// diskRoom is how much of the disk tier is given out. The store's lock guards it, but for turn.
type diskRoom struct {
	budget   int64 // bytes for checkpoints
	segments map[int64]*segmentUse
	turn     sync.Mutex // of the goroutine that makes files smaller; taken before the store's lock
	trimming bool       // so long no retired room is given out again
	jobs     int        // goroutines that make files smaller
}

// segmentUse is how much of a segment is given out, where that is not all of it.
type segmentUse struct {
	limit   int64 // room behind this offset in the segment is retired
	suspect bool  // a sync of its file has failed: the limit is 0
	shrunk  bool  // a smaller budget has retired the room: its file gives back what is idle
	trimmed int64 // of either: how many idle bytes it had when its file was made smaller last
	relief  int64 // … and how many bytes that has given back
	told    bool  // … that it could not be done
}

// clusters is what a file may hold beside the bytes that count, as file systems give out room in larger units.
const clusters = 1 << 20

// retireSuspects gives no room out any more in segments of which a sync has failed. Those who need room wait until trim has made some elsewhere.
func (s *Store) retireSuspects(segments []int64) {
	k := s.durable
	for _, number := range segments {
		if u := s.room.segments[number]; u != nil && u.suspect {
			continue
		}
		s.room.segments[number] = &segmentUse{suspect: true, trimmed: -1}
		from, end := s.disk.Range(number)
		s.retireRange(from, end)
		k.relocating++
		s.eng.Owe(0, 1)
		logring.Add(logring.Error, fmt.Sprintf("%s: a sync of %s has failed: nothing more is written there, and what it was to bring down is written elsewhere",
			s.set.Path, segment.FileName(uint64(number)+1)))
	}
}

// fit gives out as much room as the budget has, of a space that reaches further because checkpoints lie there: what is free behind some place is retired. What lies
// there already counts, and is never too much.
func (s *Store) fit(budget int64) {
	s.room.budget = max(s.eng.Occupied(func(int64, int64) {}), budget)
	s.retireBeyond(s.room.budget, false)
}

// setDisk makes the disk tier keep to another budget, and its files give back what is free beyond it. Files of a durable store are made smaller when the catalog
// says that nothing is being synced. The lock is held.
func (s *Store) setDisk(budget int64) {
	s.room.budget = budget
	if s.durable == nil {
		s.eng.Allot(budget)
	}
	s.retireBeyond(budget, true)
	s.room.jobs++
	if s.durable != nil {
		s.durable.dir.Nudge()
		return
	}
	s.users++
	safego.Go("smaller data files", func() {
		s.trimFiles()
		s.mu.Lock()
		s.room.jobs--
		s.users--
		s.leave()
		s.notifyResizes()
	})
}

// retireBeyond retires what is free behind some place, so that beside what is occupied no more is given out than so many bytes.
func (s *Store) retireBeyond(bytes int64, shrunk bool) {
	t := len(s.tiers) - 1
	at, some := s.cut(bytes)
	if !some {
		return
	}
	for number := at / s.disk.SegmentBytes(); ; number++ {
		from, end := s.disk.Range(number)
		if from >= s.eng.Capacity(t) {
			return
		}
		u := s.room.segments[number]
		if u == nil {
			u = &segmentUse{limit: end - from, trimmed: -1}
			s.room.segments[number] = u
		}
		if limit := max(0, at-from); !u.suspect && limit < u.limit {
			u.limit, u.shrunk = limit, u.shrunk || shrunk
			s.disk.Limit(number, limit)
			s.retireRange(from+limit, end)
		}
	}
}

// cut is the place before which so many bytes are free or occupied, beside those that are occupied behind it; false when there are no more. Where more are occupied it
// is the beginning: then all that comes free is retired.
func (s *Store) cut(bytes int64) (at int64, some bool) {
	var runs []model.Span
	used := s.eng.Occupied(func(from, end int64) { runs = append(runs, model.Span{Offset: from, Bytes: end - from}) })
	at = s.eng.Capacity(len(s.tiers) - 1)
	excess := at - bytes
	switch {
	case excess <= 0:
		return 0, false
	case used > bytes:
		return 0, true
	}
	for i := len(runs) - 1; ; i-- {
		free := at
		if i >= 0 {
			free -= runs[i].Offset + runs[i].Bytes
		}
		if free >= excess {
			return at - excess, true
		}
		at, excess = runs[i].Offset, excess-free
	}
}

// retireRange retires a range up to the end of a segment. What the space grows by later lies behind that.
func (s *Store) retireRange(from, end int64) {
	s.eng.Retire(from, end)
	if t := len(s.tiers) - 1; end > s.eng.Capacity(t) {
		s.disk.Grow(end)
		s.eng.Grow(s.now(), t, end)
	}
}

// trim gives the file system back what suspect segments hold and nothing counts on, and gives out as much room elsewhere. It is called where no sync runs, without
// the lock.
func (s *Store) trim() {
	s.mu.Lock()
	jobs := s.room.jobs
	sound := len(s.room.segments) == 0 && s.durable.relocating == 0 && jobs == 0
	s.mu.Unlock()
	if sound {
		return
	}
	s.trimFiles()
	s.mu.Lock()
	for ; s.durable.relocating > 0; s.durable.relocating-- {
		s.eng.Owe(s.now(), -1)
	}
	s.room.jobs -= jobs
	s.leave()
	if jobs > 0 {
		s.notifyResizes()
	}
}

// trimFiles makes the files of segments smaller, and then gives out room as the budget allows.
func (s *Store) trimFiles() {
	s.room.turn.Lock()
	defer s.room.turn.Unlock()
	for _, r := range s.trimmings() {
		err := s.trimFile(&r)
		s.trimmed(&r, err)
	}
	s.mu.Lock()
	defer s.leave()
	s.room.trimming = false
	s.refit()
}

// trimming is room that a segment's file can give back.
type trimming struct {
	number int64
	use    *segmentUse
	whole  bool         // nothing counts in it
	idle   []model.Span // else: of the space
	bytes  int64        // of idle
	counts int64        // bytes that count in it
	held   int64        // bytes that its file has afterwards
}

// trimmings is what there is to trim.
func (s *Store) trimmings() (all []trimming) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.trimming = true
	for number, u := range s.room.segments {
		if !u.suspect && !u.shrunk {
			continue
		}
		from, end := s.disk.Range(number)
		r := trimming{number: number, use: u}
		r.bytes = s.eng.Idle(from, end, func(from, end int64) { r.idle = append(r.idle, model.Span{Offset: from, Bytes: end - from}) })
		r.counts = end - from - r.bytes
		if r.whole = s.durable != nil && r.counts == 0; r.whole || r.bytes != u.trimmed {
			all = append(all, r)
		}
	}
	return all
}

// trimFile makes a file smaller.
func (s *Store) trimFile(r *trimming) error {
	if r.whole {
		err := s.durable.dir.Discard(r.number)
		if err != nil {
			r.held = r.bytes
		}
		return err
	}
	r.held = r.counts + r.bytes
	for _, x := range r.idle {
		if err := s.disk.Punch(x.Offset, x.Bytes); err != nil {
			return err
		}
	}
	if s.durable == nil {
		return nil // a file without a name
	}
	held, err := s.disk.Held(r.number)
	if err == nil {
		r.held = min(held, r.held)
	}
	return err
}

// trimmed notes what has become of a trimming. One that failed is tried again when the next changes have landed.
func (s *Store) trimmed(r *trimming, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := r.use
	u.trimmed, u.relief = r.bytes, r.bytes-max(0, r.held-r.counts-clusters)
	switch {
	case err == nil && r.whole:
		*u = segmentUse{}
	case err == nil:
	case !u.told:
		u.told = true
		logring.Add(logring.Warning, fmt.Sprintf("%s: %s could not be made smaller: %v", s.set.Path, segment.FileName(uint64(r.number)+1), err))
		fallthrough
	default:
		u.trimmed = -1
	}
}

// refit gives out as much room as the budget has, beside what suspect segments hold in vain: in segments that are not given out altogether, and then behind
// all. The lock is held.
func (s *Store) refit() {
	if s.room.trimming {
		return // it comes when that has ended
	}
	t := len(s.tiers) - 1
	missing := s.room.budget - s.eng.InUse()
	for number, u := range s.room.segments {
		if u.suspect {
			from, end := s.disk.Range(number)
			missing -= s.eng.Idle(from, end, func(int64, int64) {}) - u.relief
		}
	}
	if missing <= 0 {
		return
	}
	for _, number := range slices.Sorted(maps.Keys(s.room.segments)) {
		if !s.room.segments[number].suspect {
			missing -= s.widen(number, missing)
		}
	}
	if missing > 0 {
		capacity := s.eng.Capacity(t) + missing
		s.disk.Grow(capacity)
		s.eng.Grow(s.now(), t, capacity)
	}
}

// widen gives out more of a segment, so that so many bytes are free there, and returns how many are.
func (s *Store) widen(number, bytes int64) (more int64) {
	u := s.room.segments[number]
	from, end := s.disk.Range(number)
	for more < bytes && u.limit < end-from {
		next := min(u.limit+bytes-more, end-from)
		s.disk.Limit(number, next)
		at := u.limit
		u.limit = next
		more += s.eng.Reinstate(s.now(), from+at, from+next)
	}
	if u.limit == end-from {
		delete(s.room.segments, number)
	}
	return more
}
