package disk

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
// The rest of its space is retired and returned to the file system. Only then the tier gives out as much space elsewhere, so that the data files
// never exceed the budget. When the segment has no live checkpoint left, its file is removed, and the segment may begin another file.

// room tracks how much of the disk tier is available for checkpoints. The store's lock guards it, except for turn.
type room struct {
	tier     *Tier
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
func (r *room) retireSuspects(segments []int64) {
	for _, number := range segments {
		if u := r.segments[number]; u != nil && u.suspect {
			continue
		}
		r.segments[number] = &segmentUse{suspect: true, trimmed: -1}
		from, end := r.tier.Space.Range(number)
		r.retireRange(from, end)
		r.tier.lineages.doubt(from, end)
		r.tier.versions.relocating++
		r.tier.engine().ExpectReleases(0, 1)
		logring.Add(logring.Error, fmt.Sprintf("%s: a sync of %s has failed: nothing more is written there, and what it was to bring down is written elsewhere",
			r.tier.o.Path, segment.FileName(uint64(number)+1)))
	}
}

// fit reduces the available space to the budget. The space may reach beyond it, because checkpoints lie there. Free ranges behind some offset are
// retired. Existing checkpoints are never removed for it.
func (r *room) fit(budget int64) {
	r.budget = max(r.tier.engine().Occupied(r.tier.index, func(int64, int64) {}), budget)
	r.retireBeyond(r.budget, false)
}

// setBudget changes the budget of the disk tier, and lets the files return free ranges beyond it. Files of a durable store are shrunk when the catalog
// reports that no sync runs. The lock is held.
func (r *room) setBudget(budget int64) {
	r.budget = budget
	if r.tier.versions == nil {
		r.tier.engine().Allot(r.tier.index, budget)
	}
	r.retireBeyond(budget, true)
	r.jobs++
	if r.tier.versions != nil {
		r.tier.versions.dir.Nudge()
		return
	}
	r.tier.cache.Hold()
	safego.Go("smaller data files", func() {
		r.trimFiles()
		r.tier.cache.Lock()
		r.jobs--
		r.tier.cache.Release()
		r.tier.cache.Leave()
		r.tier.cache.Resized()
	})
}

// retireBeyond retires the free ranges behind some offset, so that beside the occupied ranges at most so many bytes are available.
func (r *room) retireBeyond(bytes int64, shrunk bool) {
	t := r.tier.index
	at, some := r.cut(bytes)
	if !some {
		return
	}
	for number := at / r.tier.Space.SegmentBytes(); ; number++ {
		from, end := r.tier.Space.Range(number)
		if from >= r.tier.engine().Capacity(t) {
			return
		}
		u := r.segments[number]
		if u == nil {
			u = &segmentUse{limit: end - from, trimmed: -1}
			r.segments[number] = u
		}
		if limit := max(0, at-from); !u.suspect && limit < u.limit {
			u.limit, u.shrunk = limit, u.shrunk || shrunk
			r.tier.Space.Limit(number, limit)
			r.retireRange(from+limit, end)
		}
	}
}

// cut returns the offset at which retiring begins: before it, free and occupied bytes, together with those occupied behind it, add up to bytes. some
// is false when the tier has no more bytes than that. When more are occupied, the offset is 0, and all space that becomes free is retired.
func (r *room) cut(bytes int64) (at int64, some bool) {
	var runs []model.Span
	used := r.tier.engine().Occupied(r.tier.index, func(from, end int64) { runs = append(runs, model.Span{Offset: from, Bytes: end - from}) })
	at = r.tier.engine().Capacity(r.tier.index)
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
func (r *room) retireRange(from, end int64) {
	r.tier.engine().Retire(r.tier.index, from, end)
	if t := r.tier.index; end > r.tier.engine().Capacity(t) {
		r.tier.Space.Grow(end)
		r.tier.engine().Grow(r.tier.o.Now(), t, end)
	}
}

// trim returns idle space of suspect segments to the file system, and makes as much available elsewhere. It is called while no sync runs, without the
// lock.
func (r *room) trim() {
	r.tier.cache.Lock()
	jobs := r.jobs
	sound := len(r.segments) == 0 && r.tier.versions.relocating == 0 && jobs == 0
	r.tier.cache.Unlock()
	if sound {
		return
	}
	r.trimFiles()
	r.tier.cache.Lock()
	for ; r.tier.versions.relocating > 0; r.tier.versions.relocating-- {
		r.tier.engine().ExpectReleases(r.tier.o.Now(), -1)
	}
	r.jobs -= jobs
	r.tier.cache.Leave()
	if jobs > 0 {
		r.tier.cache.Resized()
	}
}

// trimFiles shrinks the files of segments, and then makes space available up to the budget.
func (r *room) trimFiles() {
	r.turn.Lock()
	defer r.turn.Unlock()
	for _, m := range r.trimmings() {
		err := r.trimFile(&m)
		r.trimmed(&m, err)
	}
	r.tier.cache.Lock()
	defer r.tier.cache.Leave()
	r.trimming = false
	r.refit()
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
func (r *room) trimmings() (all []trimming) {
	r.tier.cache.Lock()
	defer r.tier.cache.Unlock()
	r.trimming = true
	for number, u := range r.segments {
		if !u.suspect && !u.shrunk {
			continue
		}
		from, end := r.tier.Space.Range(number)
		m := trimming{number: number, use: u}
		m.bytes = r.tier.engine().Idle(r.tier.index, from, end, func(from, end int64) { m.idle = append(m.idle, model.Span{Offset: from, Bytes: end - from}) })
		m.counts = end - from - m.bytes
		if m.whole = r.tier.versions != nil && m.counts == 0; m.whole || m.bytes != u.trimmed {
			all = append(all, m)
		}
	}
	return all
}

// trimFile shrinks or discards the file of a segment.
func (r *room) trimFile(m *trimming) error {
	if m.whole {
		err := r.tier.versions.dir.Discard(m.number)
		if err != nil {
			m.held = m.bytes
		}
		return err
	}
	m.held = m.counts + m.bytes
	for _, x := range m.idle {
		if err := r.tier.Space.Punch(x.Offset, x.Bytes); err != nil {
			return err
		}
	}
	if r.tier.versions == nil {
		return nil // the file has no name, and its size on disk cannot be queried
	}
	held, err := r.tier.Space.Held(m.number)
	if err == nil {
		m.held = min(held, m.held)
	}
	return err
}

// trimmed records the result of a trimming. One that failed is tried again after the next changes have landed.
func (r *room) trimmed(m *trimming, err error) {
	r.tier.cache.Lock()
	defer r.tier.cache.Unlock()
	u := m.use
	u.trimmed, u.relief = m.bytes, m.bytes-max(0, m.held-m.counts-clusters)
	switch {
	case err == nil && m.whole:
		*u = segmentUse{}
	case err == nil:
	case !u.told:
		u.told = true
		logring.Add(logring.Warning, fmt.Sprintf("%s: %s could not be made smaller: %v", r.tier.o.Path, segment.FileName(uint64(m.number)+1), err))
		fallthrough
	default:
		u.trimmed = -1
	}
}

// refit makes space available up to the budget, minus idle bytes that suspect segments still hold on disk. It first widens segments that are partly
// retired, and then grows the tier at its end. The lock is held.
func (r *room) refit() {
	if r.trimming {
		return // the running trimFiles calls refit at its end
	}
	t := r.tier.index
	missing := r.budget - r.tier.engine().InUse(r.tier.index)
	for number, u := range r.segments {
		if u.suspect {
			from, end := r.tier.Space.Range(number)
			missing -= r.tier.engine().Idle(r.tier.index, from, end, func(int64, int64) {}) - u.relief
		}
	}
	if missing <= 0 {
		return
	}
	for _, number := range slices.Sorted(maps.Keys(r.segments)) {
		if !r.segments[number].suspect {
			missing -= r.widen(number, missing)
		}
	}
	if missing > 0 {
		capacity := r.tier.engine().Capacity(t) + missing
		r.tier.Space.Grow(capacity)
		r.tier.engine().Grow(r.tier.o.Now(), t, capacity)
	}
}

// widen raises the limit of a segment until so many bytes became free or it has no more. It returns how many became free.
func (r *room) widen(number, bytes int64) (more int64) {
	u := r.segments[number]
	from, end := r.tier.Space.Range(number)
	for more < bytes && u.limit < end-from {
		next := min(u.limit+bytes-more, end-from)
		r.tier.Space.Limit(number, next)
		at := u.limit
		u.limit = next
		more += r.tier.engine().Reinstate(r.tier.o.Now(), r.tier.index, from+at, from+next)
	}
	if u.limit == end-from {
		delete(r.segments, number)
	}
	return more
}
