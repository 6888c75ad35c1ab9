package sim

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/plan"
)

// Key is the key of checkpoint number k.
func Key(k int64) model.Key { return model.Key{Number: k} }

// Shot is the workload of Maurya et al., HPDC'23, section 5.3: a forward sweep that writes a checkpoint every interval, and a backward sweep that
// restores them. Several histories may take part in each step of both.
type Shot struct {
	Sizes    []int64 // of its only history
	Order    []int64 // the restores
	Tracks   []Track // its histories, instead of these two
	Compute  int64   // ns in each step, before its calls
	Hints    Hints
	Last     bool                           // every restore is the last of its checkpoint
	WaitDown bool                           // the backward sweep begins when all checkpoints are in the lowest tier
	Shape    func(size int64) *engine.Shape // how a checkpoint of so many bytes is kept; nil: raw
	captured func(size, blocked int64)      // is called after every capture; nil: no call
}

// Hints is the part of the restore order that the application announces.
type Hints uint8

// No hints, the next restore only, or the whole order before the forward sweep.
const (
	NoHints Hints = iota
	OneHint
	AllHints
)

func (x Hints) String() string { return [...]string{"none", "one", "all"}[x] }

// Result is the cost of a shot.
type Result struct {
	CaptureBlocked, RestoreBlocked int64 // ns, copies included
	Copying                        int64 // ns of that in which the caller itself copied
	Hits, Restores                 int64
	Distance                       float64 // mean prefetch distance
	Written, Read                  int64   // bytes over the lowest link
	Elapsed                        int64   // ns
	Tracks                         []Part
}

// Part is the cost of one history's calls.
type Part struct {
	CaptureBlocked, RestoreBlocked int64
	Hits, Restores                 int64
	Distance                       float64
}

// Run runs the shot on a machine.
func (s *Shot) Run(m *Machine) (Result, error) {
	tracks := s.tracks()
	p := playing{m: m, shot: s, tracks: tracks, result: Result{Tracks: make([]Part, len(tracks))}}
	began := m.Now()
	for i := range tracks {
		h := m.Engine.History(tracks[i].Name)
		p.histories = append(p.histories, h)
		if s.Hints == AllHints {
			m.Engine.Hint(m.Now(), h, s.hints(tracks[i].Order))
		}
	}
	err := p.forward()
	if err == nil {
		err = p.backward()
	}
	p.count()
	p.result.Elapsed = m.Now() - began
	return p.result, err
}

// playing is a running shot.
type playing struct {
	m         *Machine
	shot      *Shot
	tracks    []Track
	histories []*engine.History
	result    Result
}

// forward runs the captures.
func (p *playing) forward() error {
	m, r := p.m, &p.result
	for _, c := range p.shot.captures() {
		m.Pass(c.wait)
		size := p.tracks[c.track].Sizes[c.key]
		blocked, err := m.Capture(p.histories[c.track], c.key, size, engine.CaptureOptions{Top: p.tracks[c.track].Top, Shape: p.shot.shape(size)})
		if err != nil {
			return err
		}
		r.CaptureBlocked += blocked
		r.Tracks[c.track].CaptureBlocked += blocked
		if p.shot.captured != nil {
			p.shot.captured(size, blocked)
		}
		r.Copying += m.CopyTime(size)
	}
	if p.shot.WaitDown {
		p.waitDown()
	}
	return nil
}

// backward runs the restores.
func (p *playing) backward() error {
	m, r := p.m, &p.result
	for _, h := range p.histories {
		m.Engine.StartPrefetch(m.Now(), h)
	}
	calls, rest := p.shot.restores()
	for _, c := range calls {
		track := &p.tracks[c.track]
		if p.shot.Hints == OneHint {
			m.Engine.Hint(m.Now(), p.histories[c.track], p.shot.hints(upToRestore(track.Order[c.next:])))
		}
		m.Pass(c.wait)
		blocked, _, err := m.Restore(p.histories[c.track], c.key, engine.RestoreOptions{Last: p.shot.Last})
		if err != nil {
			return err
		}
		r.RestoreBlocked += blocked
		r.Tracks[c.track].RestoreBlocked += blocked
		r.Copying += m.CopyTime(track.Sizes[c.key])
	}
	m.Pass(rest)
	return nil
}

// upToRestore is the next restore of an order with the steps before it; empty if there is none.
func upToRestore(order []Turn) []Turn {
	for i, t := range order {
		if t.Steps == 0 {
			return order[:i+1]
		}
	}
	return nil
}

// count copies the engine's counts of the shot.
func (p *playing) count() {
	m, r := p.m, &p.result
	distance := int64(0)
	for i, h := range p.histories {
		r.Tracks[i].Hits, r.Tracks[i].Restores = h.Stats.Hits, h.Stats.Restores
		r.Tracks[i].Distance = float64(h.Stats.DistanceSum) / float64(max(h.Stats.Restores, 1))
		r.Hits, r.Restores, distance = r.Hits+h.Stats.Hits, r.Restores+h.Stats.Restores, distance+h.Stats.DistanceSum
	}
	r.Distance = float64(distance) / float64(max(r.Restores, 1))
	lowest := m.Engine.Stats.Tiers[m.Engine.Tiers()-1]
	r.Written, r.Read = lowest.Written, lowest.Read
}

func (s *Shot) shape(size int64) *engine.Shape {
	if s.Shape == nil {
		return nil
	}
	return s.Shape(size)
}

func (s *Shot) hints(order []Turn) []plan.Hint {
	op := plan.Restore
	if s.Last {
		op = plan.Last
	}
	hints := make([]plan.Hint, len(order))
	for i, t := range order {
		if hints[i] = (plan.Hint{Op: op, Key: Key(t.Key)}); t.Steps > 0 {
			hints[i] = plan.Hint{Op: plan.Advance, Steps: t.Steps}
		}
	}
	return hints
}

func (p *playing) waitDown() {
	var recs []*engine.Record
	for _, h := range p.histories {
		h.Each(func(r *engine.Record) { recs = append(recs, r) })
	}
	w := p.m.Engine.Await(p.m.Now(), recs, p.m.Engine.Tiers()-1)
	p.m.Until(func() bool { return w.Phase == engine.Ended })
}
