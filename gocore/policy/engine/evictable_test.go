package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/plan"
)

// restoredAt is a host with two places of 20 MB over a disk. Checkpoint 1 is in both, and was restored 20 times at an interval (ms). It is expected
// next. Checkpoint 0 is on the disk alone and expected after it. Checkpoint 2 is in the host alone and expected last.
func restoredAt(t *testing.T, policy evict.Kind, interval int64, last bool) *crowded {
	c := &crowded{Engine: New(Config{Workers: 1, Prefetch: true, Policy: policy, Tiers: []TierConfig{
		{Name: "host", Capacity: 40 * mb, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 1000 * mb, Remote: true},
	}}), t: t}
	c.h = c.History("h")
	for key := range int64(2) {
		c.EndCapture(c.now, c.begin(key, 20), true)
		c.Await(c.now, []*Record{c.h.Get(model.NumberKey(key))}, 1)
		c.Done(c.now, c.next(Flush, key), nil)
	}
	c.EndCapture(c.now, c.begin(2, 20), true) // in the place of 0
	const restores = headroomFor + 4          // so many that no bytes count as coming in any more
	for range restores {
		c.Hint(c.now, c.h, []plan.Hint{{Key: model.NumberKey(1)}})
	}
	for i := range restores {
		if c.now += interval * mb; i == restores-1 {
			if two := c.h.Get(model.NumberKey(2)); c.unqueue(c.now, c.links[0], &two.own) { // begun by lazy flushing
				c.updateCopy(c.now, &two.own, 0)
			}
			op := plan.Restore
			if last {
				op = plan.Last
			}
			c.Hint(c.now, c.h, []plan.Hint{{Op: op, Key: model.NumberKey(1)}, {Key: model.NumberKey(0)}, {Key: model.NumberKey(2)}})
		}
		c.restoreOne()
	}
	return c
}

// restoreOne restores checkpoint 1.
func (c *crowded) restoreOne() {
	c.t.Helper()
	r, err := c.BeginRestore(c.now, c.h, model.NumberKey(1), RestoreOptions{Into: true})
	if err != nil || r.Phase != Ready {
		c.t.Fatalf("phase %d, %v", r.Phase, err)
	}
	c.HandOver(c.now, r)
	c.EndRestore(c.now, r)
}

// The flush of 2 would make room for 0 in 20 ms. If 1 is restored sooner, there is room without a flush, and 2 stays in the host.
func TestAPrefetchWaitsForARestoreThatComesSooner(t *testing.T) {
	for _, x := range []struct {
		policy   evict.Kind
		interval int64
		waits    bool
	}{{evict.Score, 5, true}, {evict.Score, 100, false}, {evict.LRU, 5, false}} {
		c := restoredAt(t, x.policy, x.interval, false)
		if up := c.Next(c.now, anyUp); up != nil {
			t.Fatalf("%+v begins, and there is no room for it", up)
		}
		down := c.Next(c.now, anyDown)
		if flushes := down != nil; flushes == x.waits {
			t.Errorf("%s, restores every %d ms: flushes %v", x.policy, x.interval, flushes)
		}
		if !x.waits {
			continue
		}
		c.now += x.interval * mb
		c.restoreOne()
		if up := c.Next(c.now, anyUp); up == nil || up.Kind != Load || up.Rec.Key.Number != 0 {
			t.Errorf("after the restore %+v begins", up)
		}
		if down := c.Next(c.now, anyDown); down != nil {
			t.Errorf("%+v is flushed for nothing", down)
		}
	}
}

// A dirty copy makes no room after its restore, unless the restore consumes it.
func TestRoomByRestore(t *testing.T) {
	for _, x := range []struct {
		last, lower, known bool
	}{{false, true, true}, {true, true, true}, {false, false, false}, {true, false, true}} {
		c := restoredAt(t, evict.Score, 10, x.last)
		one, zero := c.h.Get(model.NumberKey(1)), c.h.Get(model.NumberKey(0))
		if !x.lower {
			c.vacate(&one.own, 1)
		}
		if ns, known := c.roomByRestore(c.now, 0, &zero.own); known != x.known || known && ns != 10*mb {
			t.Errorf("%+v: in %d ns, known %v", x, ns, known)
		}
		if large := c.newRecord(c.h, model.NumberKey(5), 21*mb, 1, nil); x.known {
			if ns, known := c.roomByRestore(c.now, 0, &large.own); known {
				t.Errorf("21 MB in the place of 20 in %d ns", ns)
			}
		}
	}
}

// Restores are expected at the pace of their history, including Advance. A late restore is expected to take as long again as it is late.
func TestRestoresAreExpectedAtTheirPace(t *testing.T) {
	c := restoredAt(t, evict.Score, 10, false)
	c.Hint(c.now, c.h, []plan.Hint{{Op: plan.Advance, Steps: 5}, {Key: model.NumberKey(1)}})
	began := c.now
	for _, x := range []struct{ key, passed, in int64 }{{1, 0, 10}, {1, 4, 6}, {1, 10, 0}, {1, 30, 20}, {0, 0, 20}, {2, 4, 26}} {
		if ns, known := c.restoredIn(began+x.passed*mb, c.h.Get(model.NumberKey(x.key))); !known || ns != x.in*mb {
			t.Errorf("%d, %d ms after a restore: in %d ns, known %v; wanted %d ms", x.key, x.passed, ns, known, x.in)
		}
	}
	c.ClearHints(c.now, c.h)
	if _, known := c.restoredIn(c.now, c.h.Get(model.NumberKey(1))); known {
		t.Error("known without hints")
	}
}
