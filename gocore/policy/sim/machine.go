// Package sim runs the policies of the engine on a virtual clock. Tiers are bandwidths, checkpoints are sizes, and a day of computation takes
// milliseconds. It runs the same engine that the store drives with real memory and disks; only time and bytes are simulated.
package sim

import (
	"slices"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/virtual"
)

// Medium is the speed of a link between two tiers, per direction, and the number of transfers that share it.
type Medium struct {
	WriteRate, ReadRate float64 // bytes/s
	Latency             int64   // ns per transfer
	Workers             int     // transfers at once per direction; they share the rate
}

// time is how long one of the workers takes to move that many bytes.
func (md *Medium) time(d engine.Direction, bytes int64) int64 {
	rate := md.WriteRate
	if d == engine.Up {
		rate = md.ReadRate
	}
	return md.Latency + int64(float64(bytes)*float64(max(md.Workers, 1))/rate*1e9)
}

// Machine is an engine whose transfers take virtual time.
type Machine struct {
	virtual.Clock
	Engine *engine.Engine
	media  []Medium     // by link
	copies float64      // bytes/s of captures into and copies out of the fastest tier
	free   [2][][]int64 // by direction, link and worker: end of its transfer
	fail   func(*engine.Transfer) error
	encode func(*engine.Transfer) int64
	codec  float64 // bytes/s at which encoders and decoders work before or behind the link; 0: they cost nothing
	sent   []int64 // bytes over each link, in both directions
}

// NewMachine builds the engine of cfg over the media; copies is the rate of copies to and from the fastest tier.
func NewMachine(cfg engine.Config, media []Medium, copies float64) *Machine {
	for i := range media {
		cfg.Tiers[i].WriteRate, cfg.Tiers[i].ReadRate = media[i].WriteRate, media[i].ReadRate
		cfg.Workers = max(cfg.Workers, media[i].Workers)
	}
	m := &Machine{Engine: engine.New(cfg), media: media, copies: copies, sent: make([]int64, max(len(media), 1))}
	for d := range m.free {
		m.free[d] = make([][]int64, max(len(media), 1))
		for k := range m.free[d] {
			workers := 1
			if k < len(media) {
				workers = max(media[k].Workers, 1)
			}
			m.free[d][k] = make([]int64, workers)
		}
	}
	return m
}

// Fail makes those transfers fail for which f returns an error.
func (m *Machine) Fail(f func(*engine.Transfer) error) { m.fail = f }

// Encode makes encoders write the bytes that f returns; otherwise they fill the room that is reserved for them.
func (m *Machine) Encode(f func(*engine.Transfer) int64) { m.encode = f }

// Kick starts the transfers that idle workers can take.
func (m *Machine) Kick() {
	for idle := 0; idle < 2; idle++ { // another worker may wait for a transfer that one begins or gives up
		for d := range m.free {
			for k := range m.free[d] {
				if m.kick(engine.Direction(d), k) {
					idle = -1
				}
			}
		}
	}
}

func (m *Machine) kick(d engine.Direction, link int) (started bool) {
	for w, busyUntil := range m.free[d][link] {
		if busyUntil > m.Now() {
			continue
		}
		x := m.Engine.Next(m.Now(), engine.Want{Direction: d, Link: link})
		if x == nil {
			break
		}
		m.start(x, d, link, w)
		started = true
	}
	return started
}

func (m *Machine) start(x *engine.Transfer, d engine.Direction, link, w int) {
	if m.encode != nil && (x.Stage == engine.Encoding || x.Kind == engine.Encode) {
		x.Wrote(m.encode(x))
	}
	m.sent[link] += x.Sends()
	end := m.Now() + m.CopyTime(x.Sends())
	if link < len(m.media) {
		end = m.Now() + m.media[link].time(d, x.Sends())
	}
	if m.codec > 0 && x.Stage != engine.Verbatim {
		ns := int64(float64(max(x.Reads(), x.Writes())) / m.codec * 1e9)
		x.Spent(ns)
		end += ns
	}
	m.free[d][link][w] = end
	m.At(end, func() {
		var err error
		if m.fail != nil {
			err = m.fail(x)
		}
		m.Engine.Done(m.Now(), x, err)
		m.Kick()
	})
}

// CopyTime is how long the caller takes to copy that many bytes into or out of the fastest tier.
func (m *Machine) CopyTime(bytes int64) int64 { return int64(float64(bytes) / m.copies * 1e9) }

// Until runs events until done returns true; false when no event is left before that.
func (m *Machine) Until(done func() bool) bool {
	m.Kick()
	for !done() {
		if !m.Step() {
			return false
		}
	}
	return true
}

// Pass advances virtual time by ns.
func (m *Machine) Pass(ns int64) {
	over := false
	m.At(m.Now()+ns, func() { over = true })
	m.Until(func() bool { return over })
}

// copyIn is the caller's copy of a record into tier t. It crosses the links from the record's fastest tier down, each of which carries it like a
// transfer of its workers. It takes at least as long as a copy into the fastest tier.
func (m *Machine) copyIn(r *engine.Record, t int) {
	size := r.Size
	end := m.Now() + m.CopyTime(size)
	for link := r.Top(); link != t; link = m.Engine.Below(link) {
		free := m.free[engine.Down][link]
		w := slices.Index(free, slices.Min(free))
		free[w] = max(free[w], m.Now()) + m.media[link].time(engine.Down, size)
		m.Pass(free[w] - m.Now())
	}
	m.Pass(max(end-m.Now(), 0))
}

// Capture takes a checkpoint and returns how long its caller was blocked, including copying.
func (m *Machine) Capture(h *engine.History, k, size int64, o engine.CaptureOptions) (blocked int64, err error) {
	began := m.Now()
	c, err := m.Engine.BeginCapture(m.Now(), h, Key(k), size, 1, nil, o)
	if err != nil {
		return 0, err
	}
	if !m.Until(func() bool { return c.Phase != engine.Waiting }) {
		panic("sim: a capture waits for ever")
	}
	if c.Phase == engine.Ready {
		m.copyIn(c.Rec, c.Tier)
		m.Engine.EndCapture(m.Now(), c, true)
	}
	m.Kick()
	return m.Now() - began, c.Err
}

// Restore restores a checkpoint. It returns how long its caller was blocked, including copying, and whether the fastest tier had the bytes.
func (m *Machine) Restore(h *engine.History, k int64, o engine.RestoreOptions) (blocked int64, hit bool, err error) {
	began := m.Now()
	o.Into = true
	r, err := m.Engine.BeginRestore(m.Now(), h, Key(k), o)
	if err != nil {
		return 0, false, err
	}
	if !m.Until(func() bool { return r.Phase != engine.Waiting }) {
		panic("sim: a restore waits for ever")
	}
	if r.Phase == engine.Ready {
		m.Pass(m.CopyTime(r.Rec.Size))
		m.Engine.HandOver(m.Now(), r)
	}
	m.Engine.EndRestore(m.Now(), r)
	m.Kick()
	return m.Now() - began, r.Hit, r.Err
}
