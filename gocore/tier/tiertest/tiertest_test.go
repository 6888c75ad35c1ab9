package tiertest

import (
	"errors"
	"testing"
	"time"

	"velocpy/gocore/tier"
)

// The model of an object store is a tier.
func TestMap(t *testing.T) {
	Test(t, func(TB, uint64) *Tier { return ofMap(NewMap()) })
}

func ofMap(m Map) *Tier {
	return &Tier{
		Objects: m, Most: 200_000,
		Crash: func() (*Tier, error) { return ofMap(m), nil },
		Other: func() (tier.Objects, error) { return m, nil },
		Wrong: func(o tier.Object) tier.Object { o.Bytes++; return o },
	}
}

// A double that is slow, mixes arrivals, and loses what is not synced is a tier all the same.
func TestFaulty(t *testing.T) {
	Test(t, func(_ TB, seed uint64) *Tier {
		slow := &Rule{Calls: Any, Skip: 20, Times: 20, Delay: 50 * time.Microsecond}
		mixed := &Rule{Calls: Read, Mix: true}
		return ofFaulty(func(rules ...*Rule) *Faulty { return NewFaulty(NewMap(), seed, append(rules, slow, mixed)...) })
	})
}

func ofFaulty(open func(rules ...*Rule) *Faulty) *Tier {
	broken := &Rule{Calls: Write, Part: 100}
	broken.Disable()
	f := open(broken)
	return &Tier{
		Objects: f, Most: 200_000,
		Crash: func() (*Tier, error) {
			next, err := f.Crash()
			return ofFaulty(func(rules ...*Rule) *Faulty { next.rules = rules; return next }), err
		},
		Other: func() (tier.Objects, error) { return f.inner, nil },
		Fail:  broken.set,
	}
}

func (r *Rule) set(on bool) { r.off.Store(!on) }

var errHere = errors.New("here")

// Each call of the double fails by a rule of its own, and by no other.
func TestRulesFire(t *testing.T) {
	calls := map[Call]func(f *Faulty) error{
		Create: func(f *Faulty) error { _, err := f.Create(tier.Object{ID: 2, Bytes: 1}, nil); return err },
		Open:   func(f *Faulty) error { _, err := f.Open(tier.Object{ID: 1, Bytes: 3}); return err },
		Delete: func(f *Faulty) error { return f.Delete(tier.Object{ID: 9}) },
		Sync:   func(f *Faulty) error { return f.Sync() },
		List:   func(f *Faulty) error { return f.List(func(tier.Object) error { return nil }) },
		Read: func(f *Faulty) error {
			s, err := f.Open(tier.Object{ID: 1, Bytes: 3})
			if err != nil {
				return nil
			}
			return s.Read(0, make([]byte, 3), nil)
		},
		Write: func(f *Faulty) error {
			s, err := f.Create(tier.Object{ID: 2, Bytes: 1}, nil)
			if err != nil {
				return nil
			}
			return s.Write(0, []byte{1})
		},
		Commit: func(f *Faulty) error {
			s, err := f.Create(tier.Object{ID: 2, Bytes: 1}, nil)
			if err != nil {
				return nil
			}
			return s.Commit()
		},
		Abort: func(f *Faulty) error {
			s, err := f.Create(tier.Object{ID: 2, Bytes: 1}, nil)
			if err != nil {
				return nil
			}
			return s.Abort()
		},
	}
	if Call(1)<<len(calls)-1 != Any {
		t.Fatalf("%d kinds of calls are tested", len(calls))
	}
	for failing := range calls {
		for call, try := range calls {
			m := NewMap()
			s, err := m.Create(tier.Object{ID: 1, Bytes: 3}, nil)
			if err != nil || errors.Join(s.Write(0, []byte("abc")), s.Commit()) != nil {
				t.Fatal(err)
			}
			rule := &Rule{Calls: failing, Fail: errHere}
			if err := try(NewFaulty(m, 1, rule)); errors.Is(err, errHere) != (call == failing) {
				t.Errorf("call %b fails with %v by a rule for %b", call, err, failing)
			}
		}
	}
}

// A rule can be for one object, begin late, end early, and be switched off.
func TestWhichCallsARuleChanges(t *testing.T) {
	rule := &Rule{Calls: Delete, ID: 7, Skip: 1, Times: 2, Fail: errHere}
	f := NewFaulty(NewMap(), 1, rule)
	for i, want := range []bool{false, true, true, false} {
		if err := f.Delete(tier.Object{ID: 8}); err != nil {
			t.Errorf("another object: %v", err)
		}
		if err := f.Delete(tier.Object{ID: 7}); (err != nil) != want {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if rule.Fired() != 2 {
		t.Errorf("fired %d times", rule.Fired())
	}
	off := &Rule{Calls: Delete, Fail: errHere}
	f = NewFaulty(NewMap(), 1, off)
	off.Disable()
	if err := f.Delete(tier.Object{ID: 7}); err != nil {
		t.Errorf("a rule that is off: %v", err)
	}
	off.Enable()
	if err := f.Delete(tier.Object{ID: 7}); !errors.Is(err, errHere) {
		t.Errorf("a rule that is on again: %v", err)
	}
}

// A write that ends in the middle leaves no object; a read that does tells only of what it has brought.
func TestPartialTransfers(t *testing.T) {
	m := NewMap()
	f := NewFaulty(m, 1, &Rule{Calls: Write | Read, ID: 1, Part: 2})
	s, err := f.Create(tier.Object{ID: 1, Bytes: 4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(0, []byte("abcd")); !errors.Is(err, ErrInjected) {
		t.Errorf("a write that ends in the middle: %v", err)
	}
	if err := s.Commit(); !errors.Is(err, ErrInjected) {
		t.Errorf("its commit: %v", err)
	}
	if _, err := m.Open(tier.Object{ID: 1, Bytes: 4}); !errors.Is(err, tier.ErrAbsent) {
		t.Errorf("the object: %v", err)
	}
	m.all[1] = []byte("abcd")
	source, err := f.Open(tier.Object{ID: 1, Bytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	got, told := make([]byte, 4), int64(0)
	if err := source.Read(0, got, func(at, n int64) { told += n }); !errors.Is(err, ErrInjected) || told != 2 || string(got) != "ab\x00\x00" {
		t.Errorf("a read that ends in the middle: %v, %d told, %q", err, told, got)
	}
}

// The suite finds each capability that is not said, and each that is said and not there.
func TestCapabilitiesAreFound(t *testing.T) {
	for name, change := range map[string]func(*tier.Capabilities){
		"addressable": func(c *tier.Capabilities) { c.Addressable = true },
		"assigned":    func(c *tier.Capabilities) { c.Assigned = true },
		"durable":     func(c *tier.Capabilities) { c.Durable = false },
		"shared":      func(c *tier.Capabilities) { c.Shared = false },
		"listed":      func(c *tier.Capabilities) { c.Listed = false },
		"conditional": func(c *tier.Capabilities) { c.Conditional = false },
		"tracked":     func(c *tier.Capabilities) { c.Tracked = false },
	} {
		m := ofMap(NewMap())
		m.Objects, m.Room = liar{m.Objects, change}, 1<<20
		m.Crash = func() (*Tier, error) { return m, nil }
		found := &record{}
		capabilities(newBench(found, m))
		want := 1
		if name == "addressable" {
			want = 2 // sinks and sources
		}
		if found.errors != want {
			t.Errorf("%s: %d errors", name, found.errors)
		}
	}
}

type liar struct {
	tier.Objects
	change func(*tier.Capabilities)
}

func (l liar) Capabilities() tier.Capabilities {
	c := l.Objects.Capabilities()
	l.change(&c)
	return c
}

// record counts errors.
type record struct {
	TB
	errors int
}

func (r *record) Helper()               {}
func (r *record) Errorf(string, ...any) { r.errors++ }
func (r *record) Fatalf(format string, args ...any) {
	panic(format)
}

func put(t *testing.T, in tier.Objects, o tier.Object) {
	t.Helper()
	s, err := in.Create(o, nil)
	if err == nil {
		err = errors.Join(s.Write(0, make([]byte, o.Bytes)), s.Commit())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// syncing is a tier to which something happens during a Sync.
type syncing struct {
	Map
	meanwhile func()
}

func (s syncing) Sync() error {
	s.meanwhile()
	return nil
}

// A crash loses what was not committed, not synced, or committed during the last Sync, and ends all calls.
func TestCrashLosesWhatIsNotSynced(t *testing.T) {
	m := syncing{Map: NewMap(), meanwhile: func() {}}
	f := NewFaulty(&m, 1)
	synced, during, after, begun := tier.Object{ID: 1, Bytes: 3}, tier.Object{ID: 2, Bytes: 3}, tier.Object{ID: 3, Bytes: 3}, tier.Object{ID: 4, Bytes: 3}
	put(t, f, synced)
	m.meanwhile = func() { put(t, f, during) }
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	put(t, f, after)
	sink, err := f.Create(begun, nil)
	if err != nil {
		t.Fatal(err)
	}
	next, err := f.Crash()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Open(synced); err != nil {
		t.Errorf("what was synced: %v", err)
	}
	for _, o := range []tier.Object{during, after, begun} {
		for name, in := range map[string]tier.Objects{"double": next, "tier": m.Map} {
			if _, err := in.Open(o); !errors.Is(err, tier.ErrAbsent) {
				t.Errorf("%+v in the %s: %v", o, name, err)
			}
		}
	}
	_, opened := f.Open(synced)
	_, created := f.Create(tier.Object{ID: 5}, nil)
	for name, err := range map[string]error{
		"open": opened, "create": created, "delete": f.Delete(synced), "sync": f.Sync(), "list": f.List(nil), "write": sink.Write(0, nil), "commit": sink.Commit(),
	} {
		if !errors.Is(err, ErrCrashed) {
			t.Errorf("%s after the crash: %v", name, err)
		}
	}
	again, err := next.Crash()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Open(synced); err != nil {
		t.Errorf("what was synced, after another crash: %v", err)
	}
}
