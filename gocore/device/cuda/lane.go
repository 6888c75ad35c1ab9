package cuda

import (
	"fmt"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// lane is a stream: our own, which does not wait for the default stream, or a caller's.
type lane struct {
	d      *Device
	stream Stream
	own    bool
	known  bool // known not to be captured
}

// Lane creates a stream of that priority relative to all streams of the context.
func (d *Device) Lane(p device.Priority) (device.Lane, error) {
	if err := d.Lost(); err != nil {
		return nil, err
	}
	priority := d.least
	switch p {
	case device.Waited:
		priority = d.greatest
	case device.Ahead:
		priority = (d.least + d.greatest) / 2
	}
	stream, err := d.driver.CreateStream(d.context, priority)
	if err != nil {
		return nil, d.check("a stream of our own", err)
	}
	return &lane{d: d, stream: stream, own: true}, nil
}

// Borrow trusts the caller that the handle is a stream of this device's context.
func (d *Device) Borrow(stream uint64) device.Lane {
	s := Stream(stream)
	if s == 0 {
		s = LegacyStream
	}
	return &lane{d: d, stream: s}
}

// open tells whether work may be queued now. In a captured stream, work would become part of a graph that runs any number of times, or would break
// the capture. The query does neither.
func (l *lane) open() error {
	if err := l.d.Lost(); err != nil || l.own || l.known {
		return err
	}
	recorded, err := l.d.driver.StreamIsCapturing(l.d.context, l.stream)
	if err != nil {
		return l.d.check("the caller's stream", err)
	}
	if recorded {
		return fmt.Errorf("%s: %w: checkpoint before or after it", l.d.Name(), device.ErrRecording)
	}
	l.known = true // for the duration of one call: the caller's own thread is in that call
	return nil
}

func (l *lane) Copy(to, from device.Address, n int64) error {
	if n < 0 {
		return fmt.Errorf("%s: a copy of %s: %w", l.d.Name(), quantity.Exact(n), model.ErrShape)
	}
	if err := l.open(); err != nil {
		return err
	}
	return l.copy(to, from, n)
}

// CopyAll implements device.Lane.
func (l *lane) CopyAll(all []device.Move) error {
	for _, m := range all {
		if m.Bytes < 0 {
			return fmt.Errorf("%s: a copy of %s: %w", l.d.Name(), quantity.Exact(m.Bytes), model.ErrShape)
		}
	}
	if err := l.open(); err != nil {
		return err
	}
	return l.copyAll(all)
}

// copyAll makes calls of the driver for many parts between two borders of pinned ranges. In a caller's stream, which may be one that takes no such calls, it makes one for each.
func (l *lane) copyAll(all []device.Move) error {
	if !l.own {
		return l.copyEach(all)
	}
	table, parts := l.d.pins.current(), make([]device.Move, 0, len(all))
	for _, m := range all {
		for m.Bytes > 0 {
			n := min(table.whole(m.To, m.Bytes), table.whole(m.From, m.Bytes))
			parts = append(parts, device.Move{To: m.To, From: m.From, Bytes: n})
			m = device.Move{To: m.To + uintptr(n), From: m.From + uintptr(n), Bytes: m.Bytes - n}
		}
	}
	err := l.d.driver.CopyAll(l.d.context, parts, l.stream)
	if Is(err, InvalidValue) && l.d.pins.current() != table {
		return l.copyEach(all) // a range was pinned in the meantime, and a part crossed its border
	}
	return l.d.check("copies", err)
}

func (l *lane) copyEach(all []device.Move) error {
	for _, m := range all {
		if err := l.copy(m.To, m.From, m.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// copy makes one driver call for each part between two borders of pinned ranges.
func (l *lane) copy(to, from uintptr, n int64) error {
	for n > 0 {
		table := l.d.pins.current()
		part := min(table.whole(to, n), table.whole(from, n))
		err := l.d.driver.Copy(l.d.context, to, from, part, l.stream)
		if Is(err, InvalidValue) && l.d.pins.current() != table {
			continue // a range was pinned in the meantime, and the part crossed its border
		}
		if err != nil {
			return l.d.check("copy", err)
		}
		to, from, n = to+uintptr(part), from+uintptr(part), n-part
	}
	return nil
}

func (l *lane) Event() (device.Event, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	return l.recordEvent(l.own)
}

// event takes a blocking event, or one for which threads wait through a waiter. Threads wait for a blocking event directly, and it costs the stream
// 1.2 µs.
func (l *lane) recordEvent(blocking bool) (*event, error) {
	from := &l.d.signs
	if blocking {
		from = &l.d.events
	}
	handle, err := from.take()
	if err != nil {
		return nil, l.d.check("event", err)
	}
	if err := l.d.driver.RecordEvent(l.d.context, handle, l.stream); err != nil {
		from.give(handle)
		return nil, l.d.check("mark", err)
	}
	m := &event{d: l.d, event: handle, from: from, stream: l.stream, number: l.d.eventCount.Inc()}
	m.held.Store(1)
	return m, nil
}

// After accepts events of any device of this package.
func (l *lane) After(other device.Event) error {
	if err := l.open(); err != nil {
		return err
	}
	m, ok := other.(*event)
	if !ok {
		return fmt.Errorf("%s: a %T is no mark of a CUDA device", l.d.Name(), other)
	}
	if m.passed.Load() {
		return nil
	}
	return l.d.check("waiting for another lane", l.d.driver.StreamWaitEvent(l.d.context, l.stream, m.event))
}

// Close returns at once. A borrowed stream stays open.
func (l *lane) Close() error {
	if !l.own {
		return nil
	}
	if err := l.d.Lost(); err != nil {
		return err
	}
	return l.d.check("stream given back", l.d.driver.DestroyStream(l.d.context, l.stream))
}
