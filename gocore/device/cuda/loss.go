package cuda

import (
	"errors"
	"fmt"

	"velocpy/gocore/device"
)

// Lost is nil until a call has reported that the context is unusable.
func (d *Device) Lost() error { return d.lost.Load() }

// check wraps the error of a failed call, and records permanently that the context is lost.
func (d *Device) check(what string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %s: %w", d.Name(), what, err)
	}
	switch {
	case e.Code.Sticky():
		return d.lose(what, err)
	case e.Code == OutOfMemory:
		return fmt.Errorf("%s: %s: %w: %w", d.Name(), what, device.ErrMemory, err)
	case e.Code.recording():
		return fmt.Errorf("%s: %s: %w: %w", d.Name(), what, device.ErrRecording, err)
	}
	return fmt.Errorf("%s: %s: %w", d.Name(), what, err)
}

// lose keeps the first cause; later errors are its consequences.
func (d *Device) lose(what string, err error) error {
	d.lost.CompareAndSwap(nil, fmt.Errorf("%s: %w: %s: %w", d.Name(), device.ErrLost, what, err))
	return d.lost.Load()
}
