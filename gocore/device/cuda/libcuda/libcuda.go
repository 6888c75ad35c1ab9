// Package libcuda is the CUDA driver of the machine: libcuda.so.1, opened at the first use, through a table of only the functions that velocpy calls.
// Nothing is linked, the toolkit is not needed, and the library is never closed.
//
// The current context belongs to the thread, and goroutines change threads. So every call makes its context current, if it is not, and restores the
// previous one before it returns. That costs some tens of nanoseconds, and the caller's thread never has a context of ours.
package libcuda

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall
#cgo LDFLAGS: -Wl,--as-needed -ldl
#include "calls.h"
#include "scope.h"
#include "open.h"
*/
import "C"

import "velocpy/gocore/device/cuda"

// Driver is the opened driver: its functions, by what they are for. The zero value is invalid: use Open.
type Driver struct {
	devices
	virtualMemory
	pinnedMemory
	streams
	events
	modules

	version int
}

var _ cuda.Driver = (*Driver)(nil)

// Version is the newest CUDA that the driver supports: 13000 for 13.0.
func (d *Driver) Version() (int, error) { return d.version, nil }

// failure is the error of a call with that result; nil for success.
func failure(call string, r C.result) error {
	if r == 0 {
		return nil
	}
	number := int(r)
	if number&C.VELOCPY_CUDA_AT_CONTEXT != 0 {
		number &^= C.VELOCPY_CUDA_AT_CONTEXT
		call = "cuCtxPushCurrent for " + call
	}
	return &cuda.Error{
		Call: call,
		Code: cuda.Code(number),
		Name: C.GoString(C.velocpy_cuda_name(C.int(number))),
		Text: C.GoString(C.velocpy_cuda_text(C.int(number))),
	}
}
