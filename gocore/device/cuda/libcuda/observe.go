package libcuda

// #include "calls.h"
import "C"

import "velocpy/gocore/device/cuda"

// What tests need to see what velocpy does beside others in the process. Velocpy itself records no graphs and asks for no context.

// BeginCapture starts to record the stream into a graph, in the mode that is most easily broken; the calling thread has to be the
// one that ends it. Velocpy records nothing: this lets its tests see what it does beside those who do.
func (d *Driver) BeginCapture(c cuda.Context, s cuda.Stream) error {
	return failure("cuStreamBeginCapture", C.velocpy_begin_capture(C.handle(c), C.handle(s)))
}

// EndCapture throws the graph away, and fails if somebody broke it.
func (d *Driver) EndCapture(c cuda.Context, s cuda.Stream) error {
	return failure("cuStreamEndCapture", C.velocpy_end_capture(C.handle(c), C.handle(s)))
}

// Current is the context that is current on the calling thread, 0 if none is.
func (d *Driver) Current() (cuda.Context, error) {
	var context C.handle
	r := C.velocpy_current(&context)
	return cuda.Context(context), failure("cuCtxGetCurrent", r)
}

// MakeCurrent puts a context on top of the calling thread's, and Uncurrent takes it away.
func (d *Driver) MakeCurrent(c cuda.Context) error {
	return failure("cuCtxPushCurrent", C.velocpy_push(C.handle(c)))
}

// Uncurrent takes back what MakeCurrent did.
func (d *Driver) Uncurrent() error { return failure("cuCtxPopCurrent", C.velocpy_pop()) }
