package sim

import (
	"math/rand/v2"

	"velocpy/gocore/engine"
	"velocpy/gocore/plan"
)

// Key is the key of checkpoint number k.
func Key(k int64) plan.Key { return plan.Key{Number: k} }

// Shot is the workload of seed 000, section 5.3: a forward sweep that writes a checkpoint every interval, a backward sweep that
// restores them.
type Shot struct {
	Sizes    []int64
	Compute  int64   // ns between two calls
	Order    []int64 // of the restores
	Hints    Hints
	Last     bool                      // every restore is the last of its checkpoint
	WaitDown bool                      // the backward sweep begins when everything is down
	captured func(size, blocked int64) // is told of every capture; nil: nothing is
}

// Hints is how much of the restore order the application tells.
type Hints uint8

// No hints, the next restore only, or the whole order before the forward sweep.
const (
	NoHints Hints = iota
	OneHint
	AllHints
)

func (x Hints) String() string { return [...]string{"none", "one", "all"}[x] }

// Result is what a shot cost.
type Result struct {
	CaptureBlocked, RestoreBlocked int64 // ns, copies included
	Copying                        int64 // ns of that the caller copied by itself
	Hits, Restores                 int64
	Distance                       float64 // mean prefetch distance
	Written, Read                  int64   // bytes over the lowest link
	Elapsed                        int64   // ns
}

// Run plays the shot on a machine.
func (s *Shot) Run(m *Machine) (Result, error) {
	var r Result
	began := m.Now()
	h := m.Engine.History("shot")
	if s.Hints == AllHints {
		m.Engine.Hint(m.Now(), h, s.hints(s.Order))
	}
	for k, size := range s.Sizes {
		m.Pass(s.Compute)
		blocked, err := m.Capture(h, int64(k), size)
		if err != nil {
			return r, err
		}
		r.CaptureBlocked += blocked
		if s.captured != nil {
			s.captured(size, blocked)
		}
		r.Copying += m.CopyTime(size)
	}
	if s.WaitDown {
		s.waitDown(m, h)
	}
	m.Engine.StartPrefetch(m.Now(), h)
	for i, k := range s.Order {
		if s.Hints == OneHint && i+1 < len(s.Order) {
			m.Engine.Hint(m.Now(), h, s.hints(s.Order[i+1:i+2]))
		}
		m.Pass(s.Compute)
		blocked, _, err := m.Restore(h, k, engine.RestoreOptions{Last: s.Last})
		if err != nil {
			return r, err
		}
		r.RestoreBlocked += blocked
		r.Copying += m.CopyTime(s.Sizes[k])
	}
	lowest := m.Engine.Tiers() - 1
	r.Hits, r.Restores = h.Stats.Hits, h.Stats.Restores
	r.Distance = float64(h.Stats.DistanceSum) / float64(max(h.Stats.Restores, 1))
	r.Written, r.Read = m.Engine.Stats.Tiers[lowest].Written, m.Engine.Stats.Tiers[lowest].Read
	r.Elapsed = m.Now() - began
	return r, nil
}

func (s *Shot) hints(keys []int64) []plan.Hint {
	op := plan.Restore
	if s.Last {
		op = plan.Last
	}
	hints := make([]plan.Hint, len(keys))
	for i, k := range keys {
		hints[i] = plan.Hint{Op: op, Key: Key(k)}
	}
	return hints
}

func (s *Shot) waitDown(m *Machine, h *engine.History) {
	var recs []*engine.Record
	h.Each(func(r *engine.Record) { recs = append(recs, r) })
	w := m.Engine.Await(m.Now(), recs, m.Engine.Tiers()-1)
	m.Until(func() bool { return w.Phase == engine.Ended })
}

// Orders of restores over n checkpoints.

// Sequential is the order of writing.
func Sequential(n int) []int64 {
	o := make([]int64, n)
	for i := range o {
		o[i] = int64(i)
	}
	return o
}

// Reverse is the adjoint's order.
func Reverse(n int) []int64 {
	o := make([]int64, n)
	for i := range o {
		o[i] = int64(n - 1 - i)
	}
	return o
}

// Irregular is a random order that is the same for the same seed.
func Irregular(n int, seed uint64) []int64 {
	o := Sequential(n)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(n, func(i, j int) { o[i], o[j] = o[j], o[i] })
	return o
}
