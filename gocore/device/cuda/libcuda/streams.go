package libcuda

// #include "calls.h"
import "C"

import (
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
)

// streams is the driver's functions for streams, and for the copies in them.
type streams struct{}

// CreateStream creates a non-blocking stream: it does not wait for the default stream, nor the default stream for it.
func (streams) CreateStream(c cuda.Context, priority int) (cuda.Stream, error) {
	var stream C.handle
	r := C.velocpy_create_stream(C.handle(c), C.int(priority), &stream)
	return cuda.Stream(stream), failure("cuStreamCreateWithPriority", r)
}

// StreamPriorities are the limits of the range of priorities; the greatest priority is the smallest number.
func (streams) StreamPriorities(c cuda.Context) (least, greatest int, err error) {
	var l, g C.int
	r := C.velocpy_priorities(C.handle(c), &l, &g)
	return int(l), int(g), failure("cuCtxGetStreamPriorityRange", r)
}

// DestroyStream returns at once; queued work still runs.
func (streams) DestroyStream(c cuda.Context, s cuda.Stream) error {
	return failure("cuStreamDestroy", C.velocpy_destroy_stream(C.handle(c), C.handle(s)))
}

// captureImplicit is the driver's result for the legacy default stream while a stream that waits for it is being captured.
const captureImplicit = 906

// StreamIsCapturing tells whether work queued in the stream now would become part of a graph, or break it.
func (streams) StreamIsCapturing(c cuda.Context, s cuda.Stream) (bool, error) {
	var status C.int
	r := C.velocpy_is_capturing(C.handle(c), C.handle(s), &status)
	if r == captureImplicit {
		return true, nil
	}
	return status != 0, failure("cuStreamIsCapturing", r)
}

// StreamWaitEvent makes later work in the stream wait for the latest record of the event.
func (streams) StreamWaitEvent(c cuda.Context, s cuda.Stream, e cuda.Event) error {
	return failure("cuStreamWaitEvent", C.velocpy_wait_event(C.handle(c), C.handle(s), C.handle(e)))
}

// Copy queues a copy between any two addresses in the stream.
func (streams) Copy(c cuda.Context, to, from cuda.Pointer, bytes int64, s cuda.Stream) error {
	return failure("cuMemcpyAsync", C.velocpy_copy(C.handle(c), C.address(to), C.address(from), C.size_t(bytes), C.handle(s)))
}

// CopyAll implements cuda.Driver.
func (streams) CopyAll(c cuda.Context, all []device.Move, s cuda.Stream) error {
	if len(all) == 0 {
		return nil
	}
	moves := (*C.struct_move)(unsafe.Pointer(unsafe.SliceData(all)))
	return failure("cuMemcpyAsync", C.velocpy_copy_all(C.handle(c), moves, C.size_t(len(all)), C.handle(s)))
}
