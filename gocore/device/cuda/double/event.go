package double

import (
	"velocpy/gocore/device/cuda"
)

// event holds the latest record, if any.
type event struct {
	gpu       *gpu
	last      *work
	destroyed bool
	blocking  bool
	timed     bool
}

// events makes and records events, and waits for them.
type events struct {
	*state

	byHandle map[cuda.Event]*event
}

// CreateEvent implements cuda.Driver.
func (es *events) CreateEvent(c cuda.Context, blocking bool) (cuda.Event, error) {
	es.mu.Lock()
	defer es.mu.Unlock()
	g, err := es.within("CreateEvent", c)
	if err != nil {
		return 0, err
	}
	h := cuda.Event(es.handle())
	es.byHandle[h] = &event{gpu: g, blocking: blocking}
	return h, nil
}

// CreateTimer implements cuda.Driver.
func (es *events) CreateTimer(c cuda.Context) (cuda.Event, error) {
	es.mu.Lock()
	defer es.mu.Unlock()
	g, err := es.within("CreateTimer", c)
	if err != nil {
		return 0, err
	}
	h := cuda.Event(es.handle())
	es.byHandle[h] = &event{gpu: g, timed: true}
	return h, nil
}

// ElapsedTime implements cuda.Driver.
func (es *events) ElapsedTime(c cuda.Context, from, to cuda.Event) (ns int64, done bool, err error) {
	es.mu.Lock()
	defer es.mu.Unlock()
	g, err := es.within("ElapsedTime", c)
	if err != nil {
		return 0, false, err
	}
	var at [2]*work
	for i, h := range []cuda.Event{from, to} {
		e, err := es.event("ElapsedTime", g, h, true)
		if err != nil {
			return 0, false, err
		}
		if !e.timed || e.last == nil {
			es.checks.wrong("ElapsedTime of event %#x, which notes no time or was not recorded", uintptr(h))
			return 0, false, fail("ElapsedTime", cuda.InvalidHandle)
		}
		if at[i] = e.last; !e.last.finished {
			return 0, false, nil
		}
	}
	return at[1].at.Sub(at[0].at).Nanoseconds(), true, nil
}

// event begins a call on an event. Unless own, the event may belong to another context.
func (es *events) event(call string, g *gpu, h cuda.Event, own bool) (*event, error) {
	e := es.byHandle[h]
	if e == nil || e.destroyed || own && e.gpu != g {
		es.checks.wrong("%s of event %#x, which is destroyed or not of this context", call, uintptr(h))
		return nil, fail(call, cuda.InvalidHandle)
	}
	return e, nil
}

// DestroyEvent implements cuda.Driver. Queued waits for its records stay.
func (es *events) DestroyEvent(c cuda.Context, h cuda.Event) error {
	es.mu.Lock()
	defer es.mu.Unlock()
	g, err := es.within("DestroyEvent", c)
	if err != nil {
		return err
	}
	e, err := es.event("DestroyEvent", g, h, true)
	if err != nil {
		return err
	}
	e.destroyed = true
	return nil
}

// RecordEvent implements cuda.Driver.
func (es *events) RecordEvent(c cuda.Context, h cuda.Event, at cuda.Stream) error {
	es.mu.Lock()
	defer es.mu.Unlock()
	s, err := es.streams.in("RecordEvent", c, at)
	if err != nil {
		return err
	}
	e, err := es.event("RecordEvent", s.gpu, h, true)
	if err != nil {
		return err
	}
	e.last = &work{what: "record"}
	es.queues.put(s, e.last)
	return nil
}

// StreamWaitEvent implements cuda.Driver.
func (es *events) StreamWaitEvent(c cuda.Context, at cuda.Stream, h cuda.Event) error {
	es.mu.Lock()
	defer es.mu.Unlock()
	s, err := es.streams.in("StreamWaitEvent", c, at)
	if err != nil {
		return err
	}
	e, err := es.event("StreamWaitEvent", s.gpu, h, false)
	if err != nil {
		return err
	}
	if e.last != nil {
		es.queues.put(s, &work{what: "wait", after: e.last})
	}
	return nil
}

// QueryEvent implements cuda.Driver.
func (es *events) QueryEvent(c cuda.Context, h cuda.Event) (done bool, err error) {
	es.mu.Lock()
	defer es.mu.Unlock()
	g, err := es.within("QueryEvent", c)
	if err != nil {
		return false, err
	}
	e, err := es.event("QueryEvent", g, h, true)
	if err != nil {
		return false, err
	}
	if e.last != nil && !e.last.finished {
		return false, nil
	}
	es.queues.watch.learn(e.last)
	return true, nil
}

// SynchronizeEvent implements cuda.Driver.
func (es *events) SynchronizeEvent(c cuda.Context, h cuda.Event) error {
	es.mu.Lock()
	defer es.mu.Unlock()
	g, err := es.within("SynchronizeEvent", c)
	if err != nil {
		return err
	}
	e, err := es.event("SynchronizeEvent", g, h, true)
	if err != nil {
		return err
	}
	if !e.blocking {
		es.checks.wrong("SynchronizeEvent of event %#x, for which the thread spins", uintptr(h))
	}
	if last := e.last; last != nil {
		es.outside(func() { <-last.done })
		es.queues.watch.learn(last)
	}
	if g.lost != 0 {
		return fail("SynchronizeEvent", g.lost)
	}
	return nil
}
