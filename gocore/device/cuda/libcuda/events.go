package libcuda

// #include "calls.h"
import "C"

import "velocpy/gocore/device/cuda"

// events is the driver's functions for events.
type events struct{}

// CreateEvent creates an event with blocking waits, or one that costs less to record.
func (events) CreateEvent(c cuda.Context, blocking bool) (cuda.Event, error) {
	var event C.handle
	kind := C.int(0)
	if blocking {
		kind = 1
	}
	r := C.velocpy_create_event(C.handle(c), &event, kind)
	return cuda.Event(event), failure("cuEventCreate", r)
}

// CreateTimer creates an event that records the time.
func (events) CreateTimer(c cuda.Context) (cuda.Event, error) {
	var event C.handle
	r := C.velocpy_create_timer(C.handle(c), &event)
	return cuda.Event(event), failure("cuEventCreate", r)
}

// ElapsedTime never waits. The driver's resolution is half a microsecond.
func (events) ElapsedTime(c cuda.Context, from, to cuda.Event) (ns int64, done bool, err error) {
	var milliseconds C.float
	r := C.velocpy_elapsed_time(C.handle(c), C.handle(from), C.handle(to), &milliseconds)
	if cuda.Code(r) == cuda.NotReady {
		return 0, false, nil
	}
	return int64(float64(milliseconds) * 1e6), r == 0, failure("cuEventElapsedTime", r)
}

// DestroyEvent may be called before the event has happened.
func (events) DestroyEvent(c cuda.Context, e cuda.Event) error {
	return failure("cuEventDestroy", C.velocpy_destroy_event(C.handle(c), C.handle(e)))
}

// RecordEvent records the event behind all work in the stream.
func (events) RecordEvent(c cuda.Context, e cuda.Event, s cuda.Stream) error {
	return failure("cuEventRecord", C.velocpy_record_event(C.handle(c), C.handle(e), C.handle(s)))
}

// QueryEvent never waits.
func (events) QueryEvent(c cuda.Context, e cuda.Event) (done bool, err error) {
	r := C.velocpy_query_event(C.handle(c), C.handle(e))
	if cuda.Code(r) == cuda.NotReady {
		return false, nil
	}
	return r == 0, failure("cuEventQuery", r)
}

// SynchronizeEvent waits until the event has happened. The thread blocks if the event has blocking waits, and otherwise spins.
func (events) SynchronizeEvent(c cuda.Context, e cuda.Event) error {
	return failure("cuEventSynchronize", C.velocpy_synchronize_event(C.handle(c), C.handle(e)))
}
