package engine

import (
	"errors"
	"fmt"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"

	"pgregory.net/rapid"
)

func smallDisk(host, disk int64) (*Engine, *History) {
	e := New(Config{Tiers: []TierConfig{{Name: "host", Capacity: host, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: disk, Remote: true}}})
	return e, e.History("h")
}

// written begins a capture, which the caller copies at once if it has room.
func written(t *testing.T, e *Engine, h *History, k, size int64) *Capture {
	t.Helper()
	c, err := e.BeginCapture(0, h, model.NumberKey(k), size, 1, nil, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Phase == Ready {
		e.EndCapture(0, c, true)
	}
	return c
}

// onDisk is written, and flushed.
func onDisk(t *testing.T, e *Engine, h *History, k, size int64) {
	t.Helper()
	e.Await(0, []*Record{written(t, e, h, k, size).Rec}, 1)
	carryDown(e)
}

func carryDown(e *Engine) (flushed []model.Key) {
	for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
		flushed = append(flushed, x.Rec.Key)
		e.Done(0, x, nil)
	}
	return flushed
}

// A flush that is too large for the rest of the disk lets a smaller one pass, for which a capture waits.
func TestAFlushThatDoesNotFitStepsAside(t *testing.T) {
	e, h := smallDisk(10, 8)
	onDisk(t, e, h, 0, 3)
	large, small := written(t, e, h, 1, 7), written(t, e, h, 2, 2) // large and small in the place of the first one
	wait := e.Await(0, []*Record{large.Rec}, 1)
	c := written(t, e, h, 3, 3)
	if c.Phase != Waiting {
		t.Fatalf("phase %d, %v", c.Phase, c.Err)
	}
	if flushed := carryDown(e); len(flushed) != 1 || flushed[0] != small.Rec.Key {
		t.Fatalf("%v were flushed", flushed)
	}
	if c.Phase != Ready {
		t.Errorf("the capture: phase %d, %v", c.Phase, c.Err)
	}
	if wait.Phase != Ended || !errors.Is(wait.Err, ErrFull) {
		t.Errorf("the wait for the large one: phase %d, %v", wait.Phase, wait.Err)
	}
	if w := e.Await(0, []*Record{small.Rec}, 1); w.Phase != Ended || w.Err != nil {
		t.Errorf("the wait for the small one: phase %d, %v", w.Phase, w.Err)
	}
}

// Of many requested flushes, the first that has room goes, however many before it have none. A wait for it does not fail for lack of room. A second
// wait for another one fails only after a retry.
func TestTheFirstFlushThatFitsGoes(t *testing.T) {
	e, h := smallDisk(1000, 105)
	onDisk(t, e, h, 0, 100)
	var large []*Record
	for k := range int64(10) {
		large = append(large, written(t, e, h, 1+k, 60-5*k).Rec)
	}
	many := e.Await(0, large, 1)
	small := written(t, e, h, 11, 5).Rec
	one := e.Await(0, []*Record{small}, 1)
	x := e.Next(0, Want{Direction: Down})
	if x == nil || x.Rec != small {
		t.Fatalf("%+v is written, pending %v", x, e.Pending(Want{Direction: Down}))
	}
	if many.Phase != Ended || !errors.Is(many.Err, ErrFull) || one.Phase != Waiting {
		t.Fatalf("the large ones: phase %d, %v; the small one: phase %d, %v", many.Phase, many.Err, one.Phase, one.Err)
	}
	e.Done(1, x, nil)
	if one.Phase != Ended || one.Err != nil {
		t.Errorf("phase %d, %v", one.Phase, one.Err)
	}
	again := e.Await(2, large[:1], 1)
	if again.Phase != Waiting {
		t.Fatalf("phase %d, %v, before it was tried", again.Phase, again.Err)
	}
	if x := e.Next(2, anyDown); x != nil || again.Phase != Ended || !errors.Is(again.Err, ErrFull) {
		t.Errorf("%+v; phase %d, %v", x, again.Phase, again.Err)
	}
}

// A claim that waits for the room of a refused flush requests other flushes at once. A worker that serves this link alone finds them.
func TestWhoeverWaitsForARefusedFlushAsksForOthers(t *testing.T) {
	e, h := smallDisk(82, 60)
	e.Reserve(1, func(yield func(from, end int64) bool) { yield(0, 30) })
	large, one, other := written(t, e, h, 0, 40).Rec, written(t, e, h, 1, 21).Rec, written(t, e, h, 2, 21).Rec
	for _, r := range []*Record{large, one, other} {
		if e.unqueue(0, e.links[0], &r.own) {
			e.updateCopy(0, &r.own, 0)
		}
	}
	c := written(t, e, h, 3, 40)
	if c.Phase != Waiting || large.own.queuedOn == 0 || one.own.queuedOn != 0 {
		t.Fatalf("phase %d, %v", c.Phase, c.Err)
	}
	if x := e.Next(0, Want{Direction: Down}); x == nil || x.Rec != one {
		t.Errorf("%+v; pending %v", x, e.Pending(Want{Direction: Down}))
	}
}

// A flush that Redo repeats finds no room if its own is kept. The wait for it fails.
func TestAFlushThatIsDoneAgainAndFindsNoRoom(t *testing.T) {
	e := New(Config{Catalog: &rows{keeps: func(*Record) bool { return true }}, Tiers: []TierConfig{
		{Name: "host", Capacity: 200, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 100, Remote: true, Durable: true},
	}})
	h := e.History("h")
	first := written(t, e, h, 0, 60).Rec
	w := e.Await(0, []*Record{first}, 1)
	x := e.Next(0, anyDown)
	if x == nil || x.Rec != first {
		t.Fatalf("%+v", x)
	}
	second := e.Await(0, []*Record{written(t, e, h, 1, 50).Rec}, 1)
	if other := e.Next(0, anyDown); other != nil || len(e.links[0].refused) != 0 || second.Phase == Ended {
		t.Fatalf("%+v, refused %v: the first may replace something", other, e.links[0].refused)
	}
	e.Retire(1, x.ToOff, x.ToOff+60)
	e.Redo(1, x)
	carryDown(e)
	for _, w := range []*Wait{w, second} {
		if w.Phase != Ended || !errors.Is(w.Err, ErrFull) {
			t.Errorf("phase %d, %v", w.Phase, w.Err)
		}
	}
}

// A transfer under way to a tier with a catalog may replace a version there. No wait fails for lack of room before it has ended; then there is room,
// or none.
func TestAFlushWaitsForWhatMayReplaceSomething(t *testing.T) {
	for name, replaces := range map[string]bool{"it does": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{Catalog: &rows{}, Tiers: []TierConfig{
				{Name: "host", Capacity: 200, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 100, Remote: true, Durable: true},
			}})
			e.Reserve(1, func(yield func(from, end int64) bool) { yield(0, 40) })
			h := e.History("h")
			e.Await(0, []*Record{written(t, e, h, 0, 40).Rec}, 1)
			x := e.Next(0, anyDown)
			w := e.Await(0, []*Record{written(t, e, h, 1, 40).Rec}, 1)
			if other := e.Next(0, anyDown); x == nil || other != nil || w.Phase == Ended {
				t.Fatalf("%+v, then %+v; phase %d, %v", x, other, w.Phase, w.Err)
			}
			if replaces && !e.Release(1, 1, 0, 40) {
				t.Fatal("it was not reserved")
			}
			e.Done(1, x, nil)
			carryDown(e)
			if w.Phase != Ended || replaces != (w.Err == nil) || !replaces && !errors.Is(w.Err, ErrFull) {
				t.Errorf("phase %d, %v", w.Phase, w.Err)
			}
		})
	}
}

// A checkpoint without room below does not keep later captures from being flushed in the background.
func TestALargeOneDoesNotHoldUpFlushesInTheBackground(t *testing.T) {
	e, h := smallDisk(1000, 700)
	onDisk(t, e, h, 1000, 300)
	written(t, e, h, 999, 450)
	for k := range int64(90) {
		if c := written(t, e, h, k, 10); c.Phase != Ended || c.Err != nil {
			t.Fatalf("capture %d: phase %d, %v", k, c.Phase, c.Err)
		}
		carryDown(e)
	}
}

// The engine finds out once that nothing can be flushed, not with every capture that finds no room. No capture scans a full tier again, even if
// something smaller was dirty before.
func TestWhenNothingCanGoDownNobodyLooksAgain(t *testing.T) {
	for _, small := range []bool{false, true} {
		t.Run(fmt.Sprint("a small one ", small), func(t *testing.T) {
			e, h := smallDisk(115, 50)
			onDisk(t, e, h, 0, 20)
			if small {
				written(t, e, h, 1, 1)
			}
			for k := range int64(2) {
				if c := written(t, e, h, 2+k, 45); c.Err != nil || c.Phase != Ended {
					t.Fatal(c.Phase, c.Err)
				}
			}
			if e.Drop(0, h, model.NumberKey(1)) != small {
				t.Fatal("no small one")
			}
			c := written(t, e, h, 4, 45)
			carryDown(e)
			if l := e.links[0]; !errors.Is(c.Err, ErrFull) || l.dirty.count != 2 || !l.refusesAll() {
				t.Errorf("%v; %d dirty ones, of which %d bytes may go; refused %v, the least is %v", c.Err, l.dirty.count, e.passable(e.tiers[0]), l.refused, l.dirty.least)
			}
		})
	}
}

// The flushable bytes bound how large a window is searched for in a full tier.
func TestNobodyLooksForMoreThanMayGo(t *testing.T) {
	e, h := smallDisk(1000, 50)
	onDisk(t, e, h, 0, 20)
	e.Await(0, []*Record{written(t, e, h, 1, 45).Rec}, 1)
	carryDown(e) // needs above 30 are refused
	for k := int64(2); e.tiers[0].bytes[fragment.Gap] >= 45; k++ {
		written(t, e, h, k, 45)
	}
	demand := evict.Request{Size: 100, FlushRate: 1, Barred: func(fragment.ID) bool { return true }}
	if host := e.tiers[0]; host.bytes[fragment.Dirty] < 900 || !e.worthALook(host, &demand, false) {
		t.Fatalf("%d dirty bytes, and none have been counted yet", host.bytes[fragment.Dirty])
	}
	e.recount(e.links[0])
	reader, err := e.BeginRestore(0, h, model.NumberKey(2), RestoreOptions{Peek: true})
	if err != nil || reader.Phase != Ready {
		t.Fatal(err)
	}
	e.EndRestore(0, reader)
	if host := e.tiers[0]; e.passable(host) != 0 || e.worthALook(host, &demand, false) {
		t.Errorf("%d bytes may go", e.passable(host))
	}
	e.Drop(0, h, model.NumberKey(0))
	if host := e.tiers[0]; !e.worthALook(host, &demand, false) {
		t.Errorf("there is room below, and %d bytes may go", e.passable(host))
	}
	e.links[0].refused.add(need{46, 1})
	if host := e.tiers[0]; e.passable(host) != host.bytes[fragment.Dirty] {
		t.Errorf("what is refused now is no hindrance, and %d of %d bytes may go", e.passable(host), host.bytes[fragment.Dirty])
	}
}

// The order of needs agrees with the places that suit them.
func TestNeedsWithinOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) need {
			return need{rapid.Int64Range(1, 6).Draw(t, name+" bytes"), rapid.Int64Range(1, 12).Draw(t, name+" alignment")}
		}
		a, b := draw("a"), draw("b")
		does := func(n need, from, end int64) bool { return (from+n.align-1)/n.align*n.align+n.size <= end }
		every := true
		for from := range int64(150) {
			for end := from; end < from+40; end++ {
				every = every && (!does(b, from, end) || does(a, from, end))
			}
		}
		if a.within(b) && !every {
			t.Fatalf("%v is not within %v", a, b)
		}
		if c := a.common(b); !c.within(a) || !c.within(b) || a.common(boundless) != a || boundless.common(a) != a {
			t.Fatalf("%v and %v have %v in common", a, b, c)
		}
		var rs refused
		for _, n := range []need{a, b} {
			rs.add(n)
		}
		if one := a.within(b) || b.within(a); !rs.covers(a) || !rs.covers(b) || one != (len(rs) == 1) {
			t.Fatalf("%v and %v make %v", a, b, rs)
		}
	})
}
