package store

import (
	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// Moment is one event of the timeline, as pictures show it.
type Moment struct {
	At      int64       `json:"t_ns"`
	What    string      `json:"what"`
	History pytext.Text `json:"history"`
	Key     any         `json:"key"`
	Tier    string      `json:"tier"`
	Bytes   int64       `json:"bytes"`
	Took    int64       `json:"dur_ns"`
}

var moments = map[engine.EventKind]string{
	engine.Captured: "capture", engine.Flushed: "flush", engine.Loaded: "load", engine.Restored: "restore",
	engine.Dropped: "drop", engine.Evicted: "evict", engine.Consumed: "consume", callerWaited: "wait",
}

// callerWaited is the one kind of event that the engine does not emit.
const callerWaited engine.EventKind = 255

// timeline keeps the first limit events and counts those that come later.
type timeline struct {
	limit   int
	moments []keptMoment
	lost    int64
	took    int64 // ns of the copy that the engine is being told of
}

// event is an event as it is kept: names are looked up when the timeline is read.
type keptMoment struct {
	at, took, bytes int64
	hist            string
	key             model.Key
	kind            engine.EventKind
	tier            int8
}

// note receives the engine's trace. The lock is held.
func (s *Store) note(ev engine.Event) {
	t := &s.line
	if len(t.moments) >= t.limit {
		t.lost++
		return
	}
	took := ev.Took
	if ev.Kind == engine.Captured || ev.Kind == engine.Restored {
		took = t.took
	}
	t.moments = append(t.moments, keptMoment{
		at: ev.At, took: took, bytes: ev.Rec.Size, hist: ev.Rec.Hist.Name, key: ev.Rec.Key, kind: ev.Kind, tier: int8(ev.Tier),
	})
}

// noteWait records that a caller waited for took ns until now, if it was for a checkpoint. The lock is held.
func (s *Store) noteWait(now, took int64, rec *engine.Record) {
	if rec != nil && s.line.limit > 0 {
		s.note(engine.Event{At: now, Took: took, Kind: callerWaited, Tier: -1, Rec: rec})
	}
}

// Timeline returns the events kept, oldest first.
func (s *Store) Timeline() []Moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Moment, len(s.line.moments))
	for i, m := range s.line.moments {
		list[i] = Moment{At: m.at, What: moments[m.kind], History: pytext.Text(m.hist), Bytes: m.bytes, Took: m.took, Key: m.key.Number}
		if m.key.IsText {
			list[i].Key = pytext.Text(m.key.Text)
		}
		if m.tier >= 0 {
			list[i].Tier = status.TierName(s.tiers[m.tier])
		}
	}
	return list
}

// ForgetTimeline drops the oldest n events, which a caller has read.
func (s *Store) ForgetTimeline(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.line.moments))
	s.line.moments, s.line.lost = append([]keptMoment(nil), s.line.moments[n:]...), 0
}
