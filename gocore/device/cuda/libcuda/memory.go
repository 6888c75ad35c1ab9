package libcuda

// #include "calls.h"
import "C"

import (
	"unsafe"

	"velocpy/gocore/device/cuda"
)

// virtualMemory is the driver's functions for addresses, and for device memory that is mapped at them.
type virtualMemory struct{}

// Granularity is the unit of the sizes of mapped memory.
func (virtualMemory) Granularity(device int) (int64, error) {
	var bytes C.size_t
	r := C.velocpy_granularity(C.int(device), &bytes)
	return int64(bytes), failure("cuMemGetAllocationGranularity", r)
}

// ReserveAddress reserves a range of addresses without memory.
func (virtualMemory) ReserveAddress(bytes, align int64) (cuda.Pointer, error) {
	var at C.address
	r := C.velocpy_reserve(C.size_t(bytes), C.size_t(align), &at)
	return cuda.Pointer(at), failure("cuMemAddressReserve", r)
}

// FreeAddress undoes one ReserveAddress.
func (virtualMemory) FreeAddress(at cuda.Pointer, bytes int64) error {
	return failure("cuMemAddressFree", C.velocpy_free_address(C.address(at), C.size_t(bytes)))
}

// CreateMemory allocates device memory, which is unreachable before it is mapped.
func (virtualMemory) CreateMemory(c cuda.Context, device int, bytes int64) (cuda.Memory, error) {
	var memory C.ulonglong
	r := C.velocpy_create_memory(C.handle(c), C.int(device), C.size_t(bytes), &memory)
	return cuda.Memory(memory), failure("cuMemCreate", r)
}

// ReleaseMemory frees memory once it is not mapped any more.
func (virtualMemory) ReleaseMemory(m cuda.Memory) error {
	return failure("cuMemRelease", C.velocpy_release_memory(C.ulonglong(m)))
}

// Map maps memory at addresses; SetAccess has to follow.
func (virtualMemory) Map(at cuda.Pointer, bytes int64, m cuda.Memory) error {
	return failure("cuMemMap", C.velocpy_map(C.address(at), C.size_t(bytes), C.ulonglong(m)))
}

// Unmap undoes exactly one Map.
func (virtualMemory) Unmap(at cuda.Pointer, bytes int64) error {
	return failure("cuMemUnmap", C.velocpy_unmap(C.address(at), C.size_t(bytes)))
}

// SetAccess lets the device read and write mapped memory.
func (virtualMemory) SetAccess(at cuda.Pointer, bytes int64, device int) error {
	return failure("cuMemSetAccess", C.velocpy_set_access(C.address(at), C.size_t(bytes), C.int(device)))
}

// pinnedMemory is the driver's functions for host memory that devices reach.
type pinnedMemory struct{}

// Register pins host memory for every context, and makes it reachable for kernels.
func (pinnedMemory) Register(c cuda.Context, at unsafe.Pointer, bytes int64) error {
	return failure("cuMemHostRegister", C.velocpy_register(C.handle(c), C.uintptr_t(uintptr(at)), C.size_t(bytes)))
}

// Unregister undoes exactly one Register.
func (pinnedMemory) Unregister(c cuda.Context, at unsafe.Pointer) error {
	return failure("cuMemHostUnregister", C.velocpy_unregister(C.handle(c), C.uintptr_t(uintptr(at))))
}

// AllocateHost allocates pinned memory that host and kernels reach at the same address.
func (pinnedMemory) AllocateHost(c cuda.Context, bytes int64) (unsafe.Pointer, error) {
	var at unsafe.Pointer
	r := C.velocpy_allocate_host(C.handle(c), C.size_t(bytes), &at)
	return at, failure("cuMemHostAlloc", r)
}

// FreeHost undoes one AllocateHost.
func (pinnedMemory) FreeHost(c cuda.Context, at unsafe.Pointer) error {
	return failure("cuMemFreeHost", C.velocpy_free_host(C.handle(c), C.uintptr_t(uintptr(at))))
}
