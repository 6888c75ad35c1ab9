// Package main is the C ABI of the core: the only place with exported symbols. The functions are declared in
// cshim/velocpy_abi.h, which is included here, so a signature that differs from the contract does not compile.
//
// It is built with -buildmode=c-shared into velocpy/libvelocpy_core.so.
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../cshim -Wall -Werror
#include <string.h>
#include "velocpy_abi.h"

// cgo drops const from the pointers of an export; through these names it keeps it, and the prototypes agree.
typedef const char veloc_const_char;
*/
import "C"

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// version is stamped by the build: -ldflags "-X main.version=…".
var version = "unknown"

// main never runs: the library is opened, not executed.
func main() {}

//export veloc_abi_version
func veloc_abi_version() C.uint32_t { return C.VELOC_ABI_VERSION }

//export veloc_init
func veloc_init(config *C.veloc_const_char, length C.int64_t, failure *C.veloc_error) C.int32_t {
	return C.VELOC_OK
}

//export veloc_build_info
func veloc_build_info(buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	info := map[string]string{"version": version, "go": runtime.Version()}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range build.Settings {
			info[setting.Key] = setting.Value
		}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return C.VELOC_E_INTERNAL
	}
	*length = C.int64_t(len(text))
	if len(text) <= int(capacity) {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(buf)), len(text)), text)
	}
	return C.VELOC_OK
}
