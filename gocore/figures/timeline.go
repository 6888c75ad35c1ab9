package figures

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

// Timeline keeps the first Limit events and counts those that come later. The caller serialises all calls.
type Timeline struct {
	Limit   int
	moments []keptMoment
	Lost    int64
	Took    int64 // ns of the copy that the engine is being told of
}

// keptMoment is an event as it is kept: names are looked up when the timeline is read.
type keptMoment struct {
	at, took, bytes int64
	hist            string
	key             model.Key
	kind            engine.EventKind
	tier            int8
}

// Note receives the engine's trace.
func (t *Timeline) Note(ev engine.Event) {
	if len(t.moments) >= t.Limit {
		t.Lost++
		return
	}
	took := ev.Took
	if ev.Kind == engine.Captured || ev.Kind == engine.Restored {
		took = t.Took
	}
	t.moments = append(t.moments, keptMoment{
		at: ev.At, took: took, bytes: ev.Rec.Size, hist: ev.Rec.Hist.Name, key: ev.Rec.Key, kind: ev.Kind, tier: int8(ev.Tier),
	})
}

// NoteWait records that a caller waited for took ns until now, if it was for a checkpoint.
func (t *Timeline) NoteWait(now, took int64, rec *engine.Record) {
	if rec != nil && t.Limit > 0 {
		t.Note(engine.Event{At: now, Took: took, Kind: callerWaited, Tier: -1, Rec: rec})
	}
}

// List returns the events kept, oldest first. tiers are the numbers of the engine's tiers in the C contract.
func (t *Timeline) List(tiers []int) []Moment {
	list := make([]Moment, len(t.moments))
	for i, m := range t.moments {
		list[i] = Moment{At: m.at, What: moments[m.kind], History: pytext.Text(m.hist), Bytes: m.bytes, Took: m.took, Key: m.key.Number}
		if m.key.IsText {
			list[i].Key = pytext.Text(m.key.Text)
		}
		if m.tier >= 0 {
			list[i].Tier = status.TierName(tiers[m.tier])
		}
	}
	return list
}

// Forget drops the oldest n events, which a caller has read.
func (t *Timeline) Forget(n int) {
	n = min(n, len(t.moments))
	t.moments, t.Lost = append([]keptMoment(nil), t.moments[n:]...), 0
}
