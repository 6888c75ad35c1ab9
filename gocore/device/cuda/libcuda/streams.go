package libcuda

// #include "calls.h"
import "C"

import "velocpy/gocore/device/cuda"

// CreateStream creates a non-blocking stream: it does not wait for the default stream, nor the default stream for it.
func (d *Driver) CreateStream(c cuda.Context, priority int) (cuda.Stream, error) {
	var stream C.handle
	r := C.velocpy_create_stream(C.handle(c), C.int(priority), &stream)
	return cuda.Stream(stream), failure("cuStreamCreateWithPriority", r)
}

// StreamPriorities are the limits of the range of priorities; the greatest priority is the smallest number.
func (d *Driver) StreamPriorities(c cuda.Context) (least, greatest int, err error) {
	var l, g C.int
	r := C.velocpy_priorities(C.handle(c), &l, &g)
	return int(l), int(g), failure("cuCtxGetStreamPriorityRange", r)
}

// DestroyStream returns at once; queued work still runs.
func (d *Driver) DestroyStream(c cuda.Context, s cuda.Stream) error {
	return failure("cuStreamDestroy", C.velocpy_destroy_stream(C.handle(c), C.handle(s)))
}

// captureImplicit is the driver's result for the legacy default stream while a stream that waits for it is being captured.
const captureImplicit = 906

// StreamIsCapturing tells whether work queued in the stream now would become part of a graph, or break it.
func (d *Driver) StreamIsCapturing(c cuda.Context, s cuda.Stream) (bool, error) {
	var status C.int
	r := C.velocpy_is_capturing(C.handle(c), C.handle(s), &status)
	if r == captureImplicit {
		return true, nil
	}
	return status != 0, failure("cuStreamIsCapturing", r)
}

// StreamWaitEvent makes later work in the stream wait for the latest record of the event.
func (d *Driver) StreamWaitEvent(c cuda.Context, s cuda.Stream, e cuda.Event) error {
	return failure("cuStreamWaitEvent", C.velocpy_wait_event(C.handle(c), C.handle(s), C.handle(e)))
}

// CreateEvent creates an event with blocking waits, or one that costs less to record.
func (d *Driver) CreateEvent(c cuda.Context, blocking bool) (cuda.Event, error) {
	var event C.handle
	kind := C.int(0)
	if blocking {
		kind = 1
	}
	r := C.velocpy_create_event(C.handle(c), &event, kind)
	return cuda.Event(event), failure("cuEventCreate", r)
}

// CreateTimer creates an event that records the time.
func (d *Driver) CreateTimer(c cuda.Context) (cuda.Event, error) {
	var event C.handle
	r := C.velocpy_create_timer(C.handle(c), &event)
	return cuda.Event(event), failure("cuEventCreate", r)
}

// ElapsedTime never waits. The driver's resolution is half a microsecond.
func (d *Driver) ElapsedTime(c cuda.Context, from, to cuda.Event) (ns int64, done bool, err error) {
	var milliseconds C.float
	r := C.velocpy_elapsed_time(C.handle(c), C.handle(from), C.handle(to), &milliseconds)
	if cuda.Code(r) == cuda.NotReady {
		return 0, false, nil
	}
	return int64(float64(milliseconds) * 1e6), r == 0, failure("cuEventElapsedTime", r)
}

// DestroyEvent may be called before the event has happened.
func (d *Driver) DestroyEvent(c cuda.Context, e cuda.Event) error {
	return failure("cuEventDestroy", C.velocpy_destroy_event(C.handle(c), C.handle(e)))
}

// RecordEvent records the event behind all work in the stream.
func (d *Driver) RecordEvent(c cuda.Context, e cuda.Event, s cuda.Stream) error {
	return failure("cuEventRecord", C.velocpy_record_event(C.handle(c), C.handle(e), C.handle(s)))
}

// QueryEvent never waits.
func (d *Driver) QueryEvent(c cuda.Context, e cuda.Event) (done bool, err error) {
	r := C.velocpy_query_event(C.handle(c), C.handle(e))
	if cuda.Code(r) == cuda.NotReady {
		return false, nil
	}
	return r == 0, failure("cuEventQuery", r)
}

// SynchronizeEvent waits until the event has happened. The thread blocks if the event has blocking waits, and otherwise spins.
func (d *Driver) SynchronizeEvent(c cuda.Context, e cuda.Event) error {
	return failure("cuEventSynchronize", C.velocpy_synchronize_event(C.handle(c), C.handle(e)))
}

// Copy queues a copy between any two addresses in the stream.
func (d *Driver) Copy(c cuda.Context, to, from cuda.Pointer, bytes int64, s cuda.Stream) error {
	return failure("cuMemcpyAsync", C.velocpy_copy(C.handle(c), C.address(to), C.address(from), C.size_t(bytes), C.handle(s)))
}
