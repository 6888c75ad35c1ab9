package devicememory

import (
	"errors"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// QueueRead puts work into a lane that reads [from, from+size) of the tier, behind the work that still writes there. The event is behind the work and the caller's to
// drop, also when it comes with an error: then some of the work may have been queued all the same.
func (m *Memory) QueueRead(lane device.Lane, kind Kind, from, size int64, put func() error) (device.Event, error) {
	return m.QueueReads(lane, kind, []model.Span{{Offset: from, Bytes: size}}, put)
}

// QueueReads is the same for work that reads several ranges.
func (m *Memory) QueueReads(lane device.Lane, kind Kind, ranges []model.Span, put func() error) (device.Event, error) {
	var before []device.Event
	m.mu.Lock()
	for _, r := range ranges {
		before = m.hazards.BeforeRead(before, r.Offset, r.Bytes)
	}
	m.mu.Unlock()
	return m.queue(lane, kind, before, put, func(x device.Event) {
		for _, r := range ranges {
			m.hazards.Read(r.Offset, r.Bytes, x)
		}
	})
}

// QueueWrite is the same for work that writes, behind the work that still writes or reads there.
func (m *Memory) QueueWrite(lane device.Lane, kind Kind, from, size int64, put func() error) (device.Event, error) {
	m.mu.Lock()
	before := m.hazards.BeforeWrite(nil, from, size)
	m.mu.Unlock()
	return m.queue(lane, kind, before, put, func(x device.Event) { m.hazards.Wrote(from, size, x) })
}

func (m *Memory) queue(lane device.Lane, kind Kind, before []device.Event, put func() error, note func(device.Event)) (device.Event, error) {
	failed := m.after(lane, before, kind)
	if failed == nil {
		failed = put()
	}
	x, failed := EventBehind(lane, failed) // also when the work failed: some of it may have been queued
	if x == nil {
		m.noteUnfenced(failed)
		return nil, Explain(failed)
	}
	m.mu.Lock()
	note(&kindEvent{x, kind})
	m.mu.Unlock()
	return x, Explain(failed)
}

// EventBehind is the event behind everything in a lane, also of work that failed: some of it may have been queued. It asks twice: without an event nothing tells when
// the memory is free.
func EventBehind(lane device.Lane, failed error) (device.Event, error) {
	x, err := lane.Event()
	if err == nil {
		return x, failed
	}
	failed = errors.Join(failed, err)
	if x, err = lane.Event(); err == nil {
		return x, failed
	}
	return nil, failed
}

// noteUnfenced notes that there may be work without an event: from now on no memory is given back, as nothing tells when that work has ended. A stream that is being
// captured into a graph takes no work either.
func (m *Memory) noteUnfenced(err error) {
	if !errors.Is(err, device.ErrRecording) {
		m.sizing.fixed.Store(true)
	}
}

// afterAll makes a lane wait for events and drops them.
func afterAll(lane device.Lane, marks []device.Event) error {
	var failed error
	for _, x := range marks {
		failed = errors.Join(failed, lane.After(plain(x)))
		x.Drop()
	}
	return failed
}

// DropAll drops events. keepAll returns the same events, to be dropped once more.
func DropAll(marks []device.Event) {
	for _, x := range marks {
		x.Drop()
	}
}

func keepAll(marks []device.Event) []device.Event {
	all := make([]device.Event, len(marks))
	for i, x := range marks {
		all[i] = x.Keep()
	}
	return all
}

// Join is the lane of the first of a caller's streams, behind what is queued in the others.
func (m *Memory) Join(streams []uint64) (device.Lane, error) {
	if len(streams) == 0 {
		return m.Device.Borrow(0), nil
	}
	first := m.Device.Borrow(streams[0])
	for _, other := range streams[1:] {
		x, err := m.Device.Borrow(other).Event()
		if err != nil {
			return nil, err
		}
		if err := afterAll(first, []device.Event{x}); err != nil {
			return nil, err
		}
	}
	return first, nil
}

// Rejoin makes the other streams of the caller wait for what was put into the lane of the first.
func (m *Memory) Rejoin(streams []uint64, x device.Event) error {
	for _, other := range streams[min(1, len(streams)):] {
		if err := m.Device.Borrow(other).After(x); err != nil {
			return err
		}
	}
	return nil
}

// Fence is the event behind everything that is queued in a caller's streams now.
func (m *Memory) Fence(streams []uint64) (device.Event, error) {
	lane, err := m.Join(streams)
	if err != nil {
		return nil, Explain(err)
	}
	x, err := lane.Event()
	return x, Explain(err)
}

// Lend makes streams wait for the work that writes a range, and, if they may write there themselves, for the work that reads it.
func (m *Memory) Lend(streams []uint64, offset, bytes int64, writable bool) error {
	ask := m.hazards.BeforeRead
	if writable {
		ask = m.hazards.BeforeWrite
	}
	m.mu.Lock()
	before := ask(nil, offset, bytes)
	m.mu.Unlock()
	defer DropAll(before)
	for i, stream := range streams {
		kind := Checks
		if i == 0 { // they all wait at the same time: it is counted once
			kind = Restores
		}
		if err := m.after(m.Device.Borrow(stream), keepAll(before), kind); err != nil {
			return err
		}
	}
	return nil
}

// NoteReads notes that a caller's streams have read a range. It returns those that take no event now because they are being captured into a graph. An error of one
// stream does not keep the others from being noted.
func (m *Memory) NoteReads(streams []uint64, offset, bytes int64) (recording []uint64, err error) {
	for _, stream := range streams {
		x, failed := m.Device.Borrow(stream).Event()
		if errors.Is(failed, device.ErrRecording) {
			recording = append(recording, stream)
			continue
		}
		if failed != nil {
			m.noteUnfenced(failed)
			err = errors.Join(err, failed)
			continue
		}
		m.mu.Lock()
		m.hazards.Read(offset, bytes, &kindEvent{x, Restores})
		m.mu.Unlock()
		x.Drop()
	}
	return recording, Explain(err)
}

// Finish waits for what QueueRead or QueueWrite has queued, also when that is not all: the caller that gets the error may use the memory again.
func (m *Memory) Finish(x device.Event, err error) error {
	if x == nil {
		return err
	}
	return errors.Join(err, m.Wait(x))
}

// Wait blocks until an event has passed and drops it.
func (m *Memory) Wait(x device.Event) error {
	defer x.Drop()
	return Explain(x.Wait())
}

// Read copies bytes of the tier to host memory and waits for them.
func (m *Memory) Read(to []byte, from int64) error {
	if len(to) == 0 {
		return nil
	}
	m.ownLane.Lock()
	x, err := m.QueueRead(m.own, Reads, from, int64(len(to)), func() error { return m.own.Copy(device.AddressOf(to), m.Address(from), int64(len(to))) })
	m.ownLane.Unlock()
	return m.Finish(x, err)
}

// AwaitIdle waits until no work reads or writes the tier any more.
func (m *Memory) AwaitIdle() error {
	if m.arena == nil {
		return nil
	}
	return m.AwaitRange(0, m.arena.Mapped())
}

// AwaitRange waits until no work that was noted reads or writes a range of the tier any more.
func (m *Memory) AwaitRange(from, size int64) error {
	m.mu.Lock()
	marks := m.hazards.Quiet(nil, from, size)
	m.mu.Unlock()
	var failed error
	for _, x := range marks {
		failed = errors.Join(failed, x.Wait())
		x.Drop()
	}
	return failed
}

// Runner puts work into a lane and waits for it, also for what had been queued before an error.
type Runner func(work func(device.Lane) error) error

// RunSync is the Runner of the memory's own lane.
func (m *Memory) RunSync(work func(device.Lane) error) error {
	m.ownLane.Lock()
	x, err := EventBehind(m.own, work(m.own))
	m.ownLane.Unlock()
	return Explain(m.Finish(x, err))
}

// OnLane is the Runner of a lane that the caller of this method owns.
func (m *Memory) OnLane(lane device.Lane) Runner {
	return func(work func(device.Lane) error) error { return m.Finish(EventBehind(lane, work(lane))) }
}

// InOwnLane runs f while no other goroutine puts work into the memory's own lane.
func (m *Memory) InOwnLane(f func(lane device.Lane) error) error {
	m.ownLane.Lock()
	defer m.ownLane.Unlock()
	return f(m.own)
}

// InOwnLaneBehind is InOwnLane behind everything that is queued in a caller's streams now.
func (m *Memory) InOwnLaneBehind(streams []uint64, f func(lane device.Lane) error) error {
	return m.InOwnLane(func(lane device.Lane) error {
		for _, stream := range streams {
			x, err := m.Device.Borrow(stream).Event()
			if err == nil {
				err = afterAll(lane, []device.Event{x})
			}
			if err != nil {
				return Explain(err)
			}
		}
		return f(lane)
	})
}

// CopyInCuts puts the copy of end bytes into a lane, cut by cut, and returns the last one's event. Two cuts are in the lane at a time: the link never rests, and work
// that a caller waits for, in another lane and in one piece, gets its turn in between. It asks before each cut how large it may be. After an error nothing of it
// that has an event is under way.
func (m *Memory) CopyInCuts(end int64, size func() int64, put func(from, n int64) (device.Event, error)) (device.Event, error) {
	var last device.Event
	for from := int64(0); from < end; {
		n := min(size(), end-from)
		x, err := put(from, n)
		if from += n; last != nil && (from < end || err != nil) {
			err = m.Finish(last, err)
		} else if last != nil {
			last.Drop() // a wait for the event behind it waits for both
		}
		if err != nil {
			return nil, m.Finish(x, err)
		}
		last = x
	}
	return last, nil
}

// Flip changes one bit of the tier, for tests of what happens then.
func (m *Memory) Flip(offset int64) error {
	var one [1]byte
	if err := m.Read(one[:], offset); err != nil {
		return err
	}
	one[0] ^= 1
	m.ownLane.Lock()
	x, err := m.QueueWrite(m.own, Checks, offset, 1, func() error { return m.own.Copy(m.Address(offset), device.AddressOf(one[:]), 1) })
	m.ownLane.Unlock()
	return m.Finish(x, err)
}
