package engine

import (
	"testing"

	"velocpy/gocore/model"
)

// The reason why a capture waits changes with the work under way: first a copy into the tier, then the flush of that copy.
func TestBlocker(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{{Name: "fast", Capacity: 100}, {Name: "slow", Capacity: 1000}}})
	h := e.History("h")
	begin := func(k int64) *Capture {
		c, err := e.BeginCapture(0, h, model.Key{Number: k}, 100, 1, nil, CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second, third := begin(1), begin(2), begin(3)
	expect := func(c *Capture, want Blocker) {
		t.Helper()
		if got := e.Blocker(c); got != want {
			t.Errorf("a capture waits for %d, not %d", got, want)
		}
	}
	expect(second, ByOther) // first is being copied in
	e.EndCapture(1, first, true)
	expect(second, ByFlush)
	expect(third, ByFlush) // as does the one before it
	x := e.Next(2, anyDown)
	if x == nil {
		t.Fatal("no flush")
	}
	expect(second, ByFlush)
	e.Done(3, x, nil)
	if second.Phase != Ready {
		t.Fatal("no room after the flush")
	}
	expect(second, ByOther)
	expect(third, ByOther)
}
