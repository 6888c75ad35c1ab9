package sim

import (
	"slices"
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/plan"
)

// The five conditions of Maurya et al., HPDC'23, section 2, one test each.

const mib = int64(1 << 20)

// slowDisk is a host cache of that many checkpoints of 1 MiB over a disk that takes 100 ms for each.
func slowDisk(slots int64, flush engine.FlushMode, trace func(engine.Event)) *Machine {
	cfg := hostAndDisk(slots * mib)
	cfg.Flush, cfg.Trace = flush, trace
	return NewMachine(cfg, []Medium{{WriteRate: 10 * float64(mib), ReadRate: 10 * float64(mib), Workers: 1}}, 1e9)
}

func (m *Machine) mustCapture(t *testing.T, h *engine.History, k, size int64) int64 {
	t.Helper()
	blocked, err := m.Capture(h, k, size, engine.CaptureOptions{})
	if err != nil {
		t.Fatalf("capture of %d: %v", k, err)
	}
	return blocked
}

func (m *Machine) mustRestore(t *testing.T, h *engine.History, k int64, last bool) (int64, bool) {
	t.Helper()
	blocked, hit, err := m.Restore(h, k, engine.RestoreOptions{Last: last})
	if err != nil {
		t.Fatalf("restore of %d: %v", k, err)
	}
	return blocked, hit
}

func TestCondition1CaptureBlocksForTheCopyOnly(t *testing.T) {
	m := slowDisk(16, engine.Eager, nil)
	h := m.Engine.History("h")
	for k := range int64(16) {
		if blocked := m.mustCapture(t, h, k, mib); blocked != m.CopyTime(mib) {
			t.Errorf("capture %d blocked for %d ns, the copy takes %d", k, blocked, m.CopyTime(mib))
		}
		if r := h.Get(Key(k)); !m.Engine.Complete(r, 0) || m.Engine.Complete(r, 1) {
			t.Errorf("capture %d is not in the fastest tier, or on the disk in no time", k)
		}
	}
	m.Until(func() bool { return false })
	if w := m.Engine.Stats.Tiers[1].Written; w != 16*mib {
		t.Errorf("%d bytes were flushed in the background, of %d", w, 16*mib)
	}
}

func TestCondition2RestoreWhileFlushesArePending(t *testing.T) {
	m := slowDisk(16, engine.Eager, nil)
	h := m.Engine.History("h")
	for k := range int64(16) {
		m.mustCapture(t, h, k, mib)
	}
	for k := range int64(16) {
		blocked, hit := m.mustRestore(t, h, k, false)
		if !hit || blocked != m.CopyTime(mib) {
			t.Errorf("restore %d: hit %v, blocked for %d ns", k, hit, blocked)
		}
	}
	if w := m.Engine.Stats.Tiers[1].Written; w > mib {
		t.Errorf("%d bytes were flushed already: nothing was pending", w)
	}
}

func TestCondition3PrefetchFollowsTheHints(t *testing.T) {
	var loaded []int64
	m := slowDisk(8, engine.Lazy, func(ev engine.Event) {
		if ev.Kind == engine.Loaded {
			loaded = append(loaded, ev.Rec.Key.Number)
		}
	})
	h := m.Engine.History("h")
	for k := range int64(32) {
		m.mustCapture(t, h, k, mib)
	}
	order := []int64{3, 17, 1, 9, 12}
	var hints []plan.Hint
	for _, k := range order {
		hints = append(hints, plan.Hint{Key: Key(k)})
	}
	m.Engine.Hint(m.Now(), h, hints)
	m.Engine.StartPrefetch(m.Now(), h)
	m.Until(func() bool { return false })
	if !slices.Equal(loaded, order) {
		t.Errorf("prefetched %v, hinted %v", loaded, order)
	}
	for _, k := range order {
		if blocked, hit := m.mustRestore(t, h, k, false); !hit || blocked != m.CopyTime(mib) {
			t.Errorf("restore of %d: hit %v, blocked for %d ns", k, hit, blocked)
		}
	}
}

func TestCondition4PrefetchedStaysUntilRestored(t *testing.T) {
	promised := map[int64]bool{}
	m := slowDisk(16, engine.Lazy, func(ev engine.Event) {
		if ev.Kind == engine.Evicted && ev.Tier == 0 && promised[ev.Rec.Key.Number] {
			t.Errorf("%d was prefetched and is evicted before its restore", ev.Rec.Key.Number)
		}
	})
	h := m.Engine.History("h")
	for k := range int64(64) {
		m.mustCapture(t, h, k, mib)
	}
	var hints []plan.Hint
	for k := range int64(6) {
		promised[k] = true
		hints = append(hints, plan.Hint{Key: Key(k)})
	}
	m.Engine.Hint(m.Now(), h, hints)
	m.Engine.StartPrefetch(m.Now(), h)
	m.Until(func() bool { return false })
	for k := range int64(64) { // fill the cache from all sides
		m.mustCapture(t, h, 100+k, mib)
		if k%4 == 0 {
			if _, _, err := m.Restore(h, 20+k/4, engine.RestoreOptions{Peek: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for k := range int64(6) {
		delete(promised, k)
		if _, hit := m.mustRestore(t, h, k, false); !hit {
			t.Errorf("%d is not in the fastest tier any more", k)
		}
	}
	if n := m.Engine.Stats.BrokenPromises; n > 0 {
		t.Errorf("%d promises were broken", n)
	}
}

func TestCondition5ConsumedOwesNoFlush(t *testing.T) {
	m := slowDisk(16, engine.Eager, nil)
	h := m.Engine.History("h")
	for k := range int64(16) {
		m.mustCapture(t, h, k, mib)
	}
	for k := int64(15); k >= 2; k-- {
		m.mustRestore(t, h, k, true)
	}
	m.Engine.Drop(m.Now(), h, Key(1))
	m.Until(func() bool { return false })
	s := &m.Engine.Stats
	if w := s.Tiers[1].Written; w != mib {
		t.Errorf("%d bytes were written, of which %d are owed", w, mib)
	}
	if s.CancelledFlush != 15*mib {
		t.Errorf("%d bytes of flushes were cancelled, of %d", s.CancelledFlush, 15*mib)
	}
	if u := m.Engine.Use(1); u.Used != mib {
		t.Errorf("%d bytes are used on the disk", u.Used)
	}
}
