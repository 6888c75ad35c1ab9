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

// A segment of which a sync has failed gets no further writes: it is unknown which bytes of its file are on the medium. Live checkpoints in it stay.
// The rest of its space is retired and returned to the file system. Only then the store gives out as much space elsewhere, so that the data files
// never exceed the budget. When the segment has no live checkpoint left, its file is removed, and the segment may begin another file.

// diskRoom tracks how much of the disk tier is available for checkpoints. The store's lock guards it, except for turn.
type diskRoom struct {
	budget   int64 // bytes for checkpoints
	segments map[int64]*segmentUse
	turn     sync.Mutex // held by the goroutine that shrinks files; locked before the store's lock
	trimming bool       // files are being shrunk; meanwhile no retired space is reinstated
	jobs     int        // goroutines that shrink files
}

// segmentUse describes a segment that is not available as a whole.
type segmentUse struct {
	limit   int64 // space from this offset in the segment on is retired
	suspect bool  // a sync of its file has failed; the limit is 0
	shrunk  bool  // a smaller budget has retired the space; the file returns its idle ranges
	trimmed int64 // of suspect or shrunk segments: idle bytes when the file was last shrunk
	relief  int64 // … bytes that this returned to the file system
	told    bool  // … a failure to shrink the file has been logged
}

// clusters is the tolerated excess of a file over its live bytes, since file systems allocate in larger units.
const clusters = 1 << 20

// retireSuspects retires the space of segments of which a sync has failed. Waiters for space wait until trim has provided some elsewhere.
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
		s.eng.ExpectReleases(0, 1)
		logring.Add(logring.Error, fmt.Sprintf("%s: a sync of %s has failed: nothing more is written there, and what it was to bring down is written elsewhere",
			s.set.Path, segment.FileName(uint64(number)+1)))
	}
}

// fit reduces the available space to the budget. The space may reach beyond it, because checkpoints lie there. Free ranges behind some offset are
// retired. Existing checkpoints are never removed for it.
func (s *Store) fit(budget int64) {
	s.room.budget = max(s.eng.Occupied(len(s.tiers)-1, func(int64, int64) {}), budget)
	s.retireBeyond(s.room.budget, false)
}

// setDisk changes the budget of the disk tier, and lets the files return free ranges beyond it. Files of a durable store are shrunk when the catalog
// reports that no sync runs. The lock is held.
func (s *Store) setDisk(budget int64) {
	s.room.budget = budget
	if s.durable == nil {
		s.eng.Allot(len(s.tiers)-1, budget)
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

// retireBeyond retires the free ranges behind some offset, so that beside the occupied ranges at most so many bytes are available.
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

// cut returns the offset at which retiring begins: before it, free and occupied bytes, together with those occupied behind it, add up to bytes. some
// is false when the tier has no more bytes than that. When more are occupied, the offset is 0, and all space that becomes free is retired.
func (s *Store) cut(bytes int64) (at int64, some bool) {
	var runs []model.Span
	used := s.eng.Occupied(len(s.tiers)-1, func(from, end int64) { runs = append(runs, model.Span{Offset: from, Bytes: end - from}) })
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

// retireRange retires a range up to the end of a segment. Space that the tier gains later lies behind that end.
func (s *Store) retireRange(from, end int64) {
	t := len(s.tiers) - 1
	s.eng.Retire(t, from, end)
	if end > s.eng.Capacity(t) {
		s.disk.Grow(end)
		s.eng.Grow(s.now(), t, end)
	}
}

// trim returns idle space of suspect segments to the file system, and makes as much available elsewhere. It is called while no sync runs, without the
// lock.
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
		s.eng.ExpectReleases(s.now(), -1)
	}
	s.room.jobs -= jobs
	s.leave()
	if jobs > 0 {
		s.notifyResizes()
	}
}

// trimFiles shrinks the files of segments, and then makes space available up to the budget.
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

// trimming is idle space that a segment's file can return.
type trimming struct {
	number int64
	use    *segmentUse
	whole  bool         // the segment has no live bytes: its file can be discarded
	idle   []model.Span // otherwise: idle ranges, as offsets in the tier
	bytes  int64        // length of idle
	counts int64        // live bytes in the segment
	held   int64        // bytes that the file has afterwards
}

// trimmings returns the segments whose files can be shrunk.
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
		r.bytes = s.eng.Idle(len(s.tiers)-1, from, end, func(from, end int64) { r.idle = append(r.idle, model.Span{Offset: from, Bytes: end - from}) })
		r.counts = end - from - r.bytes
		if r.whole = s.durable != nil && r.counts == 0; r.whole || r.bytes != u.trimmed {
			all = append(all, r)
		}
	}
	return all
}

// trimFile shrinks or discards the file of a segment.
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
		return nil // the file has no name, and its size on disk cannot be queried
	}
	held, err := s.disk.Held(r.number)
	if err == nil {
		r.held = min(held, r.held)
	}
	return err
}

// trimmed records the result of a trimming. One that failed is tried again after the next changes have landed.
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

// refit makes space available up to the budget, minus idle bytes that suspect segments still hold on disk. It first widens segments that are partly
// retired, and then grows the tier at its end. The lock is held.
func (s *Store) refit() {
	if s.room.trimming {
		return // the running trimFiles calls refit at its end
	}
	t := len(s.tiers) - 1
	missing := s.room.budget - s.eng.InUse(t)
	for number, u := range s.room.segments {
		if u.suspect {
			from, end := s.disk.Range(number)
			missing -= s.eng.Idle(t, from, end, func(int64, int64) {}) - u.relief
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

// widen raises the limit of a segment until so many bytes became free or it has no more. It returns how many became free.
func (s *Store) widen(number, bytes int64) (more int64) {
	u := s.room.segments[number]
	from, end := s.disk.Range(number)
	for more < bytes && u.limit < end-from {
		next := min(u.limit+bytes-more, end-from)
		s.disk.Limit(number, next)
		at := u.limit
		u.limit = next
		more += s.eng.Reinstate(s.now(), len(s.tiers)-1, from+at, from+next)
	}
	if u.limit == end-from {
		delete(s.room.segments, number)
	}
	return more
}
