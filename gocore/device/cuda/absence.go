package cuda

import (
	"fmt"

	"velocpy/gocore/device"
)

// Reasons why there is no driver. Each is a device.ErrUnavailable.
var (
	ErrNoLibrary  = fmt.Errorf("%w: the NVIDIA driver's library libcuda.so.1 is not there", device.ErrUnavailable)
	ErrUnloadable = fmt.Errorf("%w: the NVIDIA driver's library libcuda.so.1 cannot be loaded", device.ErrUnavailable)
	ErrIncomplete = fmt.Errorf("%w: the NVIDIA driver lacks a function", device.ErrUnavailable)
	ErrOld        = fmt.Errorf("%w: the NVIDIA driver is too old", device.ErrUnavailable)
	ErrNoDevice   = fmt.Errorf("%w: the NVIDIA driver shows no GPU", device.ErrUnavailable)
	ErrRefused    = fmt.Errorf("%w: the NVIDIA driver does not start", device.ErrUnavailable)
)
