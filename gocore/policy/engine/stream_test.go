package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// Checkpoints that the disk alone has stream past the cache, once, if nothing says that they are wanted again.
func TestStreams(t *testing.T) {
	const size = leastStreamed
	var now int64
	var e *Engine
	var h *History
	begin := func(k int64, o RestoreOptions) (*Restore, *Transfer) {
		t.Helper()
		r, err := e.BeginRestore(now, h, model.NumberKey(k), o)
		if err != nil || r.Phase != Waiting {
			t.Fatal(err, r.Phase)
		}
		return r, e.Next(now, anyUp)
	}
	into := RestoreOptions{Into: true, Streams: true}
	for _, tc := range []struct {
		what   string
		bytes  int64
		o      RestoreOptions
		before func()
		want   TransferKind
	}{
		{"a copy", size, into, nil, Fetch},
		{"the last copy", size, RestoreOptions{Into: true, Streams: true, Last: true}, nil, Fetch},
		{"a lease", size, RestoreOptions{}, nil, Load},
		{"a copy of a small one", size - 1, into, nil, Load},
		{"a copy that cannot stream", size, RestoreOptions{Into: true}, nil, Load},
		{"one that a plan expects again", size, into, func() {
			e.Hint(now, h, []plan.Hint{{Key: model.NumberKey(0)}, {Key: model.NumberKey(0)}})
		}, Load},
		{"one that was streamed", size, into, func() {
			r, x := begin(0, into)
			e.Done(now, x, nil)
			e.HandOver(now, r)
			e.EndRestore(now, r)
		}, Load},
		{"beside a lease that waits", size, into, func() {
			if _, err := e.BeginRestore(now, h, model.NumberKey(0), RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
		}, Load},
	} {
		t.Run(tc.what, func(t *testing.T) {
			e = New(Config{Flush: Eager, Tiers: []TierConfig{
				{Name: "host", Capacity: 2 * size, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 10 * size, Remote: true, WriteRate: 1e9, ReadRate: 1e9},
			}})
			h = e.History("h")
			for k := range int64(4) {
				c, err := e.BeginCapture(now, h, model.NumberKey(k), tc.bytes, 1, nil, CaptureOptions{})
				if err != nil || c.Phase != Ready {
					t.Fatal(err, c.Phase)
				}
				e.EndCapture(now, c, true)
				e.Done(now, e.Next(now, anyDown), nil)
			}
			if tc.before != nil {
				tc.before()
			}
			r, x := begin(0, tc.o)
			if x == nil || x.Kind != tc.want {
				t.Fatalf("%+v, not a transfer of kind %v", x, tc.want)
			}
			e.Done(now, x, nil)
			if r.Phase != Ready || r.Direct != (tc.want == Fetch) {
				t.Errorf("phase %v, past the cache: %v", r.Phase, r.Direct)
			}
			e.HandOver(now, r)
			e.EndRestore(now, r)
		})
	}
}
