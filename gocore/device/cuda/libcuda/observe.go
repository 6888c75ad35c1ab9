package libcuda

// #include "calls.h"
import "C"

import "velocpy/gocore/device/cuda"

// These let tests observe velocpy beside other users of the driver in the process. Velocpy itself captures no graphs and reads no current context.

// BeginCapture starts to capture the stream into a graph, in the mode that other calls break most easily. The same thread must end the capture.
// Velocpy captures nothing: with this its tests run beside an application that does.
func (d *Driver) BeginCapture(c cuda.Context, s cuda.Stream) error {
	return failure("cuStreamBeginCapture", C.velocpy_begin_capture(C.handle(c), C.handle(s)))
}

// EndCapture discards the graph, and fails if another call broke it.
func (d *Driver) EndCapture(c cuda.Context, s cuda.Stream) error {
	return failure("cuStreamEndCapture", C.velocpy_end_capture(C.handle(c), C.handle(s)))
}

// Current is the current context of the calling thread; 0 if there is none.
func (d *Driver) Current() (cuda.Context, error) {
	var context C.handle
	r := C.velocpy_current(&context)
	return cuda.Context(context), failure("cuCtxGetCurrent", r)
}

// MakeCurrent pushes a context on the calling thread's stack.
func (d *Driver) MakeCurrent(c cuda.Context) error {
	return failure("cuCtxPushCurrent", C.velocpy_push(C.handle(c)))
}

// Uncurrent undoes MakeCurrent.
func (d *Driver) Uncurrent() error { return failure("cuCtxPopCurrent", C.velocpy_pop()) }
