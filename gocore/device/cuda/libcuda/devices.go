package libcuda

// #include "calls.h"
import "C"

import (
	"unsafe"

	"velocpy/gocore/device/cuda"
)

// devices is the driver's functions for devices and their primary contexts.
type devices struct{}

// Devices is how many devices the process sees: a slice of a GPU (MIG) counts as one.
func (devices) Devices() (int, error) {
	var count C.int
	r := C.velocpy_devices(&count)
	return int(count), failure("cuDeviceGetCount", r)
}

// DeviceName is the vendor's name.
func (devices) DeviceName(device int) (string, error) {
	var name [256]C.char
	if err := failure("cuDeviceGetName", C.velocpy_device_name(C.int(device), &name[0], C.int(len(name)-1))); err != nil {
		return "", err
	}
	return C.GoString(&name[0]), nil
}

// DeviceUUID is the UUID of the GPU, or of its slice.
func (devices) DeviceUUID(device int) (uuid [16]byte, err error) {
	r := C.velocpy_device_uuid(C.int(device), (*C.uchar)(unsafe.Pointer(&uuid)))
	return uuid, failure("cuDeviceGetUuid", r)
}

// DeviceAttribute is one property of a device.
func (devices) DeviceAttribute(a cuda.Attribute, device int) (int, error) {
	var value C.int
	r := C.velocpy_device_attribute(C.int(a), C.int(device), &value)
	return int(value), failure("cuDeviceGetAttribute", r)
}

// RetainPrimary shares the context that PyTorch and CuPy use, and creates it if it does not exist.
func (devices) RetainPrimary(device int) (cuda.Context, error) {
	var context C.handle
	r := C.velocpy_retain_primary(C.int(device), &context)
	return cuda.Context(context), failure("cuDevicePrimaryCtxRetain", r)
}

// ReleasePrimary undoes one RetainPrimary.
func (devices) ReleasePrimary(device int) error {
	return failure("cuDevicePrimaryCtxRelease", C.velocpy_release_primary(C.int(device)))
}

// MemoryInfo is the device's free memory now, and its total.
func (devices) MemoryInfo(c cuda.Context) (free, total int64, err error) {
	var f, t C.size_t
	r := C.velocpy_memory_info(C.handle(c), &f, &t)
	return int64(f), int64(t), failure("cuMemGetInfo", r)
}
