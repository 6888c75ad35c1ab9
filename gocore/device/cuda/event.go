package cuda

import (
	"errors"
	"sync"

	"go.uber.org/atomic"

	"velocpy/gocore/device"
)

// event is a recorded event. The event returns to the pool when the last reference is dropped. Waiting threads hold a reference; streams that wait for
// the event keep its state at that time.
type event struct {
	d      *Device
	stream Stream
	number uint64 // counts the device's events in the order of their creation
	event  Event
	from   *events // the pool of its kind
	held   atomic.Int32
	passed atomic.Bool
}

// Passed calls the driver until it is true, and costs an atomic load from then on.
func (m *event) Passed() (bool, error) {
	if err := m.d.Lost(); err != nil {
		return false, err
	}
	if m.passed.Load() {
		return true, nil
	}
	done, err := m.d.driver.QueryEvent(m.d.context, m.event)
	if err != nil {
		return false, m.d.check("mark", err)
	}
	if done {
		m.passed.Store(true)
	}
	return done, nil
}

// Seen does not query if an earlier event of the same stream had not passed a moment ago.
func (m *event) Seen() (bool, error) {
	if !m.passed.Load() && m.d.behind.still(m.stream, m.number) {
		return false, m.d.Lost()
	}
	passed, err := m.Passed()
	if err == nil && !passed {
		m.d.behind.note(m.stream, m.number)
	}
	return passed, err
}

// Wait blocks the thread.
func (m *event) Wait() error {
	if err := m.d.Lost(); err != nil || m.passed.Load() {
		return err
	}
	wait := m.d.waiters.wait
	if m.from.blocking {
		wait = func(e Event) error { return m.d.driver.SynchronizeEvent(m.d.context, e) }
	}
	if err := wait(m.event); err != nil {
		return m.d.check("waiting for a mark", err)
	}
	m.passed.Store(true)
	return m.d.Lost()
}

func (m *event) Of(other device.Lane) bool {
	l, ok := other.(*lane)
	return ok && l.d == m.d && l.stream == m.stream
}

func (m *event) Keep() device.Event {
	m.held.Inc()
	return m
}

// Drop once too often does nothing: another event may use the event by then.
func (m *event) Drop() {
	for {
		n := m.held.Load()
		if n <= 0 {
			return
		}
		if m.held.CompareAndSwap(n, n-1) {
			if n == 1 {
				m.from.give(m.event)
			}
			return
		}
	}
}

// events is the pool of unused events of one kind.
type events struct {
	d        *Device
	blocking bool // the driver wakes threads that wait for them, instead of letting them spin
	timed    bool // they record the time, and threads do not wait for them
	mu       sync.Mutex
	idle     []Event
}

func (e *events) take() (Event, error) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		event := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return event, nil
	}
	e.mu.Unlock()
	if e.timed {
		return e.d.driver.CreateTimer(e.d.context)
	}
	return e.d.driver.CreateEvent(e.d.context, e.blocking)
}

func (e *events) give(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, event)
}

func (e *events) free() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var failed []error
	for _, event := range e.idle {
		failed = append(failed, e.d.check("event given back", e.d.driver.DestroyEvent(e.d.context, event)))
	}
	e.idle = nil
	return errors.Join(failed...)
}
