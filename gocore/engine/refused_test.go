package engine

import (
	"errors"
	"testing"

	"velocpy/gocore/plan"

	"pgregory.net/rapid"
)

func smallDisk(host, disk int64) (*Engine, *History) {
	e := New(Config{Tiers: []TierConfig{{Name: "host", Capacity: host, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: disk, Remote: true}}})
	return e, e.History("h")
}

// written begins a capture that the caller copies at once when it has room.
func written(t *testing.T, e *Engine, h *History, k, size int64) *Capture {
	t.Helper()
	c, err := e.BeginCapture(0, h, plan.Number(k), size, 1, nil, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Phase == Ready {
		e.EndCapture(0, c, true)
	}
	return c
}

func carryDown(e *Engine) (flushed []plan.Key) {
	for x := e.Next(0, Down); x != nil; x = e.Next(0, Down) {
		flushed = append(flushed, x.Rec.Key)
		e.Done(0, x, nil)
	}
	return flushed
}

// A flush that is too large for what is left of the disk lets a smaller one pass, for which a capture waits.
func TestAFlushThatDoesNotFitStepsAside(t *testing.T) {
	e, h := smallDisk(10, 8)
	first := written(t, e, h, 0, 3)
	e.Await(0, []*Record{first.Rec}, 1)
	carryDown(e)
	large, small := written(t, e, h, 1, 7), written(t, e, h, 2, 2) // in the place of the first one
	onDisk := e.Await(0, []*Record{large.Rec}, 1)
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
	if onDisk.Phase != Ended || !errors.Is(onDisk.Err, ErrFull) {
		t.Errorf("the wait for the large one: phase %d, %v", onDisk.Phase, onDisk.Err)
	}
	if w := e.Await(0, []*Record{small.Rec}, 1); w.Phase != Ended || w.Err != nil {
		t.Errorf("the wait for the small one: phase %d, %v", w.Phase, w.Err)
	}
}

// That nothing can go down is found out once, not by every capture that finds no room.
func TestWhenNothingCanGoDownNobodyLooksAgain(t *testing.T) {
	e, h := smallDisk(10, 5)
	small := written(t, e, h, 0, 1)
	written(t, e, h, 1, 5)
	written(t, e, h, 2, 4)
	e.Await(0, []*Record{small.Rec}, 1)
	carryDown(e)
	if l := e.links[0]; l.dirty.least.size != 1 {
		t.Fatalf("the least is %v", l.dirty.least)
	}
	other := written(t, e, h, 3, 1) // in the place of the small one
	e.Await(0, []*Record{other.Rec}, 1)
	carryDown(e)
	c := written(t, e, h, 4, 4)
	carryDown(e)
	if l := e.links[0]; !errors.Is(c.Err, ErrFull) || !l.shut() {
		t.Errorf("phase %d, %v; refused %v, the least is %v", c.Phase, c.Err, l.refused, l.dirty.least)
	}
}

// What needs are within is what the places for them say.
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
		if c := a.common(b); !c.within(a) || !c.within(b) || a.common(anything) != a || anything.common(a) != a {
			t.Fatalf("%v and %v have %v in common", a, b, c)
		}
		var rs refused
		for _, n := range []need{a, b} {
			if !rs.covers(n) {
				rs.add(n)
			}
		}
		if one := a.within(b) || b.within(a); !rs.covers(a) || !rs.covers(b) || one != (len(rs) == 1) {
			t.Fatalf("%v and %v make %v", a, b, rs)
		}
	})
}
