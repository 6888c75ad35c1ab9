package engine

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
)

// pinned is copies that somebody reads.
type pinned struct {
	*Pin
	of    *Record
	tiers []int
}

// pin pins copies of a checkpoint, in some of the tiers that have it.
func (w *world) pin(t *rapid.T) {
	hi, k := w.hist(t), someKey(t)
	rec := w.truth[hi][k]
	if rec == nil {
		t.Skip("none")
	}
	var tiers []int
	all := true
	for i := range w.e.tiers {
		if rapid.Bool().Draw(t, "tier") {
			tiers = append(tiers, i)
			all = all && w.e.Complete(rec, i) && !w.e.Loading(rec, i)
		}
	}
	p := w.e.Pin(w.now, rec, tiers...)
	if want := all && !rec.hidden && len(w.of(rec)) == 1 && w.of(rec)[0] == &rec.own; want != (p != nil) {
		w.fatalf("%v is pinned: %v, in tiers %d%s", k, p != nil, tiers, w.state())
	}
	if p != nil {
		w.pins = append(w.pins, &pinned{p, rec, tiers})
	}
}

// unpin reads what is pinned, and ends that.
func (w *world) unpin(i int) {
	p := w.pins[i]
	w.pins = append(w.pins[:i], w.pins[i+1:]...)
	for at, t := range p.tiers {
		w.read("pinned", t, p.Offsets[at], &p.of.own)
	}
	w.e.Unpin(w.now, p.Pin)
}

// countPins adds the readers of the pinned copies to those of other ones, and returns how many pins there are of each object.
func (w *world) countPins(pins map[placeAt]int32) map[*Object]int32 {
	copies := map[*Object]int32{}
	for _, p := range w.pins {
		copies[&p.of.own]++
		if len(p.r.held) != len(p.tiers) {
			w.fatalf("%v is pinned in tiers %d, and %d copies are held", p.of.Key, p.tiers, len(p.r.held))
		}
		for _, h := range p.r.held {
			pins[placeAt{h.t, h.id}]++
		}
	}
	return copies
}

// What is pinned is not evicted, also when a capture needs its room and its checkpoint is dropped. The room is there when the pin ends.
func TestPinnedCopiesStay(t *testing.T) {
	e := New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "host", Capacity: 100, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 1000, Remote: true},
	}})
	h := e.History("h")
	capture := func(k int64) *Capture {
		t.Helper()
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 100, 1, nil, CaptureOptions{Patient: true})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := capture(0)
	if p := e.Pin(0, first.Rec, 0); p != nil {
		t.Fatal("a copy is pinned that has no bytes yet")
	}
	e.EndCapture(0, first, true)
	if p := e.Pin(0, first.Rec, 0, 1); p != nil {
		t.Fatal("a copy is pinned that the disk has not")
	}
	e.Done(1, e.Next(0, anyDown), nil)
	p := e.Pin(1, first.Rec, 0, 1)
	if p == nil || len(p.Offsets) != 2 {
		t.Fatalf("%+v", p)
	}
	second := capture(1)
	if second.Phase != Waiting {
		t.Fatal("the room of a pinned copy is given away")
	}
	e.Drop(2, h, model.NumberKey(0))
	if second.Phase != Waiting || e.Use(0).Used != 100 || e.Use(1).Used != 100 {
		t.Fatalf("a pinned copy went with its checkpoint: phase %d, %d and %d bytes", second.Phase, e.Use(0).Used, e.Use(1).Used)
	}
	if e.Pin(2, first.Rec, 0) != nil {
		t.Fatal("a checkpoint that is gone is pinned")
	}
	e.Unpin(3, p)
	e.Unpin(3, p) // does nothing more
	if second.Phase != Ready || e.Use(1).Used != 0 {
		t.Fatalf("nothing came of the end: phase %d, %d bytes on the disk", second.Phase, e.Use(1).Used)
	}
}

// A reader that is there first keeps the bytes of a last lease from being written to; a lease that was given is not read.
func TestPinsAndLastLeases(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{{Name: "host", Capacity: 1000, WriteRate: 1e9, ReadRate: 1e9}}})
	h := e.History("h")
	c, err := e.BeginCapture(0, h, model.NumberKey(0), 100, 1, nil, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.EndCapture(0, c, true)
	p := e.Pin(1, c.Rec, 0)
	r, err := e.BeginRestore(1, h, model.NumberKey(0), RestoreOptions{Last: true})
	if err != nil || r.Phase != Ready || p == nil {
		t.Fatal(err, r.Phase, p)
	}
	if e.Exclusive(r) {
		t.Error("the caller may write to bytes that are read")
	}
	e.Unpin(2, p)
	if !e.Exclusive(r) {
		t.Error("the reader has ended")
	}
	e.Lend(3, r)
	if e.Pin(3, c.Rec, 0) != nil {
		t.Error("bytes are read that a caller may write to")
	}
	e.Return(4, r)
	e.EndRestore(4, r)
	if p = e.Pin(5, c.Rec, 0); p == nil {
		t.Fatal("the lease has ended")
	}
	e.Unpin(5, p)
}
