package host

import (
	"testing"

	"velocpy/gocore/tier"
	"velocpy/gocore/tier/tiertest"
)

func TestObjects(t *testing.T) {
	tiertest.Test(t, func(t tiertest.TB, _ uint64) *tiertest.Tier {
		m, err := Open(Options{Bytes: 1 << 20})
		if err != nil {
			t.Fatalf("%v", err)
		}
		return &tiertest.Tier{Objects: m.Objects(), Room: m.Size(), Most: 150_000, Close: m.Unmap}
	})
}

// The double injects its faults into memory too.
func TestFaultyObjects(t *testing.T) {
	tiertest.Test(t, func(t tiertest.TB, seed uint64) *tiertest.Tier {
		m, err := Open(Options{Bytes: 1 << 20})
		if err != nil {
			t.Fatalf("%v", err)
		}
		broken := &tiertest.Rule{Calls: tiertest.Write, Part: 100}
		broken.Disable()
		f := tiertest.NewFaulty(m.Objects(), seed, broken, &tiertest.Rule{Calls: tiertest.Read, Mix: true})
		return &tiertest.Tier{Objects: f, Room: m.Size(), Most: 150_000, Close: m.Unmap, Fail: func(on bool) {
			if on {
				broken.Enable()
			} else {
				broken.Disable()
			}
		}}
	})
}

// An object lies in the memory itself, at its offset, and ends where it ends.
func TestObjectsLieInTheMemory(t *testing.T) {
	m, err := Open(Options{Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Unmap() }()
	o := tier.Object{ID: 1, Offset: 4096, Bytes: 10}
	sink, err := m.Objects().Create(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	source, err := m.Objects().Open(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string][]byte{"sink": sink.Bytes(), "source": source.Bytes()} {
		if &p[0] != &m.Bytes(4096, 1)[0] || len(p) != 10 || cap(p) != 10 {
			t.Errorf("%s: %d bytes at %p, with room for %d", name, len(p), p, cap(p))
		}
	}
}

// A transfer costs one allocation for its source, and one for its sink.
func TestAllocationsOfATransfer(t *testing.T) {
	m, err := Open(Options{Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Unmap() }()
	var objects tier.Objects = m.Objects()
	wanted := func() bool { return true }
	n := testing.AllocsPerRun(100, func() {
		source, _ := objects.Open(tier.Object{Bytes: 1000})
		sink, _ := objects.Create(tier.Object{Offset: 1000, Bytes: 1000}, wanted)
		if sink.Write(0, source.Bytes()) != nil || sink.Commit() != nil {
			t.Error("it failed")
		}
	})
	if n > 2 {
		t.Errorf("%v allocations", n)
	}
}
