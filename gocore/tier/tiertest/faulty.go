package tiertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/tier"

	"go.uber.org/atomic"
)

// Call is a kind of call of a tier; kinds can be or-ed.
type Call int

// The kinds.
const (
	Create Call = 1 << iota
	Open
	Delete
	Sync
	List
	Read
	Write
	Commit
	Abort

	Any = Abort<<1 - 1
)

var (
	// ErrInjected is the error of a rule that names none.
	ErrInjected = errors.New("injected")
	// ErrCrashed ends the calls of a Faulty that has crashed.
	ErrCrashed = errors.New("the process that had the tier is gone")
)

// Rule says which calls of a Faulty change, and how. Its fields are set before use.
type Rule struct {
	// Which: all conditions that are not zero must hold.
	Calls Call
	ID    uint64 // of the object
	Skip  int64  // so many calls that match pass first
	Times int64  // so many calls change, then none any more; 0: no limit

	// How.
	Delay time.Duration // the call begins so much later
	Fail  error         // the call fails: with it, or with ErrInjected where only Part is set
	Part  int64         // a read or write transfers so many bytes before it fails
	Mix   bool          // a read tells of its arrivals in another order, in smaller parts, from several goroutines

	seen, fired atomic.Int64
	off         atomic.Bool
}

// Disable lets all further calls pass; Enable undoes it.
func (r *Rule) Disable() { r.off.Store(true) }

// Enable is the counterpart of Disable. A rule starts enabled.
func (r *Rule) Enable() { r.off.Store(false) }

// Fired is how many calls the rule has changed.
func (r *Rule) Fired() int64 { return r.fired.Load() }

func (r *Rule) fires(call Call, id uint64) bool {
	if r.off.Load() || r.Calls&call == 0 || r.ID != 0 && r.ID != id || r.seen.Add(1) <= r.Skip {
		return false
	}
	n := r.fired.Add(1)
	if r.Times > 0 && n > r.Times {
		r.fired.Sub(1)
		return false
	}
	return true
}

// fails is the error of a call that the rule changes; nil: it only takes longer, or mixes.
func (r *Rule) fails() error {
	if r == nil || r.Fail == nil && r.Part == 0 {
		return nil
	}
	if r.Fail == nil {
		return ErrInjected
	}
	return r.Fail
}

// Faulty passes calls to another tier, except those that match a rule. After a crash the tier has lost what was not synced.
type Faulty struct {
	inner tier.Objects
	rules []*Rule

	mu       sync.Mutex
	random   *rand.Rand
	crashed  bool
	unsynced map[uint64]tier.Object // committed after the last Sync began that has succeeded
	lost     map[uint64]bool        // by a crash
}

// NewFaulty wraps a tier. It tries the rules in order; the first one that fires decides.
func NewFaulty(inner tier.Objects, seed uint64, rules ...*Rule) *Faulty {
	return &Faulty{
		inner: inner, rules: rules, random: rand.New(rand.NewPCG(seed, 1)), unsynced: map[uint64]tier.Object{}, lost: map[uint64]bool{},
	}
}

// Crash ends the process that had the tier: what it has begun and not committed is gone, and so is what it has committed and not synced. It returns the tier as
// the next process has it, without rules.
func (f *Faulty) Crash() (*Faulty, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashed = true
	next := NewFaulty(f.inner, f.random.Uint64())
	for id := range f.lost {
		next.lost[id] = true
	}
	for id, o := range f.unsynced {
		if err := f.inner.Delete(o); err != nil {
			return nil, err
		}
		next.lost[id] = true
	}
	return next, nil
}

// meet returns the rule that changes a call, if any, and the error of the call.
func (f *Faulty) meet(call Call, id uint64) (*Rule, error) {
	for _, r := range f.rules {
		if r.fires(call, id) {
			time.Sleep(r.Delay)
			return r, errors.Join(f.gone(), r.fails())
		}
	}
	return nil, f.gone()
}

func (f *Faulty) gone() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return ErrCrashed
	}
	return nil
}

// Capabilities implements tier.Objects.
func (f *Faulty) Capabilities() tier.Capabilities {
	c := f.inner.Capabilities()
	c.Addressable = false // bytes that are not written by a call could not be lost
	return c
}

// Create implements tier.Objects.
func (f *Faulty) Create(o tier.Object, wanted func() bool) (tier.Sink, error) {
	if _, err := f.meet(Create, o.ID); err != nil {
		return nil, err
	}
	inner, err := f.inner.Create(o, wanted)
	if err != nil {
		return nil, err
	}
	return &faultySink{inner: inner, f: f, object: o}, nil
}

// Open implements tier.Objects.
func (f *Faulty) Open(o tier.Object) (tier.Source, error) {
	if _, err := f.meet(Open, o.ID); err != nil {
		return nil, err
	}
	f.mu.Lock()
	lost := f.lost[o.ID]
	f.mu.Unlock()
	if lost {
		return nil, fmt.Errorf("object %d: %w", o.ID, tier.ErrAbsent)
	}
	inner, err := f.inner.Open(o)
	if err != nil {
		return nil, err
	}
	return &faultySource{inner, f, o.ID}, nil
}

// Delete implements tier.Objects.
func (f *Faulty) Delete(o tier.Object) error {
	_, err := f.meet(Delete, o.ID)
	if err == nil {
		err = f.inner.Delete(o)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unsynced, o.ID)
	return nil
}

// Sync implements tier.Objects.
func (f *Faulty) Sync() error {
	f.mu.Lock()
	var before []uint64
	for id := range f.unsynced {
		before = append(before, id)
	}
	f.mu.Unlock()
	_, err := f.meet(Sync, 0)
	if err == nil {
		err = f.inner.Sync()
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range before {
		delete(f.unsynced, id)
	}
	return nil
}

// List implements tier.Objects.
func (f *Faulty) List(visit func(tier.Object) error) error {
	if _, err := f.meet(List, 0); err != nil {
		return err
	}
	return f.inner.List(visit)
}

type faultySource struct {
	inner tier.Source
	f     *Faulty
	id    uint64
}

// Bytes implements tier.Source.
func (s *faultySource) Bytes() []byte { return nil }

// Read implements tier.Source.
func (s *faultySource) Read(at int64, to []byte, arrived func(at, n int64)) error {
	r, err := s.f.meet(Read, s.id)
	switch {
	case err != nil:
		if part := min(r.part(), int64(len(to))); part > 0 {
			err = errors.Join(err, s.inner.Read(at, to[:part], arrived))
		}
		return err
	case r == nil || !r.Mix || arrived == nil:
		return s.inner.Read(at, to, arrived)
	}
	return s.mixed(at, to, arrived)
}

func (r *Rule) part() int64 {
	if r == nil {
		return 0
	}
	return r.Part
}

// mixed tells of a read's arrivals in another order.
func (s *faultySource) mixed(at int64, to []byte, arrived func(at, n int64)) error {
	type part struct{ at, n int64 }
	var mu sync.Mutex
	var parts []part
	err := s.inner.Read(at, to, func(at, n int64) {
		s.f.mu.Lock()
		cut := s.f.random.Int64N(n + 1)
		s.f.mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		for _, p := range []part{{at, cut}, {at + cut, n - cut}} {
			if p.n > 0 {
				parts = append(parts, p)
			}
		}
	})
	s.f.mu.Lock()
	s.f.random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	s.f.mu.Unlock()
	var all sync.WaitGroup
	for _, half := range [][]part{parts[:len(parts)/2], parts[len(parts)/2:]} {
		all.Add(1)
		safego.Go("arrivals", func() {
			defer all.Done()
			for _, p := range half {
				arrived(p.at, p.n)
			}
		})
	}
	all.Wait()
	return err
}

type faultySink struct {
	inner  tier.Sink
	f      *Faulty
	object tier.Object
	failed error // of a call that the inner tier has not seen, or not as it was
	ended  bool
}

// Bytes implements tier.Sink.
func (s *faultySink) Bytes() []byte { return nil }

// Write implements tier.Sink.
func (s *faultySink) Write(at int64, p []byte) error {
	switch {
	case s.ended:
		return tier.ErrEnded
	case s.failed != nil:
		return s.failed
	}
	r, err := s.f.meet(Write, s.object.ID)
	if err == nil {
		return s.inner.Write(at, p)
	}
	s.failed = err
	if part := min(r.part(), int64(len(p))); part > 0 {
		s.failed = errors.Join(err, s.inner.Write(at, p[:part]))
	}
	return s.failed
}

// Commit implements tier.Sink.
func (s *faultySink) Commit() error {
	if s.ended {
		return tier.ErrEnded
	}
	s.ended = true
	err := s.failed
	if err == nil {
		_, err = s.f.meet(Commit, s.object.ID)
	}
	if err != nil {
		return errors.Join(err, s.inner.Abort())
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.f.crashed {
		return errors.Join(ErrCrashed, s.inner.Abort())
	}
	if err = s.inner.Commit(); err == nil {
		s.f.unsynced[s.object.ID] = s.object
	}
	return err
}

// Abort implements tier.Sink.
func (s *faultySink) Abort() error {
	if s.ended {
		return nil
	}
	s.ended = true
	_, err := s.f.meet(Abort, s.object.ID)
	return errors.Join(err, s.inner.Abort())
}
