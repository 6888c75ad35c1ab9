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

// The names of the files with the kernels of the codec and of de-duplication. They lie beside that of the kernels, in builds that have them.
const (
	codecFile = "velocpy_codec.fatbin"
	dedupFile = "velocpy_dedup.fatbin"
)

// openDevice opens a CUDA device with the kernels in a file. The others are read when the device encodes, decodes or de-duplicates for the first time.
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
	d.UseDedup(func() ([]byte, error) { return vfs.ReadFile(filepath.Join(filepath.Dir(kernels), dedupFile)) })
	return d, nil
}
