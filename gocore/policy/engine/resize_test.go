package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"

	"pgregory.net/rapid"
)

// resizable draws a tier that does not outlive the engine.
func (w *world) resizable(t *rapid.T) int {
	n := 0 // durable tiers come last
	for n < len(w.e.tiers) && !w.catalogued(n) {
		n++
	}
	if n == 0 {
		t.Skip("all outlive the engine")
	}
	return rapid.IntRange(0, n-1).Draw(t, "tier")
}

// grow enlarges a tier; memory that was given back contains garbage when it comes again.
func (w *world) grow(t int, to int64) {
	for int64(len(w.bytes[t])) < to {
		w.bytes[t] = append(w.bytes[t], -1)
	}
	w.e.Grow(w.now, t, to)
}

// giveBack removes the memory behind the end that the engine still needs. Any later access to it stops the test.
func (w *world) giveBack(t int) {
	reach := w.e.Reach(t)
	if reach > int64(len(w.bytes[t])) {
		w.fatalf("tier %d reaches to %d of %d bytes", t, reach, len(w.bytes[t]))
	}
	w.bytes[t] = append([]int(nil), w.bytes[t][:reach]...)
}

// drain empties the part behind the tiers' ends as far as possible now; false when there was none.
func (w *world) drain() (some bool) {
	for t := range w.e.tiers {
		for round := 0; w.e.Draining(t); round++ {
			if round > 10_000 {
				w.fatalf("tier %d drains for ever%s", t, w.state())
			}
			w.e.Drain(w.now, t, 1)
			some = true
		}
	}
	return some
}

// nothingLeaves checks that all copies that could leave have left. The others are held by leases, by the tier below, or refused by it, or
// needed by copies that stay.
func (w *world) nothingLeaves() {
	for t, tr := range w.e.tiers {
		if !w.e.Settled(t) {
			w.fatalf("at rest, and tier %d is not settled%s", t, w.state())
		}
		tr.table.Behind(func(id fragment.ID) bool {
			f := tr.table.At(id)
			stays := f.Pins > 0 || f.Transfers > 0 // a restore above needs it, and leases take the room there
			if below := w.e.Below(t); f.Owner != nil && !stays {
				stays = f.Owner.isNeeded(t) || below < 0 || len(w.e.links[t].refused) > 0 || !w.e.tiers[below].fits(f.Owner) || f.Owner.stuckOn&(1<<t) != 0
			}
			if !stays {
				w.fatalf("at rest, and %v of class %d lies behind the end of tier %d%s", name(f.Owner), f.Class, t, w.state())
			}
			return true
		})
	}
}

// A copy across the new end fills a part of the tier. A capture finds that room even before Drain was called.
func TestCaptureInATierThatHasShrunk(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{{Name: "a", Capacity: 100}, {Name: "b", Capacity: 1000}}})
	h := e.History("h")
	capture := func(k, size int64) *Capture {
		t.Helper()
		c, err := e.BeginCapture(0, h, model.NumberKey(k), size, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatalf("%d bytes: %+v, %v", size, c, err)
		}
		e.EndCapture(0, c, true)
		return c
	}
	first := capture(1, 60)
	e.Await(0, []*Record{first.Rec}, 1)
	e.Done(0, e.Next(0, anyDown), nil)
	e.Shrink(0, 0, 50)
	if e.Reach(0) != 60 || e.Settled(0) {
		t.Fatalf("reaches to %d, settled %v", e.Reach(0), e.Settled(0))
	}
	capture(2, 50)
	if e.Reach(0) != 50 || !e.Settled(0) {
		t.Fatalf("reaches to %d, settled %v", e.Reach(0), e.Settled(0))
	}
	if _, err := e.BeginCapture(0, h, model.NumberKey(3), 51, 1, nil, CaptureOptions{}); err != nil {
		t.Fatalf("what the tier has become too small for goes below: %v", err)
	}
}

// Copies that had to leave a shrunk tier, and were still there when it grew again, are promised again.
func TestPromisesAfterGrowth(t *testing.T) {
	s := newSweeping(t, 2)
	s.capture(0, 1)
	s.capture(1, 1)
	s.StartPrefetch(s.now, s.h)
	promised := func() int64 { return s.Use(0).Promised }
	if promised() != 200 {
		t.Fatalf("%d bytes are promised", promised())
	}
	s.Shrink(s.now, 0, 100)
	s.Drain(s.now, 0, 100)
	if promised() != 100 || s.Stats.BrokenPromises != 1 || s.Reach(0) != 200 {
		t.Fatalf("%d bytes are promised, %d promises broken, up to %d", promised(), s.Stats.BrokenPromises, s.Reach(0))
	}
	s.Grow(s.now, 0, 1000)
	if promised() != 200 {
		t.Fatalf("%d bytes are promised again", promised())
	}
}
