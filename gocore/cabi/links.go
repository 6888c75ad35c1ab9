package main

import (
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/topology"
	"velocpy/gocore/device/topology/nvml"
)

// linkRates asks the management library what the links of devices can carry.
func linkRates(devices []device.Device) []float64 {
	source, err := nvml.Open()
	if err != nil {
		return nil // the kernel's word stands
	}
	defer func() { _ = source.Close() }() // nothing of it is used any more
	rates := make([]float64, len(devices))
	for i, d := range devices {
		if x, ok := d.(*cuda.Device); ok {
			rates[i] = topology.LinkOf(source, x.Identity().UUID, x.Identity().PCI)
		}
	}
	return rates
}
