package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/plan"
)

// paced is an engine with one tier of 1000 bytes above a large one, and checkpoints of 100 bytes in two histories, all of them in both tiers.
type paced struct {
	*Engine
	t    *testing.T
	a, b *History
	now  int64
}

func newPaced(t *testing.T, each int64, hints func(h string, k int64) []plan.Hint) *paced {
	e := New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "host", Capacity: 200 * each, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 100_000, Remote: true},
	}})
	p := &paced{Engine: e, t: t, a: e.History("a"), b: e.History("b")}
	for k := range each {
		for _, h := range []*History{p.a, p.b} {
			p.capture(h, k)
		}
	}
	for _, h := range []*History{p.a, p.b} {
		for k := range each {
			e.Hint(p.now, h, hints(h.Name, k))
		}
	}
	return p
}

// capture writes a checkpoint and carries out the transfers that follow.
func (p *paced) capture(h *History, key int64) {
	p.t.Helper()
	c, err := p.BeginCapture(p.now, h, model.NumberKey(key), 100, 1, nil, CaptureOptions{})
	if err != nil || c.Phase != Ready {
		p.t.Fatalf("capture of %d: phase %d, %v", key, c.Phase, err)
	}
	p.EndCapture(p.now, c, true)
	for x := p.Next(p.now, anyDown); x != nil; x = p.Next(p.now, anyDown) {
		p.Done(p.now, x, nil)
	}
}

// restore reads a checkpoint that many nanoseconds after the last call.
func (p *paced) restore(h *History, key, after int64) {
	p.t.Helper()
	p.now += after
	r, err := p.BeginRestore(p.now, h, model.NumberKey(key), RestoreOptions{})
	if err != nil || r.Phase != Ready {
		p.t.Fatalf("restore of %d: phase %d, %v", key, r.Phase, err)
	}
	p.EndRestore(p.now, r)
}

// captureOthers writes checkpoints that are needed next.
func (p *paced) captureOthers(n int64) {
	p.t.Helper()
	other := p.History("other")
	for k := range n {
		p.Hint(p.now, other, justRestores("other", k))
		p.capture(other, k)
	}
}

// lacking are the keys of a history that the fast tier does not hold.
func (p *paced) lacking(h *History) (keys []int64) {
	h.Each(func(r *Record) {
		if !p.Complete(r, 0) {
			keys = append(keys, r.Key.Number)
		}
	})
	slices.Sort(keys)
	return keys
}

func justRestores(_ string, k int64) []plan.Hint {
	return []plan.Hint{{Key: model.NumberKey(k), Op: plan.Restore}}
}

// A history that is restored a hundred times as often as another loses no copy while the other has one that is needed later.
func TestTheSlowHistoryGoesFirst(t *testing.T) {
	p := newPaced(t, 20, justRestores)
	for k := range int64(4) {
		for i := range int64(4) {
			p.restore(p.a, 4*k+i, 1000)
		}
		if k < 2 {
			p.restore(p.b, k, 1_000_000)
		}
	}
	p.captureOthers(18 + 5) // restored checkpoints are not expected any more, and are evicted first
	if a, b := p.lacking(p.a), p.lacking(p.b); len(a) != 16 || a[15] != 15 || !slices.Equal(b, []int64{0, 1, 15, 16, 17, 18, 19}) {
		t.Errorf("of the slow history %v are gone, of the fast one %v", b, a)
	}
}

// Announced intervals are between restores: a checkpoint expected behind them is needed later.
func TestAdvanceCounts(t *testing.T) {
	p := newPaced(t, 5, func(h string, k int64) []plan.Hint {
		if h == "b" && k == 0 {
			return append([]plan.Hint{{Op: plan.Advance, Steps: 100}}, justRestores(h, k)...)
		}
		return justRestores(h, k)
	})
	p.captureOthers(5)
	if a, b := p.lacking(p.a), p.lacking(p.b); len(a) > 0 || len(b) != 5 {
		t.Errorf("behind 100 intervals %v are gone, at once needed %v", b, a)
	}
}

func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pace
		each := rapid.Int64Range(1, 1e9).Draw(t, "each")
		now, place := rapid.Int64Range(0, 1e9).Draw(t, "now"), rapid.Int64Range(0, 1e9).Draw(t, "place")
		guessed := rapid.Bool().Draw(t, "guessed")
		p.restored(now, place, guessed)
		if p.now(now+each) != 0 {
			t.Fatalf("the pace is known after one restore")
		}
		for range rapid.IntRange(1, 30).Draw(t, "restores") {
			n := rapid.Int64Range(0, 5).Draw(t, "intervals")
			if guessed {
				n = 1
				place += rapid.Int64Range(-9, 9).Draw(t, "made anew")
			}
			now, place = now+n*each, place+n
			p.restored(now, place, guessed)
		}
		if got := p.now(now); got != 0 && (got < 0.99*float64(each) || got > 1.01*float64(each)) {
			t.Fatalf("%g ns, not %d", got, each)
		}
		if before := p.interval; before != 0 {
			p.restored(now+1000*each, place+1, guessed)
			if got := p.now(now + 1000*each); got > 2*before {
				t.Fatalf("a pause makes %g of %g", got, before)
			}
			if got := p.now(now + 3000*each); got < 1999*float64(each) {
				t.Fatalf("nothing has been restored for %d, and %g are expected", 2000*each, got)
			}
		}
	})
}

// The weights of intervals stay within the limits of evict, and the fastest known history has the smallest.
func TestIntervalsCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New(Config{Tiers: []TierConfig{{Name: "host", Capacity: 1000}}})
		now := int64(1e15)
		fastest := 0.0
		for i := range rapid.IntRange(1, 6).Draw(t, "histories") {
			h := e.History(string(rune('a' + i)))
			e.Hint(0, h, []plan.Hint{{Key: model.NumberKey(1), Op: plan.Restore}})
			h.pace = pace{begun: true, at: now, interval: rapid.SampledFrom([]float64{0, 1, 3, 1e3, 1e9, 1e14}).Draw(t, "interval")}
			if i := h.pace.interval; i > 0 && (fastest == 0 || i < fastest) {
				fastest = i
			}
		}
		e.paced = true
		e.compare(now)
		for lane, h := range e.histories {
			got := e.intervals[lane]
			if got < alike || got > evict.LongestInterval {
				t.Fatalf("an interval of %g counts %d", h.pace.interval, got)
			}
			if want := alike * h.pace.interval / fastest; h.pace.interval > 0 && want <= float64(evict.LongestInterval) && (float64(got) < want-1 || float64(got) > want+1) {
				t.Fatalf("an interval of %g counts %d beside one of %g", h.pace.interval, got, fastest)
			}
		}
	})
}

// The checkpoints needed latest are flushed first, whichever history they belong to.
func TestTheSlowHistoryGoesDownFirst(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{
		{Name: "host", Capacity: 1000, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 100_000, Remote: true},
	}})
	p := &paced{Engine: e, t: t, a: e.History("fast"), b: e.History("slow")}
	p.a.pace, p.b.pace = pace{begun: true, interval: 1}, pace{begun: true, interval: 100}
	e.paced = true
	for k := range int64(4) {
		e.Hint(0, p.a, justRestores("", k))
		e.Hint(0, p.b, justRestores("", k))
	}
	for k := range int64(8) {
		h := p.a
		if k >= 4 {
			h = p.b
		}
		c, err := e.BeginCapture(0, h, model.NumberKey(k%4), 100, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatalf("capture of %d: phase %d, %v", k, c.Phase, err)
		}
		e.EndCapture(0, c, true)
	}
	e.compare(0)
	var order []string
	for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) { // the last capture has left less than a quarter of the tier
		order = append(order, x.Rec.Hist.Name+x.Rec.Key.String())
	}
	for e.links[0].dirty.count > 0 {
		o := e.links[0].dirty.next(e.state, func(*Object) bool { return true })
		order = append(order, o.home.Hist.Name+o.home.Key.String())
		e.links[0].dirty.set(o, false)
	}
	want := []string{"slow3", "slow2", "slow1", "fast3", "fast2", "fast1"} // the first of each are due now
	if len(order) != 8 || !slices.Equal(order[:len(want)], want) {
		t.Errorf("%v, not %v", order, want)
	}
}

// Announced intervals belong to the restore behind them: a plan with pauses has the pace of one without.
func TestPaceOfAPlanWithPauses(t *testing.T) {
	const each, pause = 1000, 50
	p := newPaced(t, 20, func(_ string, k int64) []plan.Hint {
		hints := justRestores("", k)
		if k%3 == 2 {
			hints = append(hints, plan.Hint{Op: plan.Advance, Steps: pause})
		}
		return hints
	})
	for k := range int64(20) {
		after := int64(each)
		if k > 0 && k%3 == 0 {
			after += pause * each
		}
		p.restore(p.a, k, after)
	}
	if got := p.a.pace.now(p.now); got < 0.9*each || got > 1.1*each {
		t.Errorf("an interval of %d ns is taken for one of %g", each, got)
	}
	if d := p.b.order.Now(); d != 0 {
		t.Errorf("the order of a history that was not restored stands at %d", d)
	}
}
