package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// below is an engine with n checkpoints on disk alone, and a plan that restores the first of them.
func below(host, size int64, n, hinted int) (*Engine, *History) {
	e := New(Config{Prefetch: true, Tiers: []TierConfig{
		{Name: "host", Capacity: host, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: size * int64(n), Remote: true, Durable: true},
	}})
	e.Reserve(1, func(yield func(from, end int64) bool) { yield(0, size*int64(n)) })
	h := e.History("h")
	var hints []plan.Hint
	for i := range int64(n) {
		e.Continue(i + 1)
		e.Adopt(h, model.NumberKey(i), Stored{Tier: 1, Size: size, Align: 1, Offset: i * size, Written: i + 1})
		h.Wrote(model.NumberKey(i))
		hints = append(hints, plan.Hint{Op: plan.Restore, Key: model.NumberKey(i)})
	}
	hints = hints[:hinted]
	e.Hint(0, h, hints)
	e.StartPrefetch(0, h)
	return e, h
}

// Few large loads begin at once, and many small ones. Most of the tier stays free for other claims.
func TestPrefetchesThatHaveNotEndedAreFew(t *testing.T) {
	for name, c := range map[string]struct {
		host, size int64
		n, begun   int
	}{
		"large":        {1 << 40, 1 << 30, 100, fewLoads},
		"small":        {1 << 40, 64 << 10, 1000, loadBytes / (64 << 10)},
		"tiny":         {1 << 40, 100, 2000, mostLoads},
		"a small tier": {8 << 20, 4 << 10, 2000, 256},
		"a tiny tier":  {64 << 10, 4 << 10, 100, fewLoads},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := below(c.host, c.size, c.n, c.n)
			var begun []*Transfer
			for x := e.Next(0, anyUp); x != nil; x = e.Next(0, anyUp) {
				if x.Urgent {
					t.Fatal("nobody waits")
				}
				begun = append(begun, x)
			}
			if len(begun) != c.begun {
				t.Fatalf("%d of %d loads have begun, not %d", len(begun), c.n, c.begun)
			}
			e.Done(0, begun[0], nil)
			if x := e.Next(0, anyUp); x == nil || e.Next(0, anyUp) != nil {
				t.Error("when one has ended one more begins")
			}
		})
	}
}

// Next with Awaited returns loads that restores wait for, and no others. A load that runs already is not returned again.
func TestNextAwaitedIsWhatIsWaitedFor(t *testing.T) {
	e, h := below(16<<10, 1000, 100, 50)
	if e.Pending(Want{Direction: Up, Link: AnyLink, Only: Awaited}) || e.Next(0, Want{Direction: Up, Link: AnyLink, Only: Awaited}) != nil {
		t.Fatal("nobody waits")
	}
	if x := e.Next(0, anyUp); x.Rec.Key != model.NumberKey(0) {
		t.Fatalf("%+v", x)
	}
	waited := []int64{3, 20, 90}                      // queued; hinted but behind the queue's bound; not expected
	for _, k := range append([]int64{0}, waited...) { // the first one runs
		if _, err := e.BeginRestore(0, h, model.NumberKey(k), RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range waited {
		for _, link := range []int{AnyLink, 0} {
			if !e.Pending(Want{Direction: Up, Link: link, Only: Awaited}) {
				t.Fatalf("%d is not pending", k)
			}
		}
		if x := e.Next(0, Want{Direction: Up, Link: 0, Only: Awaited}); x == nil || !x.Urgent || x.Rec.Key != model.NumberKey(k) {
			t.Fatalf("next comes %+v", x)
		}
	}
	if x := e.Next(0, Want{Direction: Up, Link: AnyLink, Only: Awaited}); x != nil || e.Pending(Want{Direction: Up, Link: AnyLink, Only: Awaited}) {
		t.Fatalf("nobody waits for %+v", x)
	}
	if x := e.Next(0, anyUp); x == nil || x.Urgent {
		t.Fatalf("others are still wanted: %+v", x)
	}
}
