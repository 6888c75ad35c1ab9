package engine

import (
	"errors"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// sweeping is an engine of two tiers, the upper of 1000 bytes, over a link of one byte a nanosecond. It has a history that is going to be restored
// backwards.
type sweeping struct {
	*Engine
	t   *testing.T
	h   *History
	now int64
}

func newSweeping(t *testing.T, keys int64) *sweeping {
	e := New(Config{Tiers: []TierConfig{{Name: "host", Capacity: 1000, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 100_000, Remote: true}}, Prefetch: true})
	s := &sweeping{Engine: e, t: t, h: e.History("h")}
	var hints []plan.Hint
	for k := keys - 1; k >= 0; k-- {
		hints = append(hints, plan.Hint{Key: model.NumberKey(k), Op: plan.Last})
	}
	e.Hint(0, s.h, hints)
	return s
}

// capture writes 100 bytes that many nanoseconds after the last call.
func (s *sweeping) capture(key, after int64) {
	s.t.Helper()
	s.now += after
	c, err := s.BeginCapture(s.now, s.h, model.NumberKey(key), 100, 1, nil, CaptureOptions{})
	if err != nil || c.Phase != Ready {
		s.t.Fatalf("capture of %d: phase %d, %v", key, c.Phase, err)
	}
	s.EndCapture(s.now, c, true)
}

func (s *sweeping) wantComing(bytes float64) {
	s.t.Helper()
	if got := s.coming(0); got != bytes {
		s.t.Errorf("%g bytes are foreseen, must be %g", got, bytes)
	}
}

func TestForecastFollowsThePlan(t *testing.T) {
	s := newSweeping(t, 20)
	s.wantComing(0) // their size is not known yet
	s.capture(0, 50)
	s.wantComing(1900)
	s.capture(1, 50)
	s.wantComing(1800)
	if !s.foreseen() {
		t.Error("two captures as planned are no sweep")
	}
	s.Drop(s.now, s.h, model.NumberKey(1))
	s.wantComing(1900) // it may be written again
	if s.foreseen() {
		t.Error("sweeps do not drop")
	}
	s.ClearHints(s.now, s.h)
	s.wantComing(0)
}

// TestSurprises: operations that are not part of a sweep end the trust in the forecast, and captures as planned restore it.
func TestSurprises(t *testing.T) {
	for what, happen := range map[string]func(*sweeping){
		"a key without a hint": func(s *sweeping) { s.capture(77, 50) },
		"written again":        func(s *sweeping) { s.capture(2, 50) },
		"restored": func(s *sweeping) {
			r, err := s.BeginRestore(s.now, s.h, model.NumberKey(1), RestoreOptions{Peek: true})
			if err != nil || r.Phase != Ready {
				t.Fatalf("phase %d, %v", r.Phase, err)
			}
			s.EndRestore(s.now, r)
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSweeping(t, 20)
			for k := range int64(3) {
				s.capture(k, 50)
			}
			happen(s)
			if s.foreseen() {
				t.Error("it is still taken for a sweep")
			}
			for k := range int64(confidence) {
				s.capture(3+k, 50)
			}
			if !s.foreseen() {
				t.Error("it is not taken for a sweep again")
			}
		})
	}
}

// TestLateLinkBegins: 2000 bytes into 1000. If they come twice as fast as they leave, the link begins with the first of them. If there is time, it
// begins only when a quarter is left, and the same holds if all bytes will fit.
func TestLateLinkBegins(t *testing.T) {
	for _, c := range []struct {
		what        string
		keys, after int64
		first       int64 // the capture that makes the link begin
	}{{"no time", 20, 50, 0}, {"time", 20, 2000, 7}, {"all fit", 10, 50, 7}} {
		t.Run(c.what, func(t *testing.T) {
			s := newSweeping(t, c.keys)
			for k := range c.first + 1 {
				if s.Pending(anyDown) {
					t.Errorf("the link began before capture %d", k)
				}
				s.capture(k, c.after)
			}
			if !s.Pending(anyDown) {
				t.Errorf("the link rests after capture %d: %d of %d bytes are ready", c.first, s.tiers[0].ready(), s.Capacity(0))
			}
		})
	}
}

// TestNothingComesBehindASweep: once all announced checkpoints are captured, restores cause no further flushes, although less than a quarter is
// ready. One more capture does.
func TestNothingComesBehindASweep(t *testing.T) {
	s := newSweeping(t, 9)
	for k := range int64(9) {
		s.capture(k, 500)
	}
	if !s.Pending(anyDown) {
		t.Fatal("nothing is written down during the sweep")
	}
	restored := func(k int64) {
		t.Helper()
		r, err := s.BeginRestore(s.now, s.h, model.NumberKey(k), RestoreOptions{Peek: true})
		if err != nil || r.Phase != Ready {
			t.Fatalf("restore of %d: phase %d, %v", k, r.Phase, err)
		}
		s.EndRestore(s.now, r)
	}
	restored(8)
	n := 0
	for x := s.Next(s.now, anyDown); x != nil; x = s.Next(s.now, anyDown) {
		if n++; n > 2 {
			t.Fatal("more is written down than was queued before")
		}
		s.Done(s.now, x, errors.New("no"))
	}
	if s.tiers[0].ready() >= s.Capacity(0)/lowWater {
		t.Fatal("enough is ready")
	}
	s.capture(77, 500)
	if !s.Pending(anyDown) {
		t.Error("nothing is written down for what comes unforeseen")
	}
}

// TestOutliersGoDownAtOnce: the slow link is the one below the host tier. Copies that are sure to cross it leave the device at once, so that it
// begins in time. Copies that are expected soon stay.
func TestOutliersGoDownAtOnce(t *testing.T) {
	for _, backwards := range []bool{true, false} {
		e := New(Config{Tiers: []TierConfig{
			{Name: "device", Capacity: 400, WriteRate: 100e9, ReadRate: 100e9},
			{Name: "host", Capacity: 600, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "disk", Capacity: 100_000, Remote: true}}, Prefetch: true})
		s := &sweeping{Engine: e, t: t, h: e.History("h")}
		var hints []plan.Hint
		for k := range int64(20) {
			key := k
			if backwards {
				key = 19 - k
			}
			hints = append(hints, plan.Hint{Key: model.NumberKey(key), Op: plan.Last})
		}
		e.Hint(0, s.h, hints)
		s.capture(0, 50)
		if s.Pending(anyDown) != backwards {
			t.Errorf("restored backwards: %v; the first checkpoint goes down at once: %v", backwards, !backwards)
		}
	}
}

// TestPlansThatHaveBegunForetellNothing: where captures and restores alternate, new captures may find the room of consumed checkpoints.
func TestPlansThatHaveBegunForetellNothing(t *testing.T) {
	s := newSweeping(t, 30)
	for k := range int64(3) {
		s.capture(k, 50)
	}
	r, err := s.BeginRestore(s.now, s.h, model.NumberKey(2), RestoreOptions{})
	if err != nil || r.Phase != Ready {
		t.Fatalf("phase %d, %v", r.Phase, err)
	}
	s.EndRestore(s.now, r)
	for k := range int64(6) {
		s.capture(3+k, 50)
		s.wantComing(0)
	}
	if s.foreseen() || s.forecast.written() {
		t.Error("the rest of a plan that has begun is taken for a sweep")
	}
	s.ClearHints(s.now, s.h)
	s.Hint(s.now, s.h, []plan.Hint{{Key: model.NumberKey(20)}, {Key: model.NumberKey(21)}})
	s.wantComing(200)
}

// TestPlansAreGivenUp: a history that captures nothing any more does not make the flushes of others begin early.
func TestPlansAreGivenUp(t *testing.T) {
	s := newSweeping(t, 50)
	other := s.History("other")
	s.Hint(0, other, []plan.Hint{{Key: model.NumberKey(0)}, {Key: model.NumberKey(1)}, {Key: model.NumberKey(2)}})
	c, err := s.BeginCapture(0, other, model.NumberKey(0), 100, 1, nil, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.EndCapture(0, c, true)
	s.wantComing(200)
	for k := range int64(6) {
		s.capture(k, 5000)
	}
	s.wantComing(44*100 + 200)
	for range givenUp {
		r, err := s.BeginRestore(s.now, s.h, model.NumberKey(0), RestoreOptions{Peek: true})
		if err != nil {
			t.Fatal(err)
		}
		s.EndRestore(s.now, r)
	}
	s.capture(6, 5000)
	s.capture(7, 5000)
	if got := s.forecast.coming[0]; got != 42*100 {
		t.Errorf("%g bytes are foreseen, must be 4200", got)
	}
}

// TestAGuessLeavesThePlanAlone: checkpoints guessed before a plan came do not count as captured for that plan.
func TestAGuessLeavesThePlanAlone(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{{Name: "host", Capacity: 10_000, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 1_000_000, Remote: true}}, Prefetch: true, Guess: true})
	s := &sweeping{Engine: e, t: t, h: e.History("h")}
	for k := range int64(50) {
		s.capture(k, 5000)
	}
	for k := range int64(10) {
		r, err := e.BeginRestore(s.now, s.h, model.NumberKey(k), RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.EndRestore(s.now, r)
	}
	var hints []plan.Hint
	for k := int64(119); k >= 100; k-- {
		hints = append(hints, plan.Hint{Key: model.NumberKey(k), Op: plan.Last})
	}
	e.Hint(s.now, s.h, hints)
	s.wantComing(2000)
}

// TestRepeatedKeysAreNoSweep: schedules that restore a checkpoint several times write others in between, into the room of consumed ones.
func TestRepeatedKeysAreNoSweep(t *testing.T) {
	s := newSweeping(t, 20)
	s.capture(0, 50)
	s.capture(1, 50)
	s.wantComing(1800)
	s.Hint(s.now, s.h, []plan.Hint{{Key: model.NumberKey(3)}})
	s.wantComing(0)
	s.capture(2, 50)
	if s.foreseen() || s.forecast.written() {
		t.Error("it is taken for a sweep")
	}
}
