package main

/*
#include "velocpy_abi.h"
typedef const char veloc_const_char;
*/
import "C"

import (
	"unsafe"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/inspect"
	"velocpy/gocore/tier/disk/bucket"
)

// buckets reaches archives in buckets, once a program velocpy-s3 runs.
var buckets bucket.Reach

// desk is the process's only desk.
var desk = inspect.Desk{FS: vfs.OS(), Buckets: &buckets, Describes: description.Check, Annotates: description.CheckAnnotation}

//export veloc_inspect
func veloc_inspect(request *C.veloc_const_char, size C.int64_t, data unsafe.Pointer, dataBytes C.int64_t, buf *C.char, capacity C.int64_t, length *C.int64_t,
	failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := need(unsafe.Pointer(length)); err != nil {
			return 0, err
		}
		text, err := bytesAt(request, size)
		if err != nil {
			return 0, err
		}
		if capacity < 0 || buf == nil && capacity > 0 {
			return 0, status.New(status.Invalid, "no place for the answer")
		}
		if dataBytes < 0 || data == nil && dataBytes > 0 {
			return 0, status.New(status.Invalid, "no data at %d bytes", int64(dataBytes))
		}
		reply, err := desk.Ask(text, unsafe.Slice((*byte)(data), int(dataBytes)), int(capacity))
		if err != nil {
			return 0, err
		}
		if reply == nil {
			*length = inspect.Room
			return status.OK, nil
		}
		*length = C.int64_t(len(reply))
		copy(unsafe.Slice((*byte)(unsafe.Pointer(buf)), int(capacity)), reply)
		return status.OK, nil
	})
}
