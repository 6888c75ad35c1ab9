package libcuda

// #include "calls.h"
import "C"

import "velocpy/gocore/device/cuda"

// CreateStream opens a stream that does not wait for the default stream, nor that for it.
func (d *Driver) CreateStream(c cuda.Context, priority int) (cuda.Stream, error) {
	var stream C.handle
	r := C.velocpy_create_stream(C.handle(c), C.int(priority), &stream)
	return cuda.Stream(stream), failure("cuStreamCreateWithPriority", r)
}

// StreamPriorities are the ends of the range of priorities; the greatest is the smallest number.
func (d *Driver) StreamPriorities(c cuda.Context) (least, greatest int, err error) {
	var l, g C.int
	r := C.velocpy_priorities(C.handle(c), &l, &g)
	return int(l), int(g), failure("cuCtxGetStreamPriorityRange", r)
}

// DestroyStream returns at once; what is queued still happens.
func (d *Driver) DestroyStream(c cuda.Context, s cuda.Stream) error {
	return failure("cuStreamDestroy", C.velocpy_destroy_stream(C.handle(c), C.handle(s)))
}

// captureImplicit is the driver's answer for the legacy default stream while a stream that waits for it is being captured.
const captureImplicit = 906

// StreamIsCapturing tells whether what is put into the stream now would become part of a graph, or break it.
func (d *Driver) StreamIsCapturing(c cuda.Context, s cuda.Stream) (bool, error) {
	var status C.int
	r := C.velocpy_is_capturing(C.handle(c), C.handle(s), &status)
	if r == captureImplicit {
		return true, nil
	}
	return status != 0, failure("cuStreamIsCapturing", r)
}

// StreamWaitEvent makes what comes into the stream from now on wait for what the event was last recorded behind.
func (d *Driver) StreamWaitEvent(c cuda.Context, s cuda.Stream, e cuda.Event) error {
	return failure("cuStreamWaitEvent", C.velocpy_wait_event(C.handle(c), C.handle(s), C.handle(e)))
}

// CreateEvent makes an event whose waits block the thread, or one that costs less to record.
func (d *Driver) CreateEvent(c cuda.Context, blocking bool) (cuda.Event, error) {
	var event C.handle
	kind := C.int(0)
	if blocking {
		kind = 1
	}
	r := C.velocpy_create_event(C.handle(c), &event, kind)
	return cuda.Event(event), failure("cuEventCreate", r)
}

// CreateTimer makes an event that notes the time.
func (d *Driver) CreateTimer(c cuda.Context) (cuda.Event, error) {
	var event C.handle
	r := C.velocpy_create_timer(C.handle(c), &event)
	return cuda.Event(event), failure("cuEventCreate", r)
}

// ElapsedTime never waits. The driver counts in half microseconds.
func (d *Driver) ElapsedTime(c cuda.Context, from, to cuda.Event) (ns int64, done bool, err error) {
	var milliseconds C.float
	r := C.velocpy_elapsed_time(C.handle(c), C.handle(from), C.handle(to), &milliseconds)
	if cuda.Code(r) == cuda.NotReady {
		return 0, false, nil
	}
	return int64(float64(milliseconds) * 1e6), r == 0, failure("cuEventElapsedTime", r)
}

// DestroyEvent may come before the event has happened.
func (d *Driver) DestroyEvent(c cuda.Context, e cuda.Event) error {
	return failure("cuEventDestroy", C.velocpy_destroy_event(C.handle(c), C.handle(e)))
}

// RecordEvent sets the event behind all that is in the stream.
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

// SynchronizeEvent blocks the thread until the event has happened: asleep if the event is of that kind.
func (d *Driver) SynchronizeEvent(c cuda.Context, e cuda.Event) error {
	return failure("cuEventSynchronize", C.velocpy_synchronize_event(C.handle(c), C.handle(e)))
}

// Copy puts a copy between any two addresses into the stream.
func (d *Driver) Copy(c cuda.Context, to, from cuda.Pointer, bytes int64, s cuda.Stream) error {
	return failure("cuMemcpyAsync", C.velocpy_copy(C.handle(c), C.address(to), C.address(from), C.size_t(bytes), C.handle(s)))
}
