package device

import "unsafe"

// Address is an address in device memory, or in host memory that the device can reach.
type Address = uintptr

// AddressOf is the address of host memory, valid while the caller holds the slice. A number alone does not keep the bytes in place. The compiler puts
// small slices on the stack of a goroutine, which moves when it grows, even in the middle of a copy.
func AddressOf(p []byte) Address {
	if outlet.open {
		outlet.bytes = p
	}
	return Address(unsafe.Pointer(unsafe.SliceData(p)))
}

// outlet makes slices escape to the heap: the compiler sees the assignment, which never runs.
var outlet struct {
	open  bool
	bytes []byte
}
