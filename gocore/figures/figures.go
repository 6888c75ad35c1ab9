// Package figures holds what a store tells about itself: counters, waits by cause, and a timeline. Their JSON is part of the C contract.
package figures

import "velocpy/gocore/base/pytext"

// Counters add up the callers' time by reason, in ns.
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
	Reduction   *Reduction   `json:"reduction"` // null: its checkpoints are kept as they are
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
	Users          int                      `json:"users"`
	EventsLost     int64                    `json:"timeline_lost"`
}
