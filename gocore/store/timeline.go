package store

import (
	"velocpy/gocore/engine"
	"velocpy/gocore/plan"
	"velocpy/gocore/status"
)

// Moment is one event of a store's life, as pictures show it.
type Moment struct {
	At      int64  `json:"t_ns"`
	What    string `json:"what"`
	History string `json:"history"`
	Key     any    `json:"key"`
	Tier    string `json:"tier"`
	Bytes   int64  `json:"bytes"`
	Took    int64  `json:"dur_ns"`
}

var moments = map[engine.EventKind]string{
	engine.Captured: "capture", engine.Flushed: "flush", engine.Loaded: "load", engine.Restored: "restore",
	engine.Dropped: "drop", engine.Evicted: "evict",
}

// timeline keeps the first so many events; what comes after is counted.
type timeline struct {
	limit int
	kept  []mark
	lost  int64
}

// mark is an event as it is kept: names are looked up when somebody asks.
type mark struct {
	at, took, bytes int64
	hist            *engine.History
	key             plan.Key
	kind            engine.EventKind
	tier            int8
}

// note is the engine's trace. The lock is held.
func (s *Store) note(ev engine.Event) {
	t := &s.line
	if len(t.kept) >= t.limit {
		t.lost++
		return
	}
	t.kept = append(t.kept, mark{
		at: ev.At, took: ev.Took, bytes: ev.Rec.Size, hist: ev.Rec.Hist, key: ev.Rec.Key, kind: ev.Kind, tier: int8(ev.Tier),
	})
}

// Timeline returns the events kept, oldest first, and forgets them if asked.
func (s *Store) Timeline(forget bool) []Moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Moment, len(s.line.kept))
	for i, m := range s.line.kept {
		list[i] = Moment{At: m.at, What: moments[m.kind], History: m.hist.Name, Bytes: m.bytes, Took: m.took, Key: m.key.Number}
		if m.key.IsText {
			list[i].Key = m.key.Text
		}
		if m.tier >= 0 {
			list[i].Tier = status.TierName(s.tiers[m.tier])
		}
	}
	if forget {
		s.line.kept, s.line.lost = nil, 0
	}
	return list
}
