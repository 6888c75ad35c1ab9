package engine

import "velocpy/gocore/policy/fragment"

// Stats counts the engine's work; all sums are bytes unless said otherwise.
type Stats struct {
	Captures, Captured int64 // number, bytes
	Restored           int64
	Consumed           int64 // number
	CancelledFlush     int64 // queued or begun, then not needed any more
	AvoidedFlush       int64 // dropped or consumed before a flush was queued
	BrokenPromises     int64 // number of prefetched copies whose room a demand took
	Decisions          int64 // number of eviction decisions
	Tiers              [MaxTiers]TierStats
}

// TierStats counts for one tier.
type TierStats struct {
	Evicted   int64 // bytes evicted from it
	Written   int64 // bytes written to it by flushes and spills
	Read      int64 // bytes read from it by loads and fetches
	HighWater int64 // the most bytes ever in use
}

// used is how many bytes of a tier are in use.
func (tr *tier) used() int64 { return tr.table.Used() - tr.idleBytes }

func (s *Stats) noteUsed(t int, used int64) {
	s.Tiers[t].HighWater = max(s.Tiers[t].HighWater, used)
}

// HistoryStats counts for one history.
type HistoryStats struct {
	Restores     int64 // number
	Hits         int64 // number found in the fastest tier
	DistanceSum  int64 // of the prefetch distances seen at the restores
	LastDistance int64
}

// TierUse is the state of one tier now, bytes by kind of fragment.
type TierUse struct {
	Name                                  string
	Capacity, Used                        int64
	Free, Flushing, Dirty, Promised, Held int64
	Fragments                             int
	WriteRate, ReadRate                   float64 // bytes/s of the link to the next tier down, measured
	FlushesQueued, LoadsRunning           int
}

// Use describes tier t without its idle bytes.
func (s *state) Use(t int) TierUse {
	tr := s.tiers[t]
	u := TierUse{
		Name: tr.Name, Capacity: tr.Capacity - tr.idleBytes, Used: tr.used(), Fragments: tr.table.Count() - tr.idle.Len(),
		Free: tr.bytes[fragment.Free], Flushing: tr.bytes[fragment.Flushing], Dirty: tr.bytes[fragment.Dirty],
		Promised: tr.bytes[fragment.Promised], Held: tr.bytes[fragment.Held] - tr.idleBytes,
	}
	if t < len(s.links) {
		l := s.links[t]
		u.WriteRate, u.ReadRate = l.down.Rate(), l.up.Rate()
		u.FlushesQueued, u.LoadsRunning = l.queued, l.loads
	}
	return u
}

// FlushRate is the rate (bytes/s) of the link below a tier, measured or assumed.
func (s *state) FlushRate(t int) float64 { return s.links[t].down.Rate() }

// LoadRate is the rate (bytes/s) at which the link below a tier brings bytes up, measured or assumed.
func (s *state) LoadRate(t int) float64 { return s.links[t].up.Rate() }

// Assume sets the rates (bytes/s) of the link below tier t, per direction, until transfers have been measured.
func (s *state) Assume(t int, write, read float64) {
	if t < len(s.links) {
		s.links[t].down.Assume(write)
		s.links[t].up.Assume(read)
	}
}

// EventKind says what happened to a checkpoint.
type EventKind uint8

// The kinds of event.
const (
	Captured EventKind = iota
	Flushed
	Loaded
	Restored
	Dropped
	Evicted
	Consumed // restored for the last time, and removed
)

// Event is one thing that happened, for diagrams and tests.
type Event struct {
	At, Took int64 // ns
	Kind     EventKind
	Tier     int     // where the bytes are now, or were; -1: none
	Rec      *Record // a checkpoint that the bytes are for
	Obj      *Object // what was moved or evicted; nil: nothing was
}

func (s *state) trace(now int64, k EventKind, r *Record, t int, took int64) {
	if s.cfg.Trace != nil {
		s.cfg.Trace(Event{At: now, Took: took, Kind: k, Tier: t, Rec: r})
	}
}

// traceMove is trace for what happened to the copy of an object.
func (s *state) traceMove(now int64, k EventKind, o *Object, t int, took int64) {
	if s.cfg.Trace != nil {
		s.cfg.Trace(Event{At: now, Took: took, Kind: k, Tier: t, Rec: o.Rec(), Obj: o})
	}
}
