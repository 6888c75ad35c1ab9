package libcuda

// #include "open.h"
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"velocpy/gocore/device/cuda"
)

// Oldest is the oldest CUDA version whose driver suffices: the version that the kernels are compiled with.
const Oldest = 13000

var (
	opening sync.Mutex
	opened  *Driver
)

// Open opens and initialises the driver. Its errors are those of package cuda about an absent driver; the remedy follows the last colon of their
// texts. A failed call may be repeated; after success further calls cost nothing. It creates no context and allocates no GPU memory.
func Open() (*Driver, error) {
	opening.Lock()
	defer opening.Unlock()
	if opened != nil {
		return opened, nil
	}
	d, err := open()
	if err == nil {
		opened = d
	}
	return d, err
}

func open() (*Driver, error) {
	var number C.int
	text := make([]byte, 512)
	stage := C.velocpy_cuda_open(Oldest, (*C.char)(unsafe.Pointer(unsafe.SliceData(text))), C.size_t(len(text)), &number)
	detail, _, _ := strings.Cut(string(text), "\x00")
	switch stage {
	case C.VELOCPY_CUDA_OPEN:
		return visible(&Driver{version: int(number)})
	case C.VELOCPY_CUDA_NO_LIBRARY:
		return nil, fmt.Errorf("%w (%s): install the driver, 580 or later; in a container, start it with the GPUs (docker run --gpus all)",
			cuda.ErrNoLibrary, detail)
	case C.VELOCPY_CUDA_UNLOADABLE:
		return nil, fmt.Errorf("%w: %s: it must be the 64-bit library of the driver that is running; look at LD_LIBRARY_PATH", cuda.ErrUnloadable, detail)
	case C.VELOCPY_CUDA_NO_FUNCTION:
		return nil, fmt.Errorf("%w: %s: the library may be a stub or of another driver; install the driver, 580 or later, anew", cuda.ErrIncomplete, detail)
	case C.VELOCPY_CUDA_OLD:
		return nil, fmt.Errorf("%w: it knows CUDA %s, and %s is needed: install driver 580 or later", cuda.ErrOld, version(int(number)), version(Oldest))
	}
	return nil, refused(cuda.Code(number))
}

func version(number int) string { return fmt.Sprintf("%d.%d", number/1000, number%1000/10) }

// visible rejects a driver that was initialised but shows no device.
func visible(d *Driver) (*Driver, error) {
	count, err := d.Devices()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cuda.ErrRefused, err)
	}
	if count == 0 {
		return nil, noDevice()
	}
	return d, nil
}
