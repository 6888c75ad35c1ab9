// Package findings records which unverified bytes of loads to a device callers have, and the errors that the device finds in them later.
package findings

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

// List records which regions callers were given before they were verified: restores to a device do not wait until the bytes loaded for them have been
// verified there. It also has the errors that the device found afterwards. The caller serialises all calls.
type List struct {
	lent      map[*engine.Record]*lentLoad // regions that callers have of loads that have not ended
	LentLoads int64                        // number of loads lent to callers before their checksums were verified
	suspects  map[*engine.Record]error     // the error of such a load; the next load of the record is verified before a caller gets any of it
	found     []finding
}

// lentLoad lists the regions of one load that callers have.
type lentLoad struct {
	regions []int32
	number  int64
}

// finding is an error of a deferred verification. The next restore or wait of its history returns it, once, or else Close does. An error of a lost
// device is returned by waits only, since restores fail there anyway.
type finding struct {
	history *engine.History
	err     *status.Error
}

// mostFound bounds the findings that are kept for histories with at least one finding: the first ones show where to look. All findings are logged.
const mostFound = 64

// Lend records that a caller has regions of a load that has not ended.
func (b *List) Lend(rec *engine.Record, regions []int32) {
	if len(regions) == 0 {
		return
	}
	g := b.lent[rec]
	if g == nil {
		b.LentLoads++
		g = &lentLoad{number: b.LentLoads}
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

// End records the result of a load to a device. It returns whether callers had been lent regions of it, in which case waits may be over.
func (b *List) End(x *engine.Transfer, bad []int32, err error) (some bool) {
	g := b.lent[x.Rec]
	delete(b.lent, x.Rec)
	switch {
	case err == nil:
		delete(b.suspects, x.Rec)
	case x.Early:
		if b.suspects == nil {
			b.suspects = map[*engine.Record]error{}
		}
		b.suspects[x.Rec] = err
		if g != nil {
			b.record(x.Rec, g.regions, bad, err)
		}
	}
	return g != nil
}

// record records the error of regions that callers have.
func (b *List) record(rec *engine.Record, regions, bad []int32, failure error) {
	var why *status.Error
	if !errors.As(failure, &why) {
		why = status.Wrap(status.Internal, failure, "unexpected")
	}
	region, unverified := status.RegionNone, ""
	switch why.Code {
	case status.Corrupt:
		at := slices.IndexFunc(bad, func(i int32) bool { return slices.Contains(regions, i) })
		if at < 0 {
			return
		}
		region = int(bad[at])
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

func (b *List) keep(f finding) {
	if len(b.found) < mostFound || !slices.ContainsFunc(b.found, func(k finding) bool { return k.history == f.history }) {
		b.found = append(b.found, f)
	}
}

// subject identifies a checkpoint to the caller's side of the contract, which knows the names of a layout's regions.
type subject struct {
	History    any    `json:"history"` // null: too long for the error's text, or not UTF-8
	Key        any    `json:"key"`     // null: as for history
	Layout     uint64 `json:"layout"`
	Unverified string `json:"unverified,omitempty"` // why the load could not be verified; empty: it was, and the bytes are wrong
}

// An error has room for 1004 bytes of text.
const (
	longestSubject = 1000
	longestReason  = 100
)

func subjectOf(rec *engine.Record, unverified string) string {
	about := subject{History: spoken(rec.Hist.Name), Key: rec.Key.Number, Layout: rec.Version.Layout.ID, Unverified: unverified}
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
	_ = e.Encode(s) // it encodes numbers and text, and cannot fail
	return string(bytes.TrimSpace(text.Bytes()))
}

func spoken(name string) any {
	if len(name) > longestSubject || !utf8.ValidString(name) {
		return nil
	}
	return name
}

// Pending tells whether one of the loads that were lent first, up to a number of them, is still to be verified; h nil: of any history.
func (b *List) Pending(h *engine.History, most int64) bool {
	for rec, g := range b.lent {
		if g.number <= most && (h == nil || rec.Hist == h) {
			return true
		}
	}
	return false
}

// TakeFinding removes and returns the first finding of a history; h nil: of any. It returns nil when there is none. wait includes findings about lost
// devices.
func (b *List) TakeFinding(h *engine.History, wait bool) error {
	for i, f := range b.found {
		if (h == nil || f.history == h) && (wait || f.err.Code != status.DeviceLost) {
			b.found = slices.Delete(b.found, i, i+1)
			return f.err
		}
	}
	return nil
}

// Forget drops the entries of a record that is gone.
func (b *List) Forget(rec *engine.Record) {
	delete(b.lent, rec)
	delete(b.suspects, rec)
}

// Suspect returns the error of the latest load of a record, if callers could have had its bytes before; nil for any other.
func (b *List) Suspect(rec *engine.Record) error { return b.suspects[rec] }

// Suspects is the number of records whose latest load was wrong, or could not be verified.
func (b *List) Suspects() int { return len(b.suspects) }

// Found is the number of findings that no caller has been told of.
func (b *List) Found() int { return len(b.found) }

// TakeAll removes all findings, and returns the first that is not the loss of a device.
func (b *List) TakeAll() error {
	err := b.TakeFinding(nil, false)
	b.found = nil
	return err
}

// Clear forgets all records.
func (b *List) Clear() { b.lent, b.suspects = nil, nil }
