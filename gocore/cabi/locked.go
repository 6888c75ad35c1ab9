package main

/*
#include <stdlib.h>
#include "locked.h"
*/
import "C"

import (
	"unsafe"

	"velocpy/gocore/base/vfs"
)

// closeLocksInChildren makes a forked child close its copies of the descriptors that hold locks.
func closeLocksInChildren() {
	vfs.OpenLocked = func(dir int, name string, flags int) (int, error) {
		text := C.CString(name)
		defer C.free(unsafe.Pointer(text))
		fd, err := C.velocpy_open_locked(C.int(dir), text, C.int(flags))
		if fd < 0 {
			return -1, err
		}
		return int(fd), nil
	}
	vfs.CloseLocked = func(fd int) error {
		if failed, err := C.velocpy_close_locked(C.int(fd)); failed != 0 {
			return err
		}
		return nil
	}
}
