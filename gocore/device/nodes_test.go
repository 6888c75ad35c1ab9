package device_test

import (
	"slices"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/device/hostdevice"
)

func TestNodes(t *testing.T) {
	for _, c := range []struct{ on, nodes []int }{
		{nil, nil},
		{[]int{1}, []int{1}},
		{[]int{1, 1}, []int{1}},
		{[]int{1, 0, 1}, []int{0, 1}},
		{[]int{-1, 2}, []int{2}},
	} {
		var devices []device.Device
		for _, node := range c.on {
			devices = append(devices, hostdevice.New(hostdevice.Options{Place: device.Place{Node: node}}))
		}
		if got := device.Nodes(devices); !slices.Equal(got, c.nodes) {
			t.Errorf("devices on %v: nodes %v", c.on, got)
		}
	}
}
