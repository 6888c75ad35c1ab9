package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// flushWorld is an engine of a device, a host tier with room for two checkpoints, and a disk.
type flushWorld struct {
	*Engine
	t *testing.T
	h *History
}

func newFlushWorld(t *testing.T) *flushWorld {
	e := New(Config{Prefetch: true, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 60, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 1000, Remote: true, WriteRate: 1e9, ReadRate: 1e9},
	}})
	return &flushWorld{e, t, e.History("h")}
}

// capture begins a capture of a checkpoint that may use the tiers from top to down.
func (w *flushWorld) capture(k int64, top, down int) *Capture {
	c, err := w.BeginCapture(0, w.h, model.NumberKey(k), 30, 1, nil, CaptureOptions{Top: top, Down: down})
	if err != nil || c.Phase != Ready {
		w.t.Fatal(k, err, c)
	}
	return c
}

func (w *flushWorld) write(k int64, down int) *Record {
	c := w.capture(k, 0, down)
	w.EndCapture(0, c, true)
	return c.Rec
}

// begin begins all transfers of a direction that can begin.
func (w *flushWorld) begin(want Want) (begun []*Transfer) {
	for x := w.Next(0, want); x != nil; x = w.Next(0, want) {
		begun = append(begun, x)
	}
	return begun
}

func (w *flushWorld) carry() {
	for x := w.Next(0, anyDown); x != nil; x = w.Next(0, anyDown) {
		w.Done(0, x, nil)
	}
}

// waitsFor checks that a wait for a checkpoint in host memory goes on until some work has ended, and succeeds then.
func (w *flushWorld) waitsFor(r *Record, end func()) {
	wait := w.Await(0, []*Record{r}, 1)
	if w.carry(); wait.Phase == Ended {
		w.t.Fatalf("the caller is told %v", wait.Err)
	}
	end()
	run(w.t, w.Engine, 100)
	if wait.Phase != Ended || wait.Err != nil {
		w.t.Errorf("it has not come down: phase %v, %v", wait.Phase, wait.Err)
	}
}

// A flush into a tier that prefetches fill at the moment waits for these, and so does a caller that waits for it.
func TestAFlushWaitsForLoads(t *testing.T) {
	w := newFlushWorld(t)
	var hints []plan.Hint
	for k := range int64(9) {
		w.write(k, 2)
		w.carry()
		hints = append(hints, plan.Hint{Key: model.NumberKey(k), Op: plan.Restore})
	}
	w.Hint(0, w.h, hints)
	w.StartPrefetch(0, w.h)
	loads := w.begin(anyUp)
	if len(loads) != 2 || w.Use(1).Held != 60 {
		t.Fatalf("%d loads: %+v", len(loads), w.Use(1))
	}
	late := w.write(20, 1)
	w.carry()
	w.waitsFor(late, func() {
		for _, x := range loads {
			w.Done(0, x, nil)
		}
	})
}

// Work that ends by itself may fill a tier: flushes and captures that write there, and restores that copy out. A flush into the tier waits for its end, and so
// does a caller that waits for the flush.
func TestAFlushWaitsForWhatEndsByItself(t *testing.T) {
	for name, fill := range map[string]func(w *flushWorld) (end func()){
		"flushes": func(w *flushWorld) func() {
			for k := range int64(2) {
				w.Await(0, []*Record{w.write(k, 1)}, 1)
			}
			flushes := w.begin(anyDown)
			return func() {
				for _, x := range flushes {
					w.Done(0, x, nil)
				}
			}
		},
		"captures": func(w *flushWorld) func() {
			a, b := w.capture(0, 1, 2), w.capture(1, 1, 2)
			return func() {
				w.EndCapture(0, a, true)
				w.EndCapture(0, b, false)
			}
		},
		"copies out": func(w *flushWorld) func() {
			var all []*Restore
			for k := range int64(2) {
				c := w.capture(k, 1, 2)
				w.EndCapture(0, c, true)
				w.carry()
				r, err := w.BeginRestore(0, w.h, model.NumberKey(k), RestoreOptions{Into: true})
				if err != nil || r.Phase != Ready {
					w.t.Fatal(err, r)
				}
				all = append(all, r)
			}
			return func() {
				for _, r := range all {
					w.EndRestore(0, r)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFlushWorld(t)
			end := fill(w)
			if used := w.Use(1); used.Held != 60 {
				t.Fatalf("%+v", used)
			}
			late := w.write(20, 2)
			w.carry()
			w.waitsFor(late, end)
		})
	}
}
