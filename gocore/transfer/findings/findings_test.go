package findings

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// Which calls return which findings about a lent load.
func TestFindings(t *testing.T) {
	h, other := &engine.History{Name: "h"}, &engine.History{Name: "other"}
	record := func(h *engine.History) *engine.Record {
		return &engine.Record{Hist: h, Version: &checkpoint.Version{Layout: &checkpoint.Layout{ID: 7}}}
	}
	corrupt := checkpoint.Damaged(1, status.TierHost)
	type load struct {
		bad []int32
		err error
	}
	for name, tc := range map[string]struct {
		given []int32
		ahead bool
		ended load
		want  status.Code
		text  string
	}{
		"well":                       {[]int32{0, 1}, true, load{}, status.OK, ""},
		"wrong":                      {[]int32{0, 1}, true, load{bad: []int32{1}, err: corrupt}, status.Belated, `{"history":"h","key":0,"layout":7}`},
		"wrong elsewhere":            {[]int32{0}, true, load{bad: []int32{1}, err: corrupt}, status.OK, ""},
		"wrong in several":           {[]int32{2}, true, load{bad: []int32{1, 2}, err: corrupt}, status.Belated, ""},
		"wrong, and given to nobody": {nil, true, load{bad: []int32{1}, err: corrupt}, status.OK, ""},
		"it cannot be told":          {[]int32{0}, true, load{err: status.New(status.IO, "why")}, status.Belated, `"unverified":"why"`},
		"an error of nobody's":       {[]int32{0}, true, load{err: errors.New("why")}, status.Belated, `"unverified":`},
		"the device is lost":         {[]int32{0}, true, load{err: status.New(status.DeviceLost, "gone")}, status.DeviceLost, ""},
		"failed before it was given": {nil, false, load{err: status.New(status.IO, "why")}, status.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b List
			rec := record(h)
			b.Lend(rec, tc.given)
			if b.Pending(h, b.LentLoads) != (tc.given != nil) || b.Pending(nil, b.LentLoads) != (tc.given != nil) || b.Pending(other, b.LentLoads) {
				t.Error("pending")
			}
			if b.End(&engine.Transfer{Rec: rec, Early: tc.ahead}, tc.ended.bad, tc.ended.err) != (tc.given != nil) || b.Pending(nil, b.LentLoads) {
				t.Error("still pending")
			}
			if doubted := b.suspects[rec] != nil; doubted != (tc.ahead && tc.ended.err != nil) {
				t.Errorf("doubted: %v", doubted)
			}
			if err := b.TakeFinding(other, true); err != nil {
				t.Errorf("another history is told %v", err)
			}
			if err := b.TakeFinding(h, false); tc.want != status.Belated && err != nil {
				t.Errorf("a restore is told %v", err)
			} else if tc.want == status.Belated {
				if status.CodeOf(err) != status.Belated || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("told %q", err)
				}
			}
			if err := b.TakeFinding(nil, true); tc.want == status.DeviceLost {
				if status.CodeOf(err) != status.DeviceLost {
					t.Errorf("told %v", err)
				}
			} else if err != nil {
				t.Errorf("told twice: %v", err)
			}
			b.Forget(rec)
			if len(b.suspects)+len(b.lent)+len(b.found) > 0 {
				t.Errorf("left: %+v", b)
			}
		})
	}
	var b List
	first, second := record(h), record(h)
	b.Lend(first, []int32{0})
	before := b.LentLoads
	b.Lend(second, []int32{0})
	b.Lend(first, []int32{1})
	b.End(&engine.Transfer{Rec: first, Early: true}, nil, nil)
	if b.Pending(h, before) || !b.Pending(h, b.LentLoads) {
		t.Error("a wait is for what was given before it began")
	}
	for range 2 * mostFound {
		b.Lend(first, []int32{1})
		b.End(&engine.Transfer{Rec: first, Early: true}, []int32{1}, corrupt)
	}
	last := record(other)
	b.Lend(last, []int32{1})
	b.End(&engine.Transfer{Rec: last, Early: true}, []int32{1}, corrupt)
	if len(b.found) != mostFound+1 || b.TakeFinding(other, false) == nil {
		t.Errorf("%d findings kept, and none of the other history", len(b.found))
	}
}

// Whatever the names of a history and a key, a finding's text is valid JSON that fits.
func TestSubjectsFit(t *testing.T) {
	names := []string{"h", "", strings.Repeat("<", 300), strings.Repeat("\x01", 300), strings.Repeat("ä", 490), strings.Repeat("k", 5000), "\xed\xa0\x80", "\xff"}
	for _, history := range names {
		for _, key := range names {
			rec := &engine.Record{Hist: &engine.History{Name: history}, Key: model.Key{Text: key, IsText: true}, Version: &checkpoint.Version{Layout: &checkpoint.Layout{ID: 7}}}
			text := subjectOf(rec, strings.Repeat("\x02", 200))
			var got struct {
				History, Key *string
				Layout       uint64
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil || len(text) > 1004 || got.Layout != 7 {
				t.Fatalf("%q, %q: %d bytes, %v", history, key, len(text), err)
			}
			if got.History != nil && *got.History != history || got.Key != nil && *got.Key != key {
				t.Errorf("%q, %q: told as %q, %q", history, key, *got.History, *got.Key)
			}
			if len(history) < 10 && utf8.ValidString(history) && got.History == nil || len(key) < 10 && utf8.ValidString(key) && got.Key == nil {
				t.Errorf("%q, %q are not told", history, key)
			}
		}
	}
}
