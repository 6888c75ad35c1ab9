package engine

import (
	"slices"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/lifecycle"
)

// chained is an engine with objects of these sizes on disk, and a checkpoint that consists of all but the first.
func chained(t *testing.T, host int64, sizes ...int64) (*Engine, *History) {
	t.Helper()
	e := New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "host", Capacity: host, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 1000, Remote: true},
	}})
	h := e.History("h")
	var parts []*Object
	for k, size := range sizes {
		c, err := e.BeginCapture(0, h, model.NumberKey(int64(k)), size, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatal(k, err, c)
		}
		e.EndCapture(0, c, true)
		run(t, e, 10)
		if k > 0 {
			parts = append(parts, c.Rec.Objects()[0])
		}
	}
	if _, err := e.Refer(0, h, model.NumberKey(100), 1, nil, parts); err != nil {
		t.Fatal(err)
	}
	return e, h
}

// run carries out transfers until there are none, and returns how many there were. More than most are an error.
func run(t *testing.T, e *Engine, most int) (n int) {
	t.Helper()
	for ; n <= most; n++ {
		x := e.Next(0, anyUp)
		if x == nil {
			x = e.Next(0, anyDown)
		}
		if x == nil {
			return n
		}
		e.Done(0, x, nil)
	}
	t.Fatalf("%d transfers, and there are more", n)
	return n
}

// A restore of a chain waits for a lease that leaves too little room for all of its objects. It does not load some of them, which would evict the others.
func TestAChainWaitsForALease(t *testing.T) {
	e, h := chained(t, 32, 25, 8, 7, 6)
	lease, err := e.BeginRestore(0, h, model.NumberKey(0), RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, e, 1)
	if lease.Phase != Ready {
		t.Fatalf("the lease is %v", lease.Phase)
	}
	chain, err := e.BeginRestore(0, h, model.NumberKey(100), RestoreOptions{Patient: true})
	if err != nil {
		t.Fatal(err)
	}
	if run(t, e, 3); chain.Phase != Waiting || chain.Direct {
		t.Fatalf("beside the lease: phase %v, past the cache: %v", chain.Phase, chain.Direct)
	}
	e.EndRestore(0, lease)
	if n := run(t, e, 3); n != 3 || chain.Phase != Ready || chain.Direct {
		t.Fatalf("behind it: %d loads, phase %v, past the cache: %v", n, chain.Phase, chain.Direct)
	}
	e.EndRestore(0, chain)
}

// Two restores of chains that only together are too large for the tier do not wait for each other.
func TestTwoChainsDoNotWaitForEachOther(t *testing.T) {
	e, h := chained(t, 20, 5, 10, 8)
	var others []*Object
	for _, k := range []int64{20, 21} {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 9, 1, nil, CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Phase != Ready {
			t.Fatal(c.Phase)
		}
		e.EndCapture(0, c, true)
		run(t, e, 10)
		others = append(others, c.Rec.Objects()[0])
	}
	if _, err := e.Refer(0, h, model.NumberKey(101), 1, nil, others); err != nil {
		t.Fatal(err)
	}
	var all []*Restore
	for _, k := range []int64{100, 101} {
		r, err := e.BeginRestore(0, h, model.NumberKey(k), RestoreOptions{Patient: true})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	for round := 0; len(all) > 0; round++ {
		if round == 2 {
			t.Fatalf("a restore waits for another: phase %v", all[0].Phase)
		}
		run(t, e, 10)
		all = slices.DeleteFunc(all, func(r *Restore) bool {
			if r.Phase == Ready {
				e.EndRestore(0, r)
			}
			return r.Phase == Ended && r.Err == nil
		})
	}
}

// A restore of a chain has pinned an object that then gets another place, which is not kept for it once the restore has all of its objects.
func TestAChainReadsAnObjectWhereItPinnedIt(t *testing.T) {
	e, h := chained(t, 64, 30, 8, 8)
	chain := h.Get(model.NumberKey(100)).Objects()
	first := h.Get(model.NumberKey(0)).Objects()[0]
	e.free(chain[0], 0)
	e.free(chain[1], 0)
	r, err := e.BeginRestore(0, h, model.NumberKey(100), RestoreOptions{Patient: true})
	if err != nil {
		t.Fatal(err)
	}
	e.Done(0, e.Next(0, anyUp), nil)
	e.free(first, 0) // the room before the pinned object
	if r.Phase != Waiting {
		t.Fatalf("one of two objects is there, and the restore is %v", r.Phase)
	}
	before := chain[0].copies[0]
	if !e.Relocate(0, chain[0], 0) {
		t.Fatal("no gap before the pinned object")
	}
	e.Done(0, e.Next(0, anyDown), nil)
	run(t, e, 1)
	if chain[0].copies[0] == before {
		t.Fatal("the object did not move")
	}
	if r.Phase != Ready || e.row(chain[0], 0).State == lifecycle.ReadComplete {
		t.Fatalf("phase %v, the new place is %v", r.Phase, e.row(chain[0], 0).State)
	}
	if _, off := e.Place(r, 0); off != e.tiers[0].table.At(before).Offset {
		t.Fatalf("the restore reads at offset %d", off)
	}
	if e.Recode(0, chain[0], 0, Encoded, 4) {
		t.Fatal("the object gets another form while a restore reads its old place in the first one")
	}
	e.EndRestore(0, r)
	if !e.Recode(0, chain[0], 0, Encoded, 4) {
		t.Fatal("nothing reads the object, and it cannot get another form")
	}
}
