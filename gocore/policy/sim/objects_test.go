package sim

import (
	"errors"
	"slices"
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/plan"
)

// halved keeps checkpoints raw in the fastest tier, and in at most so many bytes, which turn out to be half of the raw ones, in the tiers below.
func halved(side engine.Side) func(size int64) *engine.Shape {
	return func(size int64) *engine.Shape {
		s := &engine.Shape{}
		for t := 1; t < engine.MaxTiers; t++ {
			s.Forms[t], s.Sizes[t], s.Stages[t-1] = engine.Encoded, size, side
		}
		return s
	}
}

// Checkpoints that are raw on the device and half as large below take half of the room on the host, and half of the way to the disk. If the device encodes
// them, half of the bytes cross the link to the host.
func TestCheckpointsAreEncodedBelowTheDevice(t *testing.T) {
	const size = 128 << 20
	slow := deviceMachine // whose link to the host is slow enough to count
	slow.media = []Medium{{WriteRate: 3e9, ReadRate: 3e9, Workers: 1, Latency: 20e3}, deviceMachine.media[1]}
	run := func(shape func(int64) *engine.Shape) (Result, *Machine) {
		m := slow.build(evict.Score, engine.Lazy)
		m.Encode(func(x *engine.Transfer) int64 { return x.Obj.Bytes(0) / 2 })
		s := Shot{Sizes: uniform(shotLength, size), Compute: 10e6, Order: Reverse(shotLength), Hints: AllHints, Last: true, Shape: shape}
		r, err := s.Run(m)
		if err != nil {
			t.Fatal(err)
		}
		return r, m
	}
	raw, _ := run(nil)
	above, ofAbove := run(halved(engine.UpperSide))
	below, ofBelow := run(halved(engine.LowerSide))
	// 384 checkpoints have 48 GiB, and 24 GiB when they are encoded: then the host, which has 29.8 GiB, holds all of them.
	if least := shortfall(size); raw.Written < least || above.Written > 0 || below.Written > 0 {
		t.Errorf("written: %d raw, at least %d are due; %d and %d encoded", raw.Written, least, above.Written, below.Written)
	}
	for _, m := range []*Machine{ofAbove, ofBelow} {
		if most := m.Engine.Stats.Tiers[1].HighWater; most > shotLength*size/2 {
			t.Errorf("%d bytes were in use on the host, of %d that are encoded", most, shotLength*size/2)
		}
	}
	blocked := func(r Result) int64 { return r.CaptureBlocked + r.RestoreBlocked }
	if blocked(above) > blocked(below)/2 || blocked(below) > blocked(raw) {
		t.Errorf("blocked for %d ns if the device encodes, for %d if the host does, and for %d raw", blocked(above), blocked(below), blocked(raw))
	}
	if ofAbove.sent[0]*2 != ofBelow.sent[0] {
		t.Errorf("over the link below the device went %d bytes that it had encoded, and %d for the host to encode", ofAbove.sent[0], ofBelow.sent[0])
	}
}

// shortfall is how many raw bytes of a shot neither the device nor the host can hold.
func shortfall(size int64) int64 { return shotLength*size - 32*gb - 4*gb }

// refer makes a checkpoint of objects that there are.
func (m *Machine) refer(t *testing.T, h *engine.History, k, size int64, objects []*engine.Object) {
	t.Helper()
	if _, err := m.Engine.Refer(m.Now(), h, Key(k), size, nil, objects); err != nil {
		t.Fatal(err)
	}
}

// Checkpoints that were accumulated in one object come up with it: one load serves the restores of all. The room is free when the last of them was
// restored, and not before.
func TestAGroupOfCheckpointsIsOneObject(t *testing.T) {
	const groups, of = 8, 8
	run := func(accumulated bool) (*Machine, int64) {
		cfg := hostAndDisk(8 * mib)
		cfg.Prefetch = true
		m := NewMachine(cfg, []Medium{{WriteRate: 100e6, ReadRate: 100e6, Workers: 2}}, 10e9)
		h := m.Engine.History("h")
		var order []plan.Hint
		for g := range int64(groups) {
			for k := g * of; k < (g+1)*of; k++ {
				switch {
				case !accumulated:
					m.mustCapture(t, h, k, mib)
				case k == g*of:
					m.mustCapture(t, h, k, 2*mib)
				default:
					m.refer(t, h, k, mib, h.Get(Key(g*of)).Objects())
				}
				order = append(order, plan.Hint{Op: plan.Last, Key: Key(k)})
			}
		}
		slices.Reverse(order)
		m.Engine.Hint(m.Now(), h, order)
		m.Engine.StartPrefetch(m.Now(), h)
		blocked := int64(0)
		for _, x := range order {
			k := x.Key.Number
			m.Pass(1e6)
			wait, _ := m.mustRestore(t, h, k, true)
			blocked += wait
			if k%of > 1 {
				continue
			}
			m.Until(func() bool { return false }) // a flush that was under way keeps the room until it ends
			left := int64(0)
			for tier := range 2 {
				left = max(left, m.Engine.Use(tier).Used)
			}
			if due := (k + of - 1) / of * 2 * mib; accumulated && (left > due || k > 0 && left == 0) {
				t.Fatalf("checkpoint %d was restored for the last time, and %d bytes are in use, of %d at the most", k, left, due)
			}
		}
		return m, blocked
	}
	apart, slow := run(false)
	together, fast := run(true)
	if a, b := apart.Engine.Stats.Tiers[1].Read, together.Engine.Stats.Tiers[1].Read; a < 56*mib || b > 16*mib-6*mib {
		t.Errorf("%d bytes were read for checkpoints of their own, %d for accumulated ones", a, b)
	}
	if fast*3 > slow {
		t.Errorf("restores of accumulated checkpoints blocked for %d ns, others for %d", fast, slow)
	}
}

// The last checkpoint of a chain needs all of it. A prefetch brings the chain in order, and then every restore finds its bytes, without a load of its own.
func TestAChainOfDifferencesComesInOrder(t *testing.T) {
	const chains, of = 6, 8
	const part = mib / 8
	var loaded []int64
	cfg := hostAndDisk(4 * mib)
	cfg.Prefetch, cfg.Flush = true, engine.Eager
	cfg.Trace = func(ev engine.Event) {
		if ev.Kind == engine.Loaded {
			loaded = append(loaded, ev.Obj.Made().Key.Number)
		}
	}
	m := NewMachine(cfg, []Medium{{WriteRate: 100e6, ReadRate: 100e6, Workers: 1}}, 10e9)
	h := m.Engine.History("h")
	for c := range int64(chains) {
		m.mustCapture(t, h, c*of, mib)
		for k := c*of + 1; k < (c+1)*of; k++ {
			x, err := m.Engine.BeginCapture(m.Now(), h, Key(k), part, 1, nil, engine.CaptureOptions{Needs: h.Get(Key(k - 1)).Objects()})
			if err != nil {
				t.Fatal(err)
			}
			m.Until(func() bool { return x.Phase != engine.Waiting })
			m.Engine.EndCapture(m.Now(), x, true)
		}
	}
	m.Until(func() bool { return false })
	for c := range int64(chains) { // every chain from its end, and the first chain first
		for k := (c+1)*of - 1; k >= c*of; k-- {
			m.Engine.Hint(m.Now(), h, []plan.Hint{{Op: plan.Last, Key: Key(k)}})
		}
	}
	m.Engine.StartPrefetch(m.Now(), h)
	hits := 0
	for c := range int64(chains) {
		for k := (c+1)*of - 1; k >= c*of; k-- {
			m.Pass(5e6)
			r := h.Get(Key(k))
			if _, hit := m.mustRestore(t, h, k, true); hit {
				hits++
			}
			if want := int(k - c*of); len(r.Objects()) != want+1 {
				t.Fatalf("checkpoint %d consists of %d objects, must have %d", k, len(r.Objects()), want+1)
			}
		}
	}
	if hits < (chains-1)*of {
		t.Errorf("%d restores of %d found their chain in the host", hits, chains*of)
	}
	if !slices.IsSorted(loaded) {
		t.Errorf("loaded in this order: %v", loaded)
	}
	if len(loaded) < (chains-3)*of || len(loaded) > chains*of {
		t.Errorf("%d objects of %d were loaded", len(loaded), chains*of)
	}
	for tier := range 2 {
		if u := m.Engine.Use(tier); u.Used != 0 {
			t.Errorf("all was restored for the last time, and tier %d has %+v", tier, u)
		}
	}
}

// An index belongs to no checkpoint. It is flushed and evicted like one that no restore order expects, comes up when its owner uses it, and its room is free
// when its owner gives it up.
func TestAnIndexLivesUnderTheSameBudget(t *testing.T) {
	const slots, n = 8, 64
	m := NewMachine(hostAndDisk(slots*mib), []Medium{{WriteRate: 1e9, ReadRate: 1e9, Workers: 2}}, 10e9)
	h := m.Engine.History("h")
	c, err := m.Engine.BeginObject(m.Now(), 2*mib, 1, engine.CaptureOptions{})
	if err != nil || c.Phase != engine.Ready {
		t.Fatalf("the host is empty, and an index of 2 MiB gets %+v, %v", c, err)
	}
	m.Engine.EndCapture(m.Now(), c, true)
	use := func() (hit bool) {
		r, err := m.Engine.BeginUse(m.Now(), c.Rec, engine.RestoreOptions{Into: true})
		if err != nil || !m.Until(func() bool { return r.Phase == engine.Ready }) {
			t.Fatalf("the index cannot be used: %v, phase %d", err, r.Phase)
		}
		m.Engine.EndRestore(m.Now(), r)
		return r.Hit
	}
	if !use() {
		t.Error("the index was not in the host, right after it was written")
	}
	for k := range int64(n) {
		m.Pass(1e6)
		m.mustCapture(t, h, k, mib)
	}
	if use() {
		t.Errorf("%d checkpoints came into a host of %d, and the index, which nothing expects, is still there", n, slots)
	}
	if read := m.Engine.Stats.Tiers[1].Read; read != 2*mib {
		t.Errorf("%d bytes were loaded for the index", read)
	}
	if most := m.Engine.Stats.Tiers[0].HighWater; most > slots*mib {
		t.Errorf("%d bytes were in use in a host of %d", most, slots*mib)
	}
	m.Until(func() bool { return false })
	before := m.Engine.Use(1).Used
	m.Engine.Disown(m.Now(), c.Rec)
	if freed := before - m.Engine.Use(1).Used; freed != 2*mib || !c.Rec.Gone() {
		t.Errorf("the index was given up, and %d bytes of the disk are free again", freed)
	}
	if m.Engine.Stats.Captures != n {
		t.Errorf("%d checkpoints were counted, of %d", m.Engine.Stats.Captures, n)
	}
}

// A fast encoder before a slow link lets the application wait less, a slow one before a fast link lets it wait more.
func TestEncodersPayBeforeSlowLinks(t *testing.T) {
	blocked := func(link, codec float64, shape func(int64) *engine.Shape) int64 {
		x := deviceMachine
		x.media = []Medium{{WriteRate: link, ReadRate: link, Workers: 1, Latency: 20e3}, deviceMachine.media[1]}
		m := x.build(evict.Score, engine.Lazy)
		m.codec = codec
		m.Encode(func(x *engine.Transfer) int64 { return x.Obj.Bytes(0) / 2 })
		s := Shot{Sizes: uniform(shotLength, 128<<20), Compute: 10e6, Order: Reverse(shotLength), Hints: AllHints, Last: true, Shape: shape}
		r, err := s.Run(m)
		if err != nil {
			t.Fatal(err)
		}
		return r.CaptureBlocked + r.RestoreBlocked
	}
	if raw, encoded := blocked(3e9, 0, nil), blocked(3e9, 50e9, halved(engine.UpperSide)); encoded > raw*6/10 {
		t.Errorf("50 GB/s before 3 GB/s: blocked for %d ns, and for %d raw", encoded, raw)
	}
	if raw, encoded := blocked(25e9, 0, nil), blocked(25e9, 2e9, halved(engine.UpperSide)); encoded < raw {
		t.Errorf("2 GB/s before 25 GB/s: blocked for %d ns, and for %d raw", encoded, raw)
	}
}

// Every second checkpoint of a full host was dropped, and no gap holds a large one. Moving the others together makes one gap of all, without an eviction,
// while a lease goes on reading the place that it was given.
func TestRelocationsJoinTheGaps(t *testing.T) {
	const n = 8
	cfg := engine.Config{Tiers: []engine.TierConfig{{Name: "host", Capacity: n * mib, Grain: 64}}}
	m := NewMachine(cfg, nil, 10e9)
	h := m.Engine.History("h")
	for k := range int64(n) {
		m.mustCapture(t, h, k, mib)
	}
	for k := int64(0); k < n; k += 2 {
		m.Engine.Drop(m.Now(), h, Key(k))
	}
	lease, err := m.Engine.BeginRestore(m.Now(), h, Key(n-1), engine.RestoreOptions{})
	if err != nil || lease.Phase != engine.Ready {
		t.Fatal(err)
	}
	_, at := m.Engine.Place(lease, 0)
	large := func() error {
		_, err := m.Capture(h, 100, n/2*mib-mib, engine.CaptureOptions{})
		return err
	}
	if err := large(); !errors.Is(err, engine.ErrFull) {
		t.Fatalf("a checkpoint larger than every gap: %v", err)
	}
	for k := int64(n - 1); k > 0; k -= 2 { // from the end, each into the first gap
		if o := h.Get(Key(k)).Objects()[0]; m.Engine.Relocate(m.Now(), o, 0) {
			if used := m.Engine.Use(0).Used; used > n*mib {
				t.Errorf("%d bytes are in use", used)
			}
			m.Until(func() bool { return false })
		}
	}
	if _, off := m.Engine.Place(lease, 0); off != at || m.Engine.Fragment(lease.Rec, 0).Offset >= at {
		t.Errorf("the lease reads at %d, and was given %d; the checkpoint lies at %d", off, at, m.Engine.Fragment(lease.Rec, 0).Offset)
	}
	before := m.Engine.Use(0).Used
	m.Engine.EndRestore(m.Now(), lease)
	if freed := before - m.Engine.Use(0).Used; freed != mib {
		t.Errorf("the lease has ended, and %d bytes of its place are free", freed)
	}
	if err := large(); err != nil || m.Engine.Stats.Tiers[0].Evicted > 0 {
		t.Errorf("%v; %d bytes were evicted", err, m.Engine.Stats.Tiers[0].Evicted)
	}
}

// A host without a disk holds more checkpoints when those that are not needed soon are encoded where they are, and gives them back when they are decoded.
func TestCheckpointsAreEncodedInPlace(t *testing.T) {
	cfg := engine.Config{Tiers: []engine.TierConfig{{Name: "host", Capacity: 8 * mib, Grain: 64}}}
	m := NewMachine(cfg, nil, 10e9)
	m.encode = func(x *engine.Transfer) int64 { return x.Writes() / 2 }
	h := m.Engine.History("h")
	for k := range int64(12) {
		m.mustCapture(t, h, k, mib)
		if k < 8 {
			o := h.Get(Key(k)).Objects()[0]
			if !m.Engine.Recode(m.Now(), o, 0, engine.Encoded, mib) && k < 7 {
				t.Fatalf("checkpoint %d is not encoded, of %+v", k, m.Engine.Use(0))
			}
			m.Until(func() bool { return false })
		}
	}
	if used := m.Engine.Use(0).Used; used > 8*mib || used < 8*mib-mib/2 {
		t.Errorf("%d bytes hold 12 checkpoints of 1 MiB, of which most are half as large", used)
	}
	for k := int64(11); k >= 0; k-- {
		o := h.Get(Key(k)).Objects()[0]
		if o.Form(0) != engine.Raw && !m.Engine.Recode(m.Now(), o, 0, engine.Raw, 0) {
			t.Fatalf("checkpoint %d is not decoded", k)
		}
		m.Until(func() bool { return false })
		if o.Form(0) != engine.Raw || o.Bytes(0) != mib {
			t.Fatalf("checkpoint %d has %d bytes in form %d", k, o.Bytes(0), o.Form(0))
		}
		if _, hit := m.mustRestore(t, h, k, true); !hit {
			t.Errorf("checkpoint %d was not in the host", k)
		}
	}
	if used := m.Engine.Use(0).Used; used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}
