package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/status"
	"velocpy/gocore/policy/engine"
)

// Restores to a device are not held up until what comes up for them has been verified there. belated is the account of what callers have been given
// meanwhile, and of what the device found out about it. All of it is under the store's lock.
type deferredVerification struct {
	lent  map[*engine.Record]*lentLoad // what callers have of loads that still run
	lentLoads  int64                     // how often a load was begun to be given
	suspects map[*engine.Record]error  // why such a load failed: the next one is verified before anybody is given anything of it
	found  []finding
}

// lentLoad is what callers have of a load.
type lentLoad struct {
	regions []int32
	number    int64
}

// finding is what the next restore or wait of the history tells, once, or the end of the store; of a lost device a wait alone, as all else fails there.
type finding struct {
	history *engine.History
	err     *status.Error
}

// mostFound bounds what is kept to be told of histories of which something is kept: the first findings say where to look. All of them are logged.
const mostFound = 64

// lend notes that a caller has regions of a load that still runs.
func (b *deferredVerification) lend(rec *engine.Record, regions []int32) {
	if len(regions) == 0 {
		return
	}
	g := b.lent[rec]
	if g == nil {
		b.lentLoads++
		g = &lentLoad{number: b.lentLoads}
		if b.lent == nil {
			b.lent = map[*engine.Record]*lentLoad{}
		}
		b.lent[rec] = g
	}
	for _, i := range regions {
		if !slices.Contains(g.regions, i) {
			g.regions = append(g.regions, i)
		}
	}
}

// end takes note of how a load to a device has ended, and tells whether callers had been given something of it: a wait may be over.
func (b *deferredVerification) end(x *engine.Transfer, m *moved) (some bool) {
	g := b.lent[x.Rec]
	delete(b.lent, x.Rec)
	switch {
	case m.err == nil:
		delete(b.suspects, x.Rec)
	case x.Early:
		if b.suspects == nil {
			b.suspects = map[*engine.Record]error{}
		}
		b.suspects[x.Rec] = m.err
		if g != nil {
			b.record(x.Rec, g.regions, m)
		}
	}
	return g != nil
}

// record records what is wrong with regions that callers have.
func (b *deferredVerification) record(rec *engine.Record, regions []int32, m *moved) {
	var why *status.Error
	if !errors.As(m.err, &why) {
		why = status.Wrap(status.Internal, m.err, "unexpected")
	}
	region, unverified := status.RegionNone, ""
	switch why.Code {
	case status.Corrupt:
		at := slices.IndexFunc(m.bad, func(i int32) bool { return slices.Contains(regions, i) })
		if at < 0 {
			return
		}
		region = int(m.bad[at])
	case status.DeviceLost:
		b.keep(finding{rec.Hist, why})
		return
	default:
		unverified = why.Message()
	}
	err := status.New(status.Belated, "%s", subjectOf(rec, unverified)).AtTier(why.Tier).AtRegion(region)
	logring.Add(logring.Error, "what a restore gave cannot be relied on: "+err.Error())
	b.keep(finding{rec.Hist, err})
}

func (b *deferredVerification) keep(f finding) {
	if len(b.found) < mostFound || !slices.ContainsFunc(b.found, func(k finding) bool { return k.history == f.history }) {
		b.found = append(b.found, f)
	}
}

// subject names a checkpoint to the other side of the contract, which knows what the regions of a layout are called.
type subject struct {
	History    any    `json:"history"` // null: it cannot be told, as it is too long or no UTF-8
	Key        any    `json:"key"`     // the same
	Layout     uint64 `json:"layout"`
	Unverified string `json:"unverified,omitempty"` // why it could not be verified
}

// An error has room for 1004 bytes of text.
const (
	longestSubject = 1000
	longestReason  = 100
)

func subjectOf(rec *engine.Record, unverified string) string {
	about := subject{History: spoken(rec.Hist.Name), Key: rec.Key.Number, Layout: rec.Body.(*body).layout.id, Unverified: unverified}
	if rec.Key.IsText {
		about.Key = spoken(rec.Key.Text)
	}
	if len(unverified) > longestReason {
		about.Unverified = unverified[:longestReason]
	}
	for text := about.encode(); ; text = about.encode() {
		switch {
		case len(text) <= longestSubject:
			return text
		case about.History == nil || about.Key != nil && len(rec.Key.Text) >= len(rec.Hist.Name):
			about.Key = nil
		default:
			about.History = nil
		}
	}
}

func (s *subject) encode() string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // of numbers and text: it cannot fail
	return string(bytes.TrimSpace(text.Bytes()))
}

func spoken(name string) any {
	if len(name) > longestSubject || !utf8.ValidString(name) {
		return nil
	}
	return name
}

// pending tells whether anything of the gifts up to a number is still to be verified: of a history, or, with nil, of any.
func (b *deferredVerification) pending(h *engine.History, gifts int64) bool {
	for rec, g := range b.lent {
		if g.number <= gifts && (h == nil || rec.Hist == h) {
			return true
		}
	}
	return false
}

// takeFinding takes out the first finding about a history, or, with nil, about any; nil when there is none. wait: also of lost devices.
func (b *deferredVerification) takeFinding(h *engine.History, wait bool) error {
	for i, f := range b.found {
		if (h == nil || f.history == h) && (wait || f.err.Code != status.DeviceLost) {
			b.found = slices.Delete(b.found, i, i+1)
			return f.err
		}
	}
	return nil
}

// forget lets go of a record that has gone.
func (b *deferredVerification) forget(rec *engine.Record) {
	delete(b.lent, rec)
	delete(b.suspects, rec)
}

// wrong is why a restore that has waited for a load must not be given what it brought; nil when it may.
func (op *Op) wrong() error {
	s, r := op.s, op.restore
	if s.eng.Complete(r.Rec, r.Tier) {
		return nil
	}
	if why := s.deferred.suspects[r.Rec]; why != nil {
		return s.explain(why, r.Rec)
	}
	return s.corrupt(r.Rec, status.RegionNone, r.Tier) // the store has been closed meanwhile
}

// notifyWaits looks again at the waits, which may be over.
func (s *Store) notifyWaits() {
	for op := range s.ops {
		if op.kind == waitOp {
			op.notifier.notify()
		}
	}
}
