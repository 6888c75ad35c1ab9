package devicememory

import (
	"errors"
	"sync"

	"go.uber.org/atomic"

	"velocpy/gocore/device"
	"velocpy/gocore/device/hazard"
	"velocpy/gocore/model"
)

// hazards keeps account of the work that still reads or writes ranges of the tier, and puts work into lanes behind it.
type hazards struct {
	device   device.Device
	waits    *waits
	unfenced atomic.Bool // some work may have no event, so that nothing tells when it ends

	mu      sync.Mutex // held while the account is asked or told, never while work is put into a lane
	tracker hazard.Tracker
}

// QueueRead puts work into a lane that reads [from, from+size) of the tier, behind the work that still writes there. The event is behind the work and the caller's to
// drop, also when it comes with an error: then some of the work may have been queued all the same.
func (h *hazards) QueueRead(lane device.Lane, kind Kind, from, size int64, put func() error) (device.Event, error) {
	return h.QueueReads(lane, kind, []model.Span{{Offset: from, Bytes: size}}, put)
}

// QueueReads is the same for work that reads several ranges.
func (h *hazards) QueueReads(lane device.Lane, kind Kind, ranges []model.Span, put func() error) (device.Event, error) {
	var before []device.Event
	h.mu.Lock()
	for _, r := range ranges {
		before = h.tracker.BeforeRead(before, r.Offset, r.Bytes)
	}
	h.mu.Unlock()
	return h.queue(lane, kind, before, put, func(x device.Event) {
		for _, r := range ranges {
			h.tracker.Read(r.Offset, r.Bytes, x)
		}
	})
}

// QueueWrite is the same for work that writes, behind the work that still writes or reads there.
func (h *hazards) QueueWrite(lane device.Lane, kind Kind, from, size int64, put func() error) (device.Event, error) {
	h.mu.Lock()
	before := h.tracker.BeforeWrite(nil, from, size)
	h.mu.Unlock()
	return h.queue(lane, kind, before, put, func(x device.Event) { h.tracker.Wrote(from, size, x) })
}

func (h *hazards) queue(lane device.Lane, kind Kind, before []device.Event, put func() error, note func(device.Event)) (device.Event, error) {
	failed := h.waits.after(lane, before, kind)
	if failed == nil {
		failed = put()
	}
	x, failed := EventBehind(lane, failed) // also when the work failed: some of it may have been queued
	if x == nil {
		h.noteUnfenced(failed)
		return nil, Explain(failed)
	}
	h.mu.Lock()
	note(&kindEvent{x, kind})
	h.mu.Unlock()
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
func (h *hazards) noteUnfenced(err error) {
	if !errors.Is(err, device.ErrRecording) {
		h.unfenced.Store(true)
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

// DropAll drops events.
func DropAll(marks []device.Event) {
	for _, x := range marks {
		x.Drop()
	}
}

// keepAll returns the same events, to be dropped once more.
func keepAll(marks []device.Event) []device.Event {
	all := make([]device.Event, len(marks))
	for i, x := range marks {
		all[i] = x.Keep()
	}
	return all
}

// Lend makes streams wait for the work that writes a range, and, if they may write there themselves, for the work that reads it.
func (h *hazards) Lend(streams []uint64, offset, bytes int64, writable bool) error {
	ask := h.tracker.BeforeRead
	if writable {
		ask = h.tracker.BeforeWrite
	}
	h.mu.Lock()
	before := ask(nil, offset, bytes)
	h.mu.Unlock()
	defer DropAll(before)
	for i, stream := range streams {
		kind := Checks
		if i == 0 { // they all wait at the same time: it is counted once
			kind = Restores
		}
		if err := h.waits.after(h.device.Borrow(stream), keepAll(before), kind); err != nil {
			return err
		}
	}
	return nil
}

// NoteReads notes that a caller's streams have read a range. It returns those that take no event now because they are being captured into a graph. An error of one
// stream does not keep the others from being noted.
func (h *hazards) NoteReads(streams []uint64, offset, bytes int64) (recording []uint64, err error) {
	for _, stream := range streams {
		x, failed := h.device.Borrow(stream).Event()
		if errors.Is(failed, device.ErrRecording) {
			recording = append(recording, stream)
			continue
		}
		if failed != nil {
			h.noteUnfenced(failed)
			err = errors.Join(err, failed)
			continue
		}
		h.mu.Lock()
		h.tracker.Read(offset, bytes, &kindEvent{x, Restores})
		h.mu.Unlock()
		x.Drop()
	}
	return recording, Explain(err)
}

// AwaitRange waits until no work that was noted reads or writes a range of the tier any more.
func (h *hazards) AwaitRange(from, size int64) error {
	h.mu.Lock()
	marks := h.tracker.Quiet(nil, from, size)
	h.mu.Unlock()
	var failed error
	for _, x := range marks {
		failed = errors.Join(failed, x.Wait())
		x.Drop()
	}
	return failed
}
