//go:build !velocpy_double

package main

import (
	"fmt"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/libcuda"
)

// openDevice opens a CUDA device with the kernels in a file.
func openDevice(ordinal int, kernels string) (device.Device, error) {
	driver, err := libcuda.Open()
	if err != nil {
		return nil, err
	}
	image, err := vfs.ReadFile(kernels)
	if err != nil {
		return nil, fmt.Errorf("%w: the kernels cannot be read: %w", device.ErrUnavailable, err)
	}
	return cuda.Open(driver, ordinal, image)
}
