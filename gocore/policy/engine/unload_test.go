package engine

import (
	"fmt"
	"syscall"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// prefetching is an engine that has begun to load checkpoint 0 and will load 1, 2 and 3: of eight, the last four are above.
func prefetching(t *testing.T, guess bool) (*Engine, *History) {
	t.Helper()
	e := New(Config{Flush: Eager, Prefetch: true, Guess: guess, Tiers: []TierConfig{
		{Name: "host", Capacity: 400, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 1000, WriteRate: 1e9, ReadRate: 1e9},
	}})
	h := e.History("h")
	for k := range int64(8) {
		c, err := e.BeginCapture(k, h, model.NumberKey(k), 100, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatal(err, c.Phase)
		}
		e.EndCapture(k, c, true)
		e.Done(k, e.Next(k, anyDown), nil)
	}
	e.count += headroomFor + 1 // no captures are recent
	e.StartPrefetch(10, h)
	return e, h
}

// begin takes the next load, which must be one of checkpoint k; negative: there must be none.
func begin(t *testing.T, e *Engine, k int64) *Transfer {
	t.Helper()
	x := e.Next(10, anyUp)
	switch {
	case k < 0 && x != nil:
		t.Fatalf("%v is loaded, which nobody wants", x.Rec.Key)
	case k >= 0 && (x == nil || x.Rec.Key != model.NumberKey(k)):
		t.Fatalf("not %d is loaded but %+v", k, x)
	}
	return x
}

// Loads that have not begun are withdrawn when their checkpoints are not expected any more, unless a restore waits.
func TestLoadsThatNobodyWantsAreTakenBack(t *testing.T) {
	e, h := prefetching(t, false)
	for k := range int64(4) {
		e.Hint(10, h, []plan.Hint{{Key: model.NumberKey(k)}})
	}
	first := begin(t, e, 0)
	r, err := e.BeginRestore(10, h, model.NumberKey(2), RestoreOptions{})
	if err != nil || r.Phase != Waiting {
		t.Fatal(err, r.Phase)
	}
	e.ClearHints(10, h)
	if used := e.Use(0).Used; used != 200 {
		t.Fatalf("%d bytes are taken by two loads of 100", used)
	}
	second := begin(t, e, 2)
	begin(t, e, -1)
	e.Done(20, first, nil)
	e.Done(20, second, nil)
	if r.Phase != Ready {
		t.Fatal("the restore goes on waiting")
	}
	e.HandOver(21, r)
	e.EndRestore(21, r)

	e.Hint(22, h, []plan.Hint{{Key: model.NumberKey(3)}, {Key: model.NumberKey(1)}})
	x, y := begin(t, e, 3), begin(t, e, 1)
	begin(t, e, -1)
	e.Done(30, x, nil)
	e.Done(30, y, nil)
	for k := range int64(4) {
		if rec := h.Get(model.NumberKey(k)); !e.Complete(rec, 0) {
			t.Errorf("%d is not there", k)
		}
	}
}

// A guess that has proved wrong loads no more than it has begun.
func TestLoadsOfAWrongGuessAreTakenBack(t *testing.T) {
	e, h := prefetching(t, true)
	for _, k := range []int64{7, 6} { // the next are 5 and 4, which are present, and 3 and 2
		restoreNow(t, e, h, k)
	}
	first := begin(t, e, 3)
	restoreNow(t, e, h, 4)
	if h.order.Guessing() {
		t.Fatal("it is still guessed")
	}
	begin(t, e, -1)
	e.Done(20, first, nil)
	begin(t, e, -1)
}

// restoreNow restores a checkpoint in the fastest tier.
func restoreNow(t *testing.T, e *Engine, h *History, k int64) {
	t.Helper()
	r, err := e.BeginRestore(10, h, model.NumberKey(k), RestoreOptions{})
	if err != nil || r.Phase != Ready {
		t.Fatal(k, err, r.Phase)
	}
	e.HandOver(10, r)
	e.EndRestore(10, r)
}

// Withdrawn loads leave nothing behind: no order, no waiting restore, no room.
func TestLoadsTakenBackLeaveNothing(t *testing.T) {
	e, h := prefetching(t, false)
	hint := func(keys ...int64) {
		for _, k := range keys {
			e.Hint(10, h, []plan.Hint{{Key: model.NumberKey(k)}})
		}
	}
	hint(0, 1, 2, 3)
	first := begin(t, e, 0)
	e.ClearHints(10, h)
	hint(3, 1)
	begin(t, e, 3)
	begin(t, e, 1)
	begin(t, e, -1)
	e.Done(20, first, nil)

	r, err := e.BeginRestore(21, h, model.NumberKey(2), RestoreOptions{})
	if err != nil || r.Phase != Waiting {
		t.Fatal(err, r.Phase)
	}
	e.EndRestore(21, r)
	if e.Pending(Want{Direction: Up, Only: AwaitedLoads}) {
		t.Fatal("a load is urgent for which nobody waits")
	}
	for range 100 {
		hint(2)
		e.ClearHints(22, h)
	}
	if l := e.links[0]; l.ahead.len()+l.demand.len() != 0 {
		t.Fatalf("%d loads are queued that were taken back", l.ahead.len()+l.demand.len())
	}
}

// The time for which a transfer waited does not count for its link.
func TestRestedTimeIsNotTheLinks(t *testing.T) {
	var took int64
	e, _, x := raised(t)
	e.cfg.Trace = func(ev Event) { took = ev.Took }
	began := x.began
	x.Rested(30)
	e.Done(began+100, x, nil)
	if took != 70 {
		t.Errorf("took %d, of 100 less 30", took)
	}
}

// A failed restore leaves no claim behind for room that is not needed any more, even if another restore was still reading then.
func TestClaimsOfFailedRestoresAreTakenBack(t *testing.T) {
	for _, expected := range []bool{false, true} {
		t.Run(fmt.Sprint("expected again ", expected), func(t *testing.T) { claimsAreTakenBack(t, expected) })
	}
}

func claimsAreTakenBack(t *testing.T, expected bool) {
	e, h, x := raised(t)
	e.Done(3, x, nil)
	reader, err := e.BeginRestore(3, h, model.NumberKey(0), RestoreOptions{Into: true})
	if err != nil || reader.Phase != Ready {
		t.Fatal(err, reader.Phase)
	}
	full := e.Use(0).Capacity == e.Use(0).Used
	if expected {
		e.Hint(4, h, []plan.Hint{{Key: model.NumberKey(1)}, {Key: model.NumberKey(1)}, {Key: model.NumberKey(1)}})
	}
	r, err := e.BeginRestore(4, h, model.NumberKey(1), RestoreOptions{Patient: true})
	if err != nil || !full || r.Phase != Waiting {
		t.Fatal(err, full, r.Phase)
	}
	past, err := e.BeginRestore(4, h, model.NumberKey(1), RestoreOptions{Into: true, Partial: true})
	if err != nil || past.Phase != Waiting || !past.Direct {
		t.Fatal(err, past.Phase)
	}
	fetch := e.Next(4, anyUp)
	e.GiveUpOnTier(5, 1, Up, syscall.ETIMEDOUT)
	if r.Phase != Ended || r.Err == nil {
		t.Fatal(r.Phase, r.Err)
	}
	if e.tiers[0].claims.len() > 0 {
		t.Error("a claim is left")
	}
	e.Done(6, fetch, nil)
	e.EndRestore(6, past)
	e.EndRestore(7, reader)
	if x := e.Next(10, Want{Direction: Up, Link: AnyLink, Only: Awaited}); x != nil {
		t.Errorf("%v is loaded, for which nobody waits", x.Rec.Key)
	}
	if !expected {
		begin(t, e, -1)
	}
}
