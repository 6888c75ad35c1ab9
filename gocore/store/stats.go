package store

import (
	"cmp"
	"slices"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/status"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/retention"
	"velocpy/gocore/tier/devicememory"
)

// Stats takes the snapshot. Cost: O(histories).
func (s *Store) Stats() (figures.Stats, error) {
	if err := s.Enter(); err != nil {
		return figures.Stats{}, err
	}
	all := slices.Clone(s.Devices)
	s.Unlock()
	onDevice := waited(all)
	if err := s.Enter(); err != nil {
		return figures.Stats{}, err
	}
	defer s.Unlock()
	e := &s.Engine.Stats
	st := figures.Stats{
		Tiers: map[string]figures.TierStats{}, Histories: pytext.Map[figures.HistoryStats]{}, Waits: s.Counters,
		Bytes:    figures.ByteStats{Captured: e.Captured, Restored: e.Restored, CancelledFlush: e.CancelledFlush, AvoidedFlush: e.AvoidedFlush},
		Captures: e.Captures, Consumed: e.Consumed, BrokenPromises: e.BrokenPromises, Decisions: e.Decisions,
		Mapped: memory.Total(), Users: s.Users - s.workers.Running() - s.hostGoroutines(), EventsLost: s.Line.Lost,
	}
	st.Causes.Capture = s.Causes
	for _, sums := range onDevice {
		st.Causes.DeviceCapture.Join(causesOf(&sums, devicememory.Captures))
		st.Causes.DeviceRestore.Join(causesOf(&sums, devicememory.Restores))
	}
	st.Waits.DeviceCapture, st.Waits.DeviceRestore = st.Causes.DeviceCapture.Sum(), st.Causes.DeviceRestore.Sum()
	for t := range s.Tiers {
		tier := s.tierStats(t)
		if t < len(onDevice) {
			tier.Streams = figures.StreamWaits{Capture: causesOf(&onDevice[t], devicememory.Captures), Restore: causesOf(&onDevice[t], devicememory.Restores)}
		}
		st.Tiers[s.Engine.Use(t).Name] = tier
	}
	var distance int64
	for _, h := range s.Engine.Histories() {
		r := restoreStats(h.Stats)
		st.Histories[h.Name] = figures.HistoryStats{Checkpoints: s.histories.len(h), Hints: h.Queued(), Restores: r, Reduction: s.reductionOf(h.Name)}
		st.Restores.Count += r.Count
		st.Restores.Hits += r.Hits
		st.Restores.Last = r.Last
		distance += h.Stats.DistanceSum
	}
	st.Restores.Distance = float64(distance) / float64(max(st.Restores.Count, 1))
	return st, nil
}

// waited returns the waits of the callers' streams, by device. The lock is not held, because devices are polled for each wait that has not ended.
func waited(all []*devicememory.Memory) []devicememory.Waits {
	sums := make([]devicememory.Waits, len(all))
	for i, a := range all {
		sums[i], _ = a.Waits()
	}
	return sums
}

func (s *Store) tierStats(t int) figures.TierStats {
	u, x := s.Engine.Use(t), s.Engine.Stats.Tiers[t]
	st := figures.TierStats{
		Capacity: u.Capacity, Used: u.Used, HighWater: x.HighWater, Fragments: u.Fragments, Evictable: u.Free, Flushing: u.Flushing,
		Dirty: u.Dirty, Promised: u.Promised, Held: u.Held, Evicted: x.Evicted, Written: x.Written, Read: x.Read,
		WriteRate: u.WriteRate, ReadRate: u.ReadRate,
	}
	if s.Tiers[t] == status.TierHost {
		st.Pinned = s.Host.Watermark().End()
		st.Resident, st.GivenBack = s.Host.Counts()
	}
	if s.Tiers[t] == status.TierDisk {
		d := s.Disk.Figures()
		st.Direct, st.Stalled, st.Commits, st.Pending = d.Direct, d.Stalled, d.Commits, d.Pending.Changes()
	}
	return st
}

// inWritingOrder sorts keys by their latest write.
func inWritingOrder(all []retention.Written) []model.Key {
	slices.SortFunc(all, func(a, b retention.Written) int { return cmp.Compare(a.At, b.At) })
	keys := make([]model.Key, len(all))
	for i, w := range all {
		keys[i] = w.Key
	}
	return keys
}

func restoreStats(h engine.HistoryStats) figures.RestoreStats {
	return figures.RestoreStats{
		Count: h.Restores, Hits: h.Hits, Distance: float64(h.DistanceSum) / float64(max(h.Restores, 1)), Last: h.LastDistance,
	}
}

// Timeline returns the events kept, oldest first.
func (s *Store) Timeline() []figures.Moment {
	s.Lock()
	defer s.Unlock()
	return s.Line.List(s.Tiers)
}

// ForgetTimeline drops the oldest n events, which a caller has read.
func (s *Store) ForgetTimeline(n int) {
	s.Lock()
	defer s.Unlock()
	s.Line.Forget(n)
}
