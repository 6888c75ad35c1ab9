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

// CreateEvent implements cuda.Driver.
func (d *Driver) CreateEvent(c cuda.Context, blocking bool) (cuda.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("CreateEvent", c)
	if err != nil {
		return 0, err
	}
	h := cuda.Event(d.handle())
	d.events[h] = &event{gpu: g, blocking: blocking}
	return h, nil
}

// CreateTimer implements cuda.Driver.
func (d *Driver) CreateTimer(c cuda.Context) (cuda.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("CreateTimer", c)
	if err != nil {
		return 0, err
	}
	h := cuda.Event(d.handle())
	d.events[h] = &event{gpu: g, timed: true}
	return h, nil
}

// ElapsedTime implements cuda.Driver.
func (d *Driver) ElapsedTime(c cuda.Context, from, to cuda.Event) (ns int64, done bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("ElapsedTime", c)
	if err != nil {
		return 0, false, err
	}
	var at [2]*work
	for i, h := range []cuda.Event{from, to} {
		e, err := d.event("ElapsedTime", g, h, true)
		if err != nil {
			return 0, false, err
		}
		if !e.timed || e.last == nil {
			d.wrong("ElapsedTime of event %#x, which notes no time or was not recorded", uintptr(h))
			return 0, false, fail("ElapsedTime", cuda.InvalidHandle)
		}
		if at[i] = e.last; !e.last.finished {
			return 0, false, nil
		}
	}
	return at[1].at.Sub(at[0].at).Nanoseconds(), true, nil
}

// event begins a call on an event. Unless own, the event may belong to another context.
func (d *Driver) event(call string, g *gpu, h cuda.Event, own bool) (*event, error) {
	e := d.events[h]
	if e == nil || e.destroyed || own && e.gpu != g {
		d.wrong("%s of event %#x, which is destroyed or not of this context", call, uintptr(h))
		return nil, fail(call, cuda.InvalidHandle)
	}
	return e, nil
}

// DestroyEvent implements cuda.Driver. Queued waits for its records stay.
func (d *Driver) DestroyEvent(c cuda.Context, h cuda.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("DestroyEvent", c)
	if err != nil {
		return err
	}
	e, err := d.event("DestroyEvent", g, h, true)
	if err != nil {
		return err
	}
	e.destroyed = true
	return nil
}

// RecordEvent implements cuda.Driver.
func (d *Driver) RecordEvent(c cuda.Context, h cuda.Event, at cuda.Stream) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.in("RecordEvent", c, at)
	if err != nil {
		return err
	}
	e, err := d.event("RecordEvent", s.gpu, h, true)
	if err != nil {
		return err
	}
	e.last = &work{what: "record"}
	d.put(s, e.last)
	return nil
}

// StreamWaitEvent implements cuda.Driver.
func (d *Driver) StreamWaitEvent(c cuda.Context, at cuda.Stream, h cuda.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.in("StreamWaitEvent", c, at)
	if err != nil {
		return err
	}
	e, err := d.event("StreamWaitEvent", s.gpu, h, false)
	if err != nil {
		return err
	}
	if e.last != nil {
		d.put(s, &work{what: "wait", after: e.last})
	}
	return nil
}

// QueryEvent implements cuda.Driver.
func (d *Driver) QueryEvent(c cuda.Context, h cuda.Event) (done bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("QueryEvent", c)
	if err != nil {
		return false, err
	}
	e, err := d.event("QueryEvent", g, h, true)
	if err != nil {
		return false, err
	}
	if e.last != nil && !e.last.finished {
		return false, nil
	}
	d.watch.learn(e.last)
	return true, nil
}

// SynchronizeEvent implements cuda.Driver.
func (d *Driver) SynchronizeEvent(c cuda.Context, h cuda.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("SynchronizeEvent", c)
	if err != nil {
		return err
	}
	e, err := d.event("SynchronizeEvent", g, h, true)
	if err != nil {
		return err
	}
	if !e.blocking {
		d.wrong("SynchronizeEvent of event %#x, for which the thread spins", uintptr(h))
	}
	if last := e.last; last != nil {
		d.outside(func() { <-last.done })
		d.watch.learn(last)
	}
	if g.lost != 0 {
		return fail("SynchronizeEvent", g.lost)
	}
	return nil
}
