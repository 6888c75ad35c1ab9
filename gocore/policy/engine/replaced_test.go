package engine

import (
	"errors"
	"testing"

	"velocpy/gocore/model"
)

// replaceable is an engine without a disk, and a function that captures a checkpoint there.
func replaceable(t *testing.T) (e *Engine, h *History, write func(k, size int64, top int) *Capture) {
	e = New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 100, WriteRate: 1e9, ReadRate: 1e9},
	}})
	h = e.History("h")
	return e, h, func(k, size int64, top int) *Capture {
		t.Helper()
		c, err := e.BeginCapture(0, h, model.NumberKey(k), size, 1, nil, CaptureOptions{Top: top})
		if err != nil {
			t.Fatal(err)
		}
		if c.Phase == Ready {
			e.EndCapture(0, c, true)
			run(t, e, 10)
		}
		return c
	}
}

// A version that is replaced makes room by the copy that it alone still needs, also where its own copy is too small.
func TestAReplacedVersionFreesWhatItNeeds(t *testing.T) {
	for _, others := range []bool{false, true} {
		e, h, write := replaceable(t)
		of, o, other := write(0, 50, 0), write(1, 20, 0), write(2, 10, 0)
		if !e.Need(0, &o.Rec.own, &of.Rec.own, 1) || others && !e.Need(0, &other.Rec.own, &of.Rec.own, 1) {
			t.Fatal("no need")
		}
		e.Drop(0, h, model.NumberKey(0))
		if e.Use(1).Used != 80 {
			t.Fatalf("%d bytes are used", e.Use(1).Used)
		}
		c := write(1, 40, 1)
		if fits := c.Err == nil; fits == others || errors.Is(c.Err, ErrFull) == fits || o.Rec.Gone() != fits {
			t.Errorf("needed by others %v: phase %d, %v, and the old version is gone: %v", others, c.Phase, c.Err, o.Rec.Gone())
		}
	}
}

// A version whose room is retired makes none for its replacement, and so is not given up for it, unless the tier has that room allotted.
func TestAVersionInRetiredRoomIsKept(t *testing.T) {
	for _, allotted := range []int64{0, 90, 100} {
		e, h, write := replaceable(t)
		old := write(1, 100, 1)
		e.Allot(1, allotted)
		e.Retire(1, 0, 10)
		c := write(1, 100, 1)
		if fits := allotted == 100; errors.Is(c.Err, ErrFull) == fits || (h.Get(model.NumberKey(1)) == old.Rec) == fits {
			t.Errorf("%d bytes allotted: phase %d, %v, and the old version is gone: %v", allotted, c.Phase, c.Err, old.Rec.Gone())
		}
	}
}
