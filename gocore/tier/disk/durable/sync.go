package durable

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/tier/disk/segment"
)

// syncs are the syncs of data files. The committing goroutine owns them.
type syncs struct {
	data    *segment.Space
	written map[int64]bool // segments whose indexes or commit areas were written since their last sync
	suspect []int64        // segments whose sync failed, and that no Land call has reported yet
}

// sync syncs the data of a group, and returns the segments whose sync failed.
func (s *syncs) sync(group []*Change) (failed map[int64]error) {
	failed = s.syncAll(s.unsynced(s.needed(group)))
	for _, c := range group {
		if c.Put == nil || c.Err != nil {
			continue
		}
		for number := range s.segmentsOf(c) {
			//mutation:data-sync-error-ignored
			if c.Err = failed[number]; c.Err != nil {
				break
			}
		}
	}
	return failed
}

// segmentsOf yields the segments that have the bytes of a put, and those of its sources. The bytes of a source may be unsynced, as the row of the checkpoint
// that wrote them may come later, or never.
func (s *syncs) segmentsOf(c *Change) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		goes := true
		each := func(off, n int64) {
			for first, end := s.data.Segments(off, n); first < end && goes; first++ {
				goes = yield(first)
			}
		}
		each(c.Off, c.Put.Bytes())
		if c.Put.Difference != nil {
			for _, x := range c.Put.Difference.Sources {
				each(x.Offset, blocks(x.Bytes()))
			}
		}
	}
}

// needed returns the segments that have bytes of a group, or of its sources.
func (s *syncs) needed(group []*Change) (all []int64) {
	for _, c := range group {
		if c.Put != nil && c.Err == nil {
			all = slices.AppendSeq(all, s.segmentsOf(c))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// suspects returns the segments whose sync failed, including earlier ones that have not been reported yet.
func (s *syncs) suspects(failed map[int64]error) []int64 {
	all := slices.AppendSeq(s.suspect, maps.Keys(failed))
	s.suspect = nil
	slices.Sort(all)
	return slices.Compact(all)
}

// touched returns the segments that have bytes of a group, but for those of its sources.
func (s *syncs) touched(group []*Change) []int64 {
	var all []int64
	for _, c := range group {
		if c.Put != nil && c.Err == nil {
			first, end := s.data.Segments(c.Off, c.Put.Bytes())
			for ; first < end; first++ {
				all = append(all, first)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unsynced returns the given segments and those whose indexes or commit areas were written since their last sync.
func (s *syncs) unsynced(segments []int64) []int64 {
	segments = slices.AppendSeq(segments, maps.Keys(s.written))
	clear(s.written)
	slices.Sort(segments)
	return slices.Compact(segments)
}

// errUnsynced: the goroutine that was to sync a segment panicked.
var errUnsynced = fmt.Errorf("the data was not synced: %w", safego.ErrPoisoned)

// syncAll syncs segments concurrently, and returns the errors of those that failed.
func (s *syncs) syncAll(segments []int64) map[int64]error {
	failed := map[int64]error{}
	if len(segments) == 1 {
		if err := s.data.Sync(segments[0]); err != nil {
			failed[segments[0]] = err
		}
		return failed
	}
	for _, number := range segments {
		failed[number] = errUnsynced
	}
	var mu sync.Mutex
	var busy sync.WaitGroup
	for _, number := range segments {
		busy.Add(1)
		safego.Go("data sync", func() {
			defer busy.Done()
			err := s.data.Sync(number)
			mu.Lock()
			defer mu.Unlock()
			if failed[number] = err; err == nil {
				delete(failed, number)
			}
		})
	}
	busy.Wait()
	return failed
}

// syncWritten syncs the segments whose indexes or commit areas were written since their last sync. The next group reports those whose sync fails.
func (s *syncs) syncWritten() {
	for number := range s.syncAll(s.unsynced(nil)) {
		s.suspect = append(s.suspect, number)
	}
}
