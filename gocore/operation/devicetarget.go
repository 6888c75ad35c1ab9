package operation

import (
	"errors"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/slots"
)

// deviceTarget is what a restore has whose bytes lie in host memory, and go to a device.
type deviceTarget struct {
	*restore

	sent bool // the host bytes are verified, and the copies to the device come next or have been queued
}

// sendsToDevice tells whether destinations lie on a device while the bytes do not.
func (dt *deviceTarget) sendsToDevice() bool { return dt.device != nil && !dt.placed && !dt.lends }

// stepSent ends a restore whose bytes go from host memory to a device: in the order of the caller's streams if the device can access the bytes, and
// otherwise through a bounce buffer.
func (dt *deviceTarget) stepSent(out *Outcome) (status.Code, error) {
	a := dt.device
	if dt.event == nil && dt.async == nil {
		if err := dt.dispatch(a); err != nil {
			return dt.endOnDevice(out, err)
		}
	}
	if dt.async != nil {
		done, err := dt.async.ended()
		if !done {
			return status.Pending, nil
		}
		return dt.endOnDevice(out, err)
	}
	passed, err := dt.event.Passed()
	if err == nil && !passed {
		return status.Pending, nil // the bytes are in memory of the store, which must stay until the device has read them
	}
	dt.dropEvent()
	return dt.endOnDevice(out, errors.Join(dt.failed, err))
}

// dispatch begins the copies to the destinations.
func (dt *deviceTarget) dispatch(a *devicememory.Memory) error {
	s, slot, spans := dt.s, dt.slot, dt.sources()
	if !slots.Reaches(s, slot) {
		ready, err := a.Fence(dt.streams)
		if err == nil {
			dt.startAsync(a, ready, func(gate *borrow.Source) error { return slots.ScatterFromHost(s, a, gate, slot, spans) })
		}
		return err
	}
	lane, err := a.Join(dt.streams)
	if err != nil {
		return err
	}
	dt.failed = slots.SendFromHost(s, lane, slot, spans, dt.regions)
	m, err := lane.Event()
	if err != nil {
		return errors.Join(dt.failed, err)
	}
	dt.watch(a, m)
	if dt.failed == nil {
		dt.failed = a.Rejoin(dt.streams, m)
	}
	return nil
}

// releaseLater keeps the bytes that a device still reads for a restore that was given up, until the device has finished. The lock is held.
func (dt *deviceTarget) releaseLater() {
	s, a, m, private := dt.s, dt.device, dt.event, dt.private
	dt.event, dt.private = nil, nil
	s.Users++
	safego.Go("lingering copy", func() {
		_ = a.Wait(m) // no caller is left to receive an error
		if private != nil {
			_ = private.Unmap() // no other goroutine uses the mapping
		}
		s.Lock()
		defer s.Leave()
		s.Engine.EndRestore(s.Now(), dt.reads)
		s.Users--
	})
}

// sources returns the spans in host memory of what goes to the destinations, in their order.
func (dt *deviceTarget) sources() []model.Span {
	if dt.partial.parts != nil {
		return dt.partial.packs
	}
	return slots.Selected(dt.reads.Rec.Version.Layout.Spans, dt.want)
}
