package store

import (
	"cmp"
	"slices"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/retention"
	"velocpy/gocore/tier/devicememory"
)

// Counters add up the callers' time by reason, in ns. The store's lock guards them.
type Counters struct {
	CaptureWait int64 `json:"capture"`      // waiting for room
	CaptureCopy int64 `json:"capture_copy"` // copying in
	RestoreWait int64 `json:"restore"`      // waiting for bytes to come up
	RestoreCopy int64 `json:"restore_copy"` // copying out and verifying
	DurableWait int64 `json:"durable"`      // waiting for tickets
	// Time that the callers' streams have waited on their devices after the calls had returned: for slots that other work still read, and for bytes
	// on their way there.
	DeviceCapture int64 `json:"capture_on_device"`
	DeviceRestore int64 `json:"restore_on_device"`
}

// TierStats describes one tier.
type TierStats struct {
	Capacity  int64   `json:"capacity"`
	Used      int64   `json:"used"`
	HighWater int64   `json:"high_water"`
	Fragments int     `json:"fragments"`
	Evictable int64   `json:"evictable"`
	Flushing  int64   `json:"flushing"`
	Dirty     int64   `json:"dirty"`
	Promised  int64   `json:"promised"`
	Held      int64   `json:"held"`
	Evicted   int64   `json:"evicted_bytes"`
	Written   int64   `json:"written_bytes"`
	Read      int64   `json:"read_bytes"`
	WriteRate float64 `json:"flush_bytes_per_s"` // of the link to the tier below, measured
	ReadRate  float64 `json:"load_bytes_per_s"`
	Pinned    int64   `json:"pinned_bytes"`     // host tier: bytes pinned for devices
	Resident  int64   `json:"resident_bytes"`   // host tier: bytes of its memory that may be resident, in whole chunks
	GivenBack int64   `json:"given_back_bytes"` // host tier: bytes given back to the system since the store was opened
	Direct    bool    `json:"direct_io"`
	Stalled   int64   `json:"stalled_ns"` // time for which the disk has not answered; 0: it answers
	// Streams are the waits of the application's streams, by cause; of device tiers only.
	Streams StreamWaits `json:"streams_waited_ns"`
	Commits int64       `json:"commits"`         // durable disk tier: groups of changes that shared their syncs
	Pending int         `json:"pending_changes"` // … changes that have not landed: commits, drops and clears
}

// RestoreStats describes the restores.
type RestoreStats struct {
	Count    int64   `json:"count"`
	Hits     int64   `json:"hits"`
	Distance float64 `json:"prefetch_distance_mean"`
	Last     int64   `json:"prefetch_distance_last"`
}

// HistoryStats describes one history.
type HistoryStats struct {
	Checkpoints int          `json:"checkpoints"`
	Hints       int          `json:"hints_queued"`
	Restores    RestoreStats `json:"restores"`
}

// ByteStats adds up bytes over the life of the store.
type ByteStats struct {
	Captured       int64 `json:"captured"`
	Restored       int64 `json:"restored"`
	CancelledFlush int64 `json:"flush_cancelled"`
	AvoidedFlush   int64 `json:"flush_avoided"`
}

// Stats is a snapshot of the whole store.
type Stats struct {
	Tiers          map[string]TierStats     `json:"tiers"`
	Waits          Counters                 `json:"waits_ns"`
	Causes         WaitCauses               `json:"waits_by_cause_ns"`
	Restores       RestoreStats             `json:"restores"`
	Bytes          ByteStats                `json:"bytes"`
	Histories      pytext.Map[HistoryStats] `json:"histories"`
	Captures       int64                    `json:"captures"`
	Consumed       int64                    `json:"consumed"`
	BrokenPromises int64                    `json:"broken_promises"`
	Decisions      int64                    `json:"eviction_decisions"`
	Mapped         int64                    `json:"mapped_bytes"`
	Leases         int                      `json:"users"`
	EventsLost     int64                    `json:"timeline_lost"`
}

// Stats takes the snapshot. Cost: O(histories).
func (s *Store) Stats() (Stats, error) {
	if err := s.enter(); err != nil {
		return Stats{}, err
	}
	all := slices.Clone(s.deviceTiers)
	s.mu.Unlock()
	onDevice := waited(all)
	if err := s.enter(); err != nil {
		return Stats{}, err
	}
	defer s.mu.Unlock()
	e := &s.eng.Stats
	st := Stats{
		Tiers: map[string]TierStats{}, Histories: pytext.Map[HistoryStats]{}, Waits: s.counters,
		Bytes:    ByteStats{Captured: e.Captured, Restored: e.Restored, CancelledFlush: e.CancelledFlush, AvoidedFlush: e.AvoidedFlush},
		Captures: e.Captures, Consumed: e.Consumed, BrokenPromises: e.BrokenPromises, Decisions: e.Decisions,
		Mapped: memory.Total(), Leases: s.users - s.workers - s.hostGoroutines(), EventsLost: s.line.lost,
	}
	st.Causes.Capture = s.causes
	for _, sums := range onDevice {
		st.Causes.DeviceCapture.join(causesOf(&sums, devicememory.Captures))
		st.Causes.DeviceRestore.join(causesOf(&sums, devicememory.Restores))
	}
	st.Waits.DeviceCapture, st.Waits.DeviceRestore = st.Causes.DeviceCapture.sum(), st.Causes.DeviceRestore.sum()
	for t := range s.tiers {
		tier := s.tierStats(t)
		if t < len(onDevice) {
			tier.Streams = StreamWaits{causesOf(&onDevice[t], devicememory.Captures), causesOf(&onDevice[t], devicememory.Restores)}
		}
		st.Tiers[s.eng.Use(t).Name] = tier
	}
	var distance int64
	for _, h := range s.eng.Histories() {
		r := restoreStats(h.Stats)
		st.Histories[h.Name] = HistoryStats{Checkpoints: s.len(h), Hints: h.Queued(), Restores: r}
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

func restoreStats(h engine.HistoryStats) RestoreStats {
	return RestoreStats{
		Count: h.Restores, Hits: h.Hits, Distance: float64(h.DistanceSum) / float64(max(h.Restores, 1)), Last: h.LastDistance,
	}
}

func (s *Store) tierStats(t int) TierStats {
	u, x := s.eng.Use(t), s.eng.Stats.Tiers[t]
	st := TierStats{
		Capacity: u.Capacity, Used: u.Used, HighWater: x.HighWater, Fragments: u.Fragments, Evictable: u.Free, Flushing: u.Flushing,
		Dirty: u.Dirty, Promised: u.Promised, Held: u.Held, Evicted: x.Evicted, Written: x.Written, Read: x.Read,
		WriteRate: u.WriteRate, ReadRate: u.ReadRate,
	}
	if s.tiers[t] == status.TierHost {
		st.Pinned = s.host.Watermark().End()
		st.Resident, st.GivenBack = s.host.Counts()
	}
	if !s.eng.IsMemory(t) {
		d := s.disk.Figures()
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
