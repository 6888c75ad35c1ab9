package store

import (
	"cmp"
	"slices"

	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/retention"
	"velocpy/gocore/tier/disk"
)

// Retain sets the rule of the history, in place of the previous one, and applies it to the existing checkpoints. A durable store stores the rule in
// the catalog.
func (h *History) Retain(r model.Retention) error {
	s := h.s
	if err := s.EnterToWrite(); err != nil {
		return err
	}
	defer s.Leave()
	if s.Disk != nil {
		s.Disk.SetRule(h.h.Name, &r)
	}
	h.retain(&r)
	return nil
}

// retain applies a rule. The lock is held.
func (h *History) retain(r *model.Retention) {
	h.retention = nil
	if r.None() {
		return
	}
	x := retention.New(r)
	for _, c := range h.s.histories.candidates(h, x) {
		x.Add(c)
	}
	h.retention = x
	h.s.histories.prune(h)
}

// rule returns the history's present rule.
func (h *History) rule() *model.Retention {
	if h.retention == nil {
		return &model.Retention{}
	}
	return h.retention.Rule
}

// rule returns the present rule of a history.
func (hs *histories) rule(history string) *model.Retention { return hs.byName[history].rule() }

// candidates returns the checkpoints of a history that count, in the order of writing, as candidates of a retention.
func (hs *histories) candidates(h *History, x *retention.Kept) []retention.Candidate {
	var all []retention.Candidate
	h.h.Each(func(r *engine.Record) {
		if at, ok := hs.counts(r); ok {
			all = append(all, candidateOfRecord(x.Rule, at, r))
		}
	})
	if hs.Disk != nil {
		hs.Disk.EachNotLoaded(h.h, func(k model.Key, serial uint64) {
			all = append(all, candidateOfRow(x.Rule, hs.Disk, h.h, retention.Written{At: int64(serial), Key: k}))
		})
	}
	slices.SortFunc(all, func(a, b retention.Candidate) int { return cmp.Compare(a.At, b.At) })
	return all
}

// counts tells whether a checkpoint counts for retention, and its time of writing.
func (hs *histories) counts(r *engine.Record) (at int64, ok bool) {
	if !hs.IsDurable() {
		return r.Written(), r.Captured()
	}
	//mutation:undurable-counts-for-retention
	return int64(r.Version.Serial), hs.Disk.Has(r)
}

// countForRetention records that a version counts. The lock is held. The engine must not call it, since prune calls the engine.
func (hs *histories) countForRetention(r *engine.Record) {
	h := hs.byName[r.Hist.Name]
	if h.retention == nil || r.Gone() {
		return
	}
	if at, ok := hs.counts(r); ok {
		h.retention.Add(candidateOfRecord(h.retention.Rule, at, r))
		hs.prune(h)
	}
}

// prune drops the checkpoints that the rule of a history does not keep.
func (hs *histories) prune(h *History) {
	for _, w := range h.retention.Unkept() {
		r := h.h.Get(w.Key)
		if r == nil {
			continue
		}
		if at, ok := hs.counts(r); ok && at == w.At { // otherwise the key was written again, and counts later
			hs.Engine.Drop(hs.Now(), h.h, w.Key)
		}
	}
}

// candidateOf scores a checkpoint by its meta, if the rule keeps the best. text is the text of the checkpoint's layout.
func candidateOf(rule *model.Retention, w retention.Written, text, meta string) retention.Candidate {
	c, b := retention.Candidate{Written: w}, &rule.Best
	if b.Count == 0 {
		return c
	}
	n, ok := description.Number(text, meta, b.By)
	c.Score, c.Scored = b.Score(n), ok
	return c
}

// candidateOfRecord is candidateOf for a checkpoint of which the engine has a record.
func candidateOfRecord(rule *model.Retention, at int64, r *engine.Record) retention.Candidate {
	return candidateOf(rule, retention.Written{At: at, Key: r.Key}, r.Version.Layout.Text, r.Version.Meta)
}

// candidateOfRow is candidateOf for a checkpoint that only the catalog has. It reads the meta from the catalog and makes no record.
func candidateOfRow(rule *model.Retention, d *disk.Tier, h *engine.History, w retention.Written) retention.Candidate {
	if rule.Best.Count == 0 {
		return retention.Candidate{Written: w}
	}
	text, meta, ok := d.Meta(h.Name, w.Key)
	if !ok {
		return retention.Candidate{Written: w}
	}
	return candidateOf(rule, w, text, meta)
}
