package libcuda

// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"slices"
	"unsafe"

	"velocpy/gocore/device/cuda"
)

// modules is the driver's functions for kernels: modules, their functions and launches.
type modules struct{}

// LoadModule loads kernels: machine code for several GPUs in one image, machine code for one, or PTX text. The driver keeps a copy.
func (modules) LoadModule(c cuda.Context, image []byte) (cuda.Module, error) {
	image = append(slices.Clip(image), 0) // text must end with a zero
	var module C.handle
	r := C.velocpy_load_module(C.handle(c), unsafe.Pointer(unsafe.SliceData(image)), &module)
	return cuda.Module(module), failure("cuModuleLoadData", r)
}

// UnloadModule unloads the kernels; none may be queued any more.
func (modules) UnloadModule(c cuda.Context, m cuda.Module) error {
	return failure("cuModuleUnload", C.velocpy_unload_module(C.handle(c), C.handle(m)))
}

// Function finds a kernel by its unmangled name.
func (modules) Function(c cuda.Context, m cuda.Module, name string) (cuda.Function, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var function C.handle
	r := C.velocpy_function(C.handle(c), C.handle(m), text, &function)
	return cuda.Function(function), failure("cuModuleGetFunction", r)
}

// Launch queues a kernel with one parameter in the stream. The parameter is read before Launch returns.
func (modules) Launch(c cuda.Context, f cuda.Function, blocks, threads, shared int, s cuda.Stream, parameter []byte) error {
	r := C.velocpy_launch(C.handle(c), C.handle(f), C.uint(blocks), C.uint(threads), C.uint(shared), C.handle(s),
		unsafe.Pointer(unsafe.SliceData(parameter)), C.size_t(len(parameter)))
	return failure("cuLaunchKernel", r)
}
