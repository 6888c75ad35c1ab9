package main

import (
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/topology"
	"velocpy/gocore/device/topology/nvml"
)

// linkRates asks the management library for the bandwidth of devices' links.
func linkRates(devices []device.Device) []float64 {
	source, err := nvml.Open()
	if err != nil {
		return nil // the rates that the kernel reports apply
	}
	defer func() { _ = source.Close() }() // no later call uses the source
	rates := make([]float64, len(devices))
	for i, d := range devices {
		if x, ok := d.(*cuda.Device); ok {
			rates[i] = topology.LinkOf(source, x.Identity().UUID, x.Identity().PCI)
		}
	}
	return rates
}
