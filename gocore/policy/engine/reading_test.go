package engine

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
)

// beginsReading begins a reading of any copy, if there is one that may be read.
func (w *world) beginsReading(t *rapid.T) bool {
	if len(w.readings) == 3 {
		return false
	}
	for _, r := range w.e.slots {
		for tier := range w.e.tiers {
			if r == nil || rapid.IntRange(0, 3).Draw(t, "skip") > 0 {
				continue
			}
			if x, ok := w.e.BeginReading(w.now, r, tier); ok {
				w.observe()
				w.read("reading", tier, w.e.row(x.Obj, tier).Offset, x.Obj)
				if r.Gone() || r.Lent() || x.Obj.Form(tier) != Raw || w.e.IsInTheWay(x) {
					w.fatalf("a reading of %v in tier %d", name(x.Obj), tier)
				}
				w.readings = append(w.readings, x)
				return true
			}
		}
	}
	return false
}

// endsReading ends reading number i, whose bytes must not have moved meanwhile.
func (w *world) endsReading(i int) {
	x := w.readings[i]
	w.readings = append(w.readings[:i], w.readings[i+1:]...)
	w.read("end of a reading", x.Tier, w.e.row(x.Obj, x.Tier).Offset, x.Obj)
	w.e.EndReading(w.now, x)
	w.observe()
}

// A copy that is read stays when it is dropped, and a capture that needs its room gets it at the end of the reading.
func TestReadingKeepsACopy(t *testing.T) {
	e, h := someCaptured(t, 2, 1000)
	r := h.Get(model.NumberKey(0))
	x, ok := e.BeginReading(0, r, 0)
	if !ok || e.IsInTheWay(x) {
		t.Fatal("a copy in memory cannot be read")
	}
	if !e.Drop(0, h, model.NumberKey(0)) || !e.IsInTheWay(x) {
		t.Fatal("a reading of what is dropped is not in the way")
	}
	if _, again := e.BeginReading(0, r, 0); again {
		t.Error("a checkpoint that is gone can be read")
	}
	c, err := e.BeginCapture(0, h, model.NumberKey(5), 1000, 1, nil, CaptureOptions{})
	if err != nil || c.Phase != Waiting {
		t.Fatalf("the room of what is read is taken: %v, %v", c.Phase, err)
	}
	other, some := e.BeginReading(0, h.Get(model.NumberKey(1)), 0)
	if some {
		t.Errorf("%v can be read while a claim waits for room", other)
	}
	e.EndReading(0, x)
	if c.Phase != Ready {
		t.Errorf("a capture waits for room after the end of the reading: %v", c.Phase)
	}
}
