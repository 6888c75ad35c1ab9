package libcuda

// #include "open.h"
import "C"

import (
	"fmt"

	"velocpy/gocore/device/cuda"
)

// refused says why cuInit failed, with a remedy.
func refused(code cuda.Code) error {
	if code == cuda.NoDevice || code == cuda.InvalidDevice && Hidden() != nil {
		return noDevice()
	}
	failed := failure("cuInit", C.int(code))
	if remedy, ok := remedies[code]; ok {
		return fmt.Errorf("%w: %w: %s", cuda.ErrRefused, failed, remedy)
	}
	return fmt.Errorf("%w: %w: see whether nvidia-smi works, and what the kernel's log says of NVRM", cuda.ErrRefused, failed)
}

var remedies = map[cuda.Code]string{
	cuda.NotInitialized:     "in a process forked from one that used CUDA it never starts: start processes by spawn or forkserver",
	cuda.StubLibrary:        "libcuda.so.1 is the toolkit's stub: take its folder out of LD_LIBRARY_PATH",
	cuda.DeviceUnavailable:  "another process has the GPU to itself (its compute mode is exclusive): wait for it, or change the mode with nvidia-smi -c",
	cuda.SystemNotReady:     "a GPU with NVSwitch needs the service nvidia-fabricmanager, of the driver's version",
	cuda.DriverMismatch:     "the library and the kernel's module are of two versions: load the new module, or restart the machine",
	cuda.CompatNotSupported: "a forward-compatibility library was found that this GPU does not support: take it out of LD_LIBRARY_PATH",
	cuda.NotPermitted:       "the process may not open /dev/nvidia*: look at its rights and at the container's devices",
}

// Hidden is the value of CUDA_VISIBLE_DEVICES that the driver sees; nil if it is not set.
func Hidden() *string {
	value := C.velocpy_cuda_visible_devices()
	if value == nil {
		return nil
	}
	text := C.GoString(value)
	return &text
}

func noDevice() error {
	switch list := Hidden(); {
	case list == nil:
		return fmt.Errorf("%w: see whether nvidia-smi lists one; in a container, start it with the GPUs (docker run --gpus all)", cuda.ErrNoDevice)
	case *list == "":
		return fmt.Errorf("%w: CUDA_VISIBLE_DEVICES is set to nothing, which hides all of them: unset it before the process starts", cuda.ErrNoDevice)
	default:
		return fmt.Errorf("%w: CUDA_VISIBLE_DEVICES is %q, which names none of this machine: nvidia-smi -L lists them", cuda.ErrNoDevice, *list)
	}
}
