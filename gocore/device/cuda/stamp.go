package cuda

import (
	"fmt"

	"velocpy/gocore/device"
)

// stamp is a recorded timing event.
type stamp struct {
	d     *Device
	event Event
}

func (l *lane) Stamp() (device.Stamp, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	event, err := l.d.timers.take()
	if err != nil {
		return nil, l.d.check("event", err)
	}
	if err := l.d.driver.RecordEvent(l.d.context, event, l.stream); err != nil {
		l.d.timers.give(event)
		return nil, l.d.check("stamp", err)
	}
	return &stamp{l.d, event}, nil
}

func (s *stamp) Since(earlier device.Stamp) (ns int64, passed bool, err error) {
	e, ok := earlier.(*stamp)
	if !ok || e.d != s.d {
		return 0, false, fmt.Errorf("%s: a %T is no stamp of this device", s.d.Name(), earlier)
	}
	if err := s.d.Lost(); err != nil {
		return 0, false, err
	}
	ns, passed, err = s.d.driver.ElapsedTime(s.d.context, e.event, s.event)
	return ns, passed, s.d.check("time between stamps", err)
}

func (s *stamp) Drop() { s.d.timers.give(s.event) }
