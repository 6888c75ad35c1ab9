package hostdevice

import (
	"fmt"
	"time"
	"unsafe"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/copier"

	"go.uber.org/atomic"
)

// lane implements device.Lane. Its goroutine runs while work is queued.
type lane struct {
	dev     *Device
	own     bool
	closed  bool
	running bool
	queue   []func()
}

// Lane implements device.Device.
func (d *Device) Lane(device.Priority) (device.Lane, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return nil, d.lost
	}
	d.lanes++
	return &lane{dev: d, own: true}, nil
}

// Borrow implements device.Device.
func (d *Device) Borrow(stream uint64) device.Lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stream == 0 {
		stream = 1
	}
	l := d.borrowed[stream]
	if l == nil {
		l = &lane{dev: d}
		d.borrowed[stream] = l
	}
	return l
}

// Close implements device.Lane.
func (l *lane) Close() error {
	l.dev.mu.Lock()
	defer l.dev.mu.Unlock()
	if l.own && !l.closed {
		l.closed = true
		l.dev.lanes--
	}
	return nil
}

// put queues work that touches the given ranges. They are checked now, while the caller can get the error.
func (l *lane) put(touches []pinned, work func()) error {
	d := l.dev
	d.mu.Lock()
	if err := l.usable(touches); err != nil {
		d.mu.Unlock()
		return err
	}
	if d.opt.Direct {
		d.mu.Unlock()
		work()
		return nil
	}
	defer d.mu.Unlock()
	l.queue = append(l.queue, work)
	if !l.running {
		l.running = true
		safego.Go("lane", l.drain)
	}
	return nil
}

func (l *lane) usable(touches []pinned) error {
	if l.dev.lost != nil {
		return l.dev.lost
	}
	if l.closed {
		return fmt.Errorf("a lane that was closed: %w", ErrAddress)
	}
	for _, r := range touches {
		if r.bytes < 0 {
			return fmt.Errorf("%d bytes: %w", r.bytes, model.ErrShape)
		}
		if err := l.dev.check(r.at, r.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (l *lane) drain() {
	d := l.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(l.queue) > 0 {
		work := l.queue[0]
		l.queue = l.queue[1:]
		pause := d.pause()
		d.mu.Unlock()
		time.Sleep(pause)
		work()
		d.mu.Lock()
	}
	l.running = false
}

func (d *Device) pause() time.Duration {
	if d.opt.Delay <= 0 || d.random.IntN(4) > 0 {
		return 0
	}
	return time.Duration(d.random.Int64N(int64(d.opt.Delay)))
}

// unlessLost wraps work that touches memory.
func (d *Device) unlessLost(work func()) func() {
	return func() {
		if d.Lost() == nil {
			work()
		}
	}
}

// pointer converts an address that is valid outside of the Go heap.
func pointer(at device.Address) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

func view(at device.Address, n int64) []byte { return unsafe.Slice((*byte)(pointer(at)), n) }

// Copy implements device.Lane.
func (l *lane) Copy(to, from device.Address, n int64) error {
	work := l.dev.unlessLost(func() { copy(view(to, n), view(from, n)) })
	if n == 0 {
		work = func() {}
	}
	return l.put([]pinned{{to, n}, {from, n}}, work)
}

// CopyAll implements device.Lane.
func (l *lane) CopyAll(all []device.Move) error {
	for _, m := range all {
		if err := l.Copy(m.To, m.From, m.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// Gather implements device.Lane.
func (l *lane) Gather(pieces []device.Piece, check bool) (device.Sums, error) {
	s, err := l.work(copier.Gather, pieces, check)
	if err != nil || !check {
		return nil, err
	}
	return s, nil
}

// Scatter implements device.Lane.
func (l *lane) Scatter(pieces []device.Piece) error {
	_, err := l.work(copier.Scatter, pieces, false)
	return err
}

// Hash implements device.Lane.
func (l *lane) Hash(pieces []device.Piece) (device.Sums, error) {
	s, err := l.work(copier.Verify, pieces, true)
	if err != nil {
		return nil, err
	}
	return s, s.Fetch(l)
}

// work queues one job. The caller may reuse the shapes of the pieces, so they are copied.
func (l *lane) work(dir copier.Direction, pieces []device.Piece, check bool) (*sums, error) {
	parts := make([]copier.Piece, len(pieces))
	touches := make([]pinned, len(pieces))
	for i, p := range pieces {
		if dir != copier.Verify {
			if err := p.Mem.Check(p.Bytes); err != nil {
				return nil, fmt.Errorf("piece %d: %w", i, err)
			}
		}
		touches[i] = pinned{p.Slot, p.Bytes}
		p.Mem.Shape = append([]int64(nil), p.Mem.Shape...)
		p.Mem.Strides = append([]int64(nil), p.Mem.Strides...)
		parts[i] = copier.Piece{Slot: pointer(p.Slot), Bytes: p.Bytes, Mem: p.Mem}
	}
	s := &sums{}
	return s, l.put(touches, l.dev.unlessLost(func() {
		j := copier.NewJob(dir, parts, copier.Options{Checksum: check})
		defer j.Free()
		j.Run(0)
		s.done(j.Sums())
	}))
}

// sums implements device.Sums.
type sums struct{ there, here atomic.Pointer[[]uint64] }

func (s *sums) done(by []uint64) {
	own := append([]uint64{}, by...)
	s.there.Store(&own)
}

// Renew implements device.Sums. Each Fetch stores a slice of its own.
func (s *sums) Renew() {}

// Fetch implements device.Sums.
func (s *sums) Fetch(l device.Lane) error {
	to, ok := l.(*lane)
	if !ok {
		return fmt.Errorf("a lane of something else: %w", ErrAddress)
	}
	return to.put(nil, to.dev.unlessLost(func() { s.here.Store(s.there.Load()) }))
}

// Leaves implements device.Sums. This device does not keep them.
func (s *sums) Leaves() []uint64 { return nil }

// Take implements device.Sums. It is nil if the work has not run, or the sums were not fetched.
func (s *sums) Take() []uint64 {
	s.there.Store(nil)
	if by := s.here.Swap(nil); by != nil {
		return *by
	}
	return nil
}

// Discard implements device.Sums.
func (s *sums) Discard() { s.Take() }

// event implements device.Event.
type event struct {
	dev    *Device
	lane   *lane
	passed chan struct{}
	holds  atomic.Int64
}

// Event implements device.Lane.
func (l *lane) Event() (device.Event, error) {
	m := &event{dev: l.dev, lane: l, passed: make(chan struct{})}
	m.holds.Store(1)
	if err := l.put(nil, func() { close(m.passed) }); err != nil {
		return nil, err
	}
	return m, nil
}

// stamp implements device.Stamp.
type stamp struct {
	mark device.Event
	at   *atomic.Time
}

// Stamp implements device.Lane.
func (l *lane) Stamp() (device.Stamp, error) {
	at := atomic.NewTime(time.Time{})
	if err := l.put(nil, func() { at.Store(time.Now()) }); err != nil {
		return nil, err
	}
	m, err := l.Event()
	if err != nil {
		return nil, err
	}
	return &stamp{m, at}, nil
}

// Since implements device.Stamp.
func (s *stamp) Since(earlier device.Stamp) (ns int64, passed bool, err error) {
	e, ok := earlier.(*stamp)
	if !ok {
		return 0, false, fmt.Errorf("the time since a stamp of something else: %w", ErrAddress)
	}
	for _, m := range []device.Event{e.mark, s.mark} {
		if passed, err := m.Passed(); !passed || err != nil {
			return 0, false, err
		}
	}
	return s.at.Load().Sub(e.at.Load()).Nanoseconds(), true, nil
}

// Drop implements device.Stamp.
func (s *stamp) Drop() { s.mark.Drop() }

// After implements device.Lane.
func (l *lane) After(other device.Event) error {
	m, ok := other.(*event)
	if !ok || m.dropped() {
		return fmt.Errorf("wait for a mark of something else, or one that was dropped: %w", ErrAddress)
	}
	return l.put(nil, func() { <-m.passed })
}

func (m *event) dropped() bool { return m.holds.Load() <= 0 }

// Passed implements device.Event.
func (m *event) Passed() (bool, error) {
	if err := m.usable(); err != nil {
		return false, err
	}
	select {
	case <-m.passed:
		return true, nil
	default:
		return false, nil
	}
}

// Seen implements device.Event.
func (m *event) Seen() (bool, error) { return m.Passed() }

// Wait implements device.Event.
func (m *event) Wait() error {
	if err := m.usable(); err != nil {
		return err
	}
	<-m.passed
	return m.dev.Lost()
}

func (m *event) usable() error {
	if m.dropped() {
		return fmt.Errorf("a mark that was dropped: %w", ErrAddress)
	}
	return m.dev.Lost()
}

// Of implements device.Event.
func (m *event) Of(l device.Lane) bool { return l == m.lane }

// Keep implements device.Event.
func (m *event) Keep() device.Event {
	m.holds.Inc()
	return m
}

// Drop implements device.Event.
func (m *event) Drop() { m.holds.Dec() }
