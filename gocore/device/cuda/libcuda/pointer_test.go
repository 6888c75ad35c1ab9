//go:build cgo

package libcuda_test

import "unsafe"

// pointer makes a pointer of an address of the device.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
