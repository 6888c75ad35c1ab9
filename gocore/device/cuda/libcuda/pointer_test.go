//go:build cgo

package libcuda_test

import "unsafe"

// pointer converts a device address to a pointer.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
