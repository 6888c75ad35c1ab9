package store

import (
	"encoding/json"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// Every wait is accounted to its reason, and to no other, and appears in the timeline.
func TestWaitsAreAccountedByReason(t *testing.T) {
	const pause = 20 * time.Millisecond
	for name, x := range map[string]struct {
		ops    vfs.Op
		reason func(c figures.Counters) *int64
		wait   func(h *client) (*operation.Op, status.Code, error)
	}{
		"capture": {vfs.OpWrite, func(c figures.Counters) *int64 { return &c.CaptureWait }, func(h *client) (*operation.Op, status.Code, error) {
			for k := int64(10); ; k++ {
				if op, code, err := h.pending(k, random(piece, 1), operation.CheckpointArgs{}, &operation.Outcome{}); err != nil || code == status.Pending {
					return op, code, err
				}
			}
		}},
		"restore": {vfs.OpRead, func(c figures.Counters) *int64 { return &c.RestoreWait }, func(h *client) (*operation.Op, status.Code, error) {
			return h.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, Into: []model.Region{region(make([]byte, piece), 0)}, FD: h.fd}, &operation.Outcome{})
		}},
		"durable": {vfs.OpWrite, func(c figures.Counters) *int64 { return &c.DurableWait }, func(h *client) (*operation.Op, status.Code, error) {
			return h.s.Wait(h.h, h.mustPut(9, random(piece, 9)).Ticket, status.TierDisk, h.fd)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			fs, rule := blocked(x.ops, 64<<20)
			c := cached(1<<20, 16<<20, fs)
			c.Timeline = 100_000
			s := open(t, c)
			defer rule.Release()
			h := newClient(t, s, "h")
			h.putDown(1, random(piece, 1))
			h.evict(1, piece)
			before, err := s.Stats()
			if err != nil {
				t.Fatal(err)
			}
			rule.Enable()
			op, code, err := x.wait(h)
			if err != nil || code != status.Pending {
				t.Fatal(code, err)
			}
			time.Sleep(pause)
			rule.Release()
			var out operation.Outcome
			if err := drive(t, op, code, h.fd, &out); err != nil {
				t.Fatal(err)
			}
			after, err := s.Stats()
			if err != nil {
				t.Fatal(err)
			}
			waited := *x.reason(after.Waits) - *x.reason(before.Waits)
			if waited < pause.Nanoseconds() || out.Waited != waited {
				t.Errorf("%d ns accounted, the operation says %d", waited, out.Waited)
			}
			*x.reason(after.Waits) = 0
			total := func(c figures.Counters) int64 { return c.CaptureWait + c.RestoreWait + c.DurableWait }
			if others := total(after.Waits) - total(before.Waits); others != waited {
				t.Errorf("%d ns in all, %d for this reason", others, waited)
			}
			if name == "durable" {
				return
			}
			seen := false
			for _, m := range s.Timeline() {
				seen = seen || m.What == "wait" && m.Took == waited
			}
			if !seen {
				t.Error("the timeline does not show the wait")
			}
		})
	}
}

func TestTimeline(t *testing.T) {
	c := cached(1<<20, 16<<20, vfs.NewMem(32<<20))
	c.Timeline = 60
	s := open(t, c)
	h := newClient(t, s, "h")
	for k := range int64(15) {
		h.mustPut(k, random(piece, uint64(k)))
	}
	h.mustGet(0, random(piece, 0), operation.RestoreArgs{})
	h.mustGet(14, random(piece, 14), operation.RestoreArgs{Last: true})
	h.drop(13)
	kinds := map[string]int{}
	last := int64(0)
	events := s.Timeline()
	for _, m := range events {
		kinds[m.What]++
		if m.At < last || m.History != "h" || m.Took < 0 {
			t.Errorf("%+v after %d", m, last)
		}
		last = m.At
		if m.What == "capture" && m.Took == 0 {
			t.Error("a capture took no time")
		}
	}
	for what, n := range map[string]int{"capture": 15, "restore": 2, "consume": 1, "drop": 1} {
		if kinds[what] != n {
			t.Errorf("%d events of %s, not %d: %v", kinds[what], what, n, kinds)
		}
	}
	if kinds["flush"] == 0 || kinds["evict"] == 0 || kinds["load"] == 0 {
		t.Error(kinds)
	}
	if _, err := json.Marshal(events); err != nil {
		t.Fatal(err)
	}
	for k := range int64(100) {
		h.mustPut(k, nil)
	}
	if n := len(s.Timeline()); n != 60 {
		t.Errorf("%d events kept", n)
	}
	if st, err := s.Stats(); err != nil || st.EventsLost == 0 {
		t.Error("what was lost is not counted", err)
	}
	s.ForgetTimeline(len(events))
	if n := len(s.Timeline()); n != 60-len(events) {
		t.Errorf("%d events after forgetting %d of 60", n, len(events))
	}
	drained(t, s)
}

func TestClosedStoreForgetsWhatItKnew(t *testing.T) {
	c := cached(1<<20, 16<<20, vfs.NewMem(32<<20))
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	h := newClient(t, s, "h")
	h.mustPut(1, random(piece, 1))
	l := h.mustLease(1, operation.RestoreArgs{})
	if text, err := s.Layout(1); err != nil || text != l.Layout.Text {
		t.Fatal(text, err)
	}
	shut(t, s)
	release(t, l)
	gone(t, c)
	s.Lock()
	if len(s.Engine.Histories()) != 0 || h.h.h != nil || len(s.Callers) != 0 || s.Users != 0 {
		t.Errorf("still there: %d histories, %d operations, %d users", len(s.Engine.Histories()), len(s.Callers), s.Users)
	}
	s.Unlock()
	_, err = h.h.Keys()
	wants(t, err, status.Closed)
	wants(t, h.h.Drop(model.Key{Number: 1}), status.Closed)
	shut(t, s)
}

func TestCloseCanBeGivenUpAndAskedForAgain(t *testing.T) {
	fs, rule := blocked(vfs.OpWrite, 64<<20)
	c := cached(1<<20, 16<<20, fs)
	c.Flush = "eager"
	s := open(t, c)
	defer rule.Release()
	h := newClient(t, s, "h")
	rule.Enable()
	h.mustPut(1, random(piece, 1))
	eventually(t, "it is being written", func() bool { return rule.Blocked() > 0 })
	fd := eventfd(t)
	op := s.Close(fd)
	if code, err := op.Step(&operation.Outcome{}); code != status.Pending || err != nil {
		t.Fatal(code, err)
	}
	op.Cancel()
	_, err := h.put(2, nil)
	wants(t, err, status.Closed)
	written := foreign(t, fd)
	rule.Release()
	shut(t, s)
	if written() {
		t.Error("a close that was given up rings")
	}
}
