//go:build !velocpy_double

package main

import (
	"fmt"
	"path/filepath"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/libcuda"
)

// codecFile is the name of the file with the codec's kernels. It lies beside that of the kernels, in builds that have it.
const codecFile = "velocpy_codec.fatbin"

// openDevice opens a CUDA device with the kernels in a file. Those of the codec are read when the device encodes or decodes for the first time.
func openDevice(ordinal int, kernels string) (device.Device, error) {
	driver, err := libcuda.Open()
	if err != nil {
		return nil, err
	}
	image, err := vfs.ReadFile(kernels)
	if err != nil {
		return nil, fmt.Errorf("%w: the kernels cannot be read: %w", device.ErrUnavailable, err)
	}
	d, err := cuda.Open(driver, ordinal, image)
	if err != nil {
		return nil, err
	}
	d.UseCodec(func() ([]byte, error) { return vfs.ReadFile(filepath.Join(filepath.Dir(kernels), codecFile)) })
	return d, nil
}
