package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// A restore waits for room on the device. A flush makes it that needs room on the host, and a flush to the disk makes that. The host's room is for
// the flush from above, not for a prefetch from the disk.
func TestFlushesThatMakeRoomGoBeforePrefetches(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{
		{Name: "device", Capacity: 200, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "host", Capacity: 300, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 10_000, Remote: true},
	}, Prefetch: true})
	h, now := e.History("h"), int64(0)
	carry := func(ways ...Direction) *Transfer {
		for _, d := range ways {
			if x := e.Next(now, Want{Direction: d, Link: AnyLink}); x != nil {
				now += 100
				e.Done(now, x, nil)
				return x
			}
		}
		t.Fatal("nothing moves")
		return nil
	}
	// Keys 0 to 5: in the end the first is on the disk, three are on the host, and the last two on the device alone.
	for k := range int64(6) {
		c, err := e.BeginCapture(now, h, model.NumberKey(k), 100, 1, nil, CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for c.Phase == Waiting {
			carry(Down)
		}
		e.EndCapture(now, c, true)
	}
	e.StartPrefetch(now, h)
	for k, tier := range map[int64]int{0: 2, 1: 1, 4: 0, 5: 0} {
		if r := h.Get(model.NumberKey(k)); e.Fastest(r) != tier || tier == 0 && e.lower(&r.own, 0) >= 0 {
			t.Fatalf("checkpoint %d lies elsewhere", k)
		}
	}
	var hints []plan.Hint
	for _, k := range []int64{1, 0, 2, 3, 4, 5} {
		hints = append(hints, plan.Hint{Key: model.NumberKey(k), Op: plan.Last})
	}
	e.Hint(now, h, hints)
	r, err := e.BeginRestore(now, h, model.NumberKey(1), RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for r.Phase == Waiting {
		if x := carry(Up, Down); x.Kind == Load && x.From == 2 {
			t.Errorf("checkpoint %v comes up from the disk while the restore waits", x.Rec.Key)
		}
	}
	if r.Phase != Ready || r.Err != nil {
		t.Fatalf("phase %d, %v", r.Phase, r.Err)
	}
}
