package engine

import (
	"syscall"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// raised is an engine whose checkpoint 0 is below and is being prefetched.
func raised(t *testing.T) (*Engine, *History, *Transfer) {
	t.Helper()
	e := New(Config{Flush: Eager, Prefetch: true, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "host", Capacity: 1000, WriteRate: 1e9, ReadRate: 1e9},
	}})
	h := e.History("h")
	for k := range int64(2) {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 100, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatal(err, c.Phase)
		}
		e.EndCapture(0, c, true)
		e.Done(1, e.Next(0, anyDown), nil)
	}
	e.count += headroomFor + 1
	e.StartPrefetch(2, h)
	e.Hint(2, h, []plan.Hint{{Key: model.NumberKey(0)}, {Key: model.NumberKey(0)}, {Key: model.NumberKey(0)}})
	x := e.Next(2, anyUp)
	if x == nil || x.Kind != Load {
		t.Fatalf("no prefetch: %+v", x)
	}
	return e, h, x
}

// A failed prefetch is not repeated, since it would fail again. A restore tries.
func TestFailedPrefetchesAreNotRepeated(t *testing.T) {
	for name, queued := range map[string]bool{"before it is queued": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			e, h, x := raised(t)
			if queued {
				e.Queued(3, x)
			}
			e.Done(3, x, syscall.EIO)
			if e.Use(0).Used != 0 {
				t.Fatal("the bad copy stays")
			}
			if e.Pending(anyUp) {
				t.Fatal("it is prefetched once more")
			}
			r, err := e.BeginRestore(4, h, model.NumberKey(0), RestoreOptions{})
			if err != nil || r.Phase != Waiting {
				t.Fatal(err, r.Phase)
			}
			if x = e.Next(4, anyUp); x == nil || x.Rec != r.Rec {
				t.Fatalf("a restore waits, and %+v", x)
			}
		})
	}
}

// A reader was given the bytes of a load that fails. The copy stays for that reader; other restores read past it. It is freed when the reader ends,
// and is not prefetched either.
func TestSpoiledCopyLeavesWithItsReader(t *testing.T) {
	e, h, x := raised(t)
	e.Queued(3, x)
	r, err := e.BeginRestore(3, h, model.NumberKey(0), RestoreOptions{})
	if err != nil || r.Phase != Ready || r.Tier != 0 {
		t.Fatal(err, r.Phase)
	}
	e.HandOver(3, r)
	e.Done(4, x, syscall.EIO)
	if e.Complete(r.Rec, 0) || e.Use(0).Used != 100 {
		t.Fatalf("complete %v, %d used", e.Complete(r.Rec, 0), e.Use(0).Used)
	}
	other, err := e.BeginRestore(5, h, model.NumberKey(0), RestoreOptions{})
	if err != nil || other.Phase != Waiting {
		t.Fatal(err, other.Phase)
	}
	f := e.Next(5, anyUp)
	if f == nil || f.Kind != Fetch || f.From != 1 {
		t.Fatalf("%+v", f)
	}
	e.Done(6, f, nil)
	e.HandOver(6, other)
	e.EndRestore(6, other)
	e.EndRestore(7, r)
	if e.Use(0).Used != 0 || e.Pending(anyUp) {
		t.Fatalf("%d used, pending %v", e.Use(0).Used, e.Pending(anyUp))
	}
}

// Only loads of live versions to the fastest tier count before they end.
func TestQueuedOfWhatDoesNotCount(t *testing.T) {
	e, h, x := raised(t)
	e.Drop(3, h, model.NumberKey(0))
	e.Queued(3, x)
	if x.Early {
		t.Error("a load of what is gone counts")
	}
	e.Done(3, x, nil)

	e = New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "host", Capacity: 100, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 1000, Remote: true},
	}})
	h = e.History("h")
	for k := range int64(3) {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 100, 1, nil, CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for c.Phase == Waiting {
			e.Done(1, e.Next(0, anyDown), nil)
		}
		e.EndCapture(0, c, true)
	}
	r, err := e.BeginRestore(4, h, model.NumberKey(0), RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for x = e.Next(4, anyUp); x == nil; x = e.Next(4, anyUp) {
		e.Done(4, e.Next(4, anyDown), nil)
	}
	if x.Kind != Load || x.To != 1 {
		t.Fatalf("%+v", x)
	}
	if e.Queued(5, x); x.Early || e.Complete(r.Rec, 1) {
		t.Error("a load to the tier between counts: others could spread what is wrong with it")
	}
	e.Done(5, x, nil)
	if !e.Complete(r.Rec, 1) {
		t.Error("it never counts")
	}
}
