package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// A flush whose room only a proof holds waits for the end of the proof, and does not fail for lack of room.
func TestFlushesWaitForTheRoomOfAProof(t *testing.T) {
	for _, leased := range []bool{false, true} { // whether the copy is leased before the proof ends
		e := New(Config{Flush: Eager, Prefetch: true, VerifyFrom: 1, Tiers: []TierConfig{
			{Name: "device", Capacity: 1000, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "host", Capacity: 200, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "disk", Capacity: 1000, Remote: true},
		}})
		h := e.History("h")
		capture := func(k int64, top int) *Record {
			c, err := e.BeginCapture(0, h, model.NumberKey(k), 100, 1, nil, CaptureOptions{Top: top})
			if err != nil {
				t.Fatal(err)
			}
			e.EndCapture(0, c, true)
			return c.Rec
		}
		settle := func() {
			for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
				e.Done(0, x, nil)
			}
		}
		capture(1, 1)
		proved := capture(2, 1)
		settle()
		e.Hint(0, h, []plan.Hint{{Key: model.NumberKey(1)}, {Key: model.NumberKey(2)}})
		lease, err := e.BeginRestore(0, h, model.NumberKey(1), RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, some := e.BeginVerification(0)
		if !some || p.Rec != proved || e.IsObsolete(p) {
			t.Fatalf("%+v, %v", p, some)
		}
		onDevice := capture(3, 0)
		w := e.Await(0, []*Record{onDevice}, 1)
		settle()
		if w.Phase != Waiting || !e.IsObsolete(p) {
			t.Fatalf("the wait is %v with %v while a proof holds the room; overtaken: %v", w.Phase, w.Err, e.IsObsolete(p))
		}
		var second *Restore
		if leased {
			if second, err = e.BeginRestore(0, h, model.NumberKey(2), RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		e.EndVerification(0, p, true)
		settle()
		if !leased && (w.Phase != Ended || w.Err != nil) {
			t.Fatalf("the wait is %v with %v after the proof", w.Phase, w.Err)
		}
		if leased { // now leases fill the tier: the wait fails
			if w.Phase != Ended || w.Err == nil {
				t.Fatalf("the wait is %v with %v beside leases", w.Phase, w.Err)
			}
			e.EndRestore(0, second)
		}
		e.EndRestore(0, lease)
	}
}
