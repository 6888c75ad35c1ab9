package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// A flush into a tier that prefetches fill at the moment waits for these, and so does a caller that waits for it.
func TestAFlushWaitsForLoads(t *testing.T) {
	e := New(Config{Prefetch: true, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 60, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 1000, Remote: true, WriteRate: 1e9, ReadRate: 1e9},
	}})
	h := e.History("h")
	write := func(k int64, down int) {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 30, 1, nil, CaptureOptions{Down: down})
		if err != nil || c.Phase != Ready {
			t.Fatal(k, err, c)
		}
		e.EndCapture(0, c, true)
	}
	carry := func() {
		for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
			e.Done(0, x, nil)
		}
	}
	for k := range int64(9) {
		write(k, 2)
		carry()
	}
	var hints []plan.Hint
	for k := range int64(9) {
		hints = append(hints, plan.Hint{Key: model.NumberKey(k), Op: plan.Restore})
	}
	e.Hint(0, h, hints)
	e.StartPrefetch(0, h)
	var loads []*Transfer
	for x := e.Next(0, anyUp); x != nil; x = e.Next(0, anyUp) {
		loads = append(loads, x)
	}
	if len(loads) != 2 || e.Use(1).Held != 60 {
		t.Fatalf("%d loads: %+v", len(loads), e.Use(1))
	}
	write(20, 1)
	carry()
	w := e.Await(0, []*Record{h.Get(model.NumberKey(20))}, 1)
	if carry(); w.Phase == Ended {
		t.Fatalf("the caller is told %v", w.Err)
	}
	for _, x := range loads {
		e.Done(0, x, nil)
	}
	run(t, e, 100)
	if w.Phase != Ended || w.Err != nil {
		t.Errorf("it has not come down: phase %v, %v", w.Phase, w.Err)
	}
}
