package main

/*
#include "velocpy_abi.h"
typedef const char veloc_const_char;
*/
import "C"

import (
	"encoding/json"
	"time"
	"unsafe"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/libcuda"
	"velocpy/gocore/device/faultlog"
	"velocpy/gocore/device/topology/nvml"
	"velocpy/gocore/doctor"
)

// faultDelay delays the start of the management library until a store has registered and mapped its memory, in its first seconds.
const faultDelay = 2 * time.Second

// faults is the process's log of device faults.
var faults = faultlog.New(nvml.Open, logring.Add, faultDelay)

// watchFaults logs the faults of a store's devices until end is called.
func watchFaults(devices []device.Device) (end func()) {
	var gpus []faultlog.GPU
	for _, d := range devices {
		if x, ok := d.(*cuda.Device); ok {
			id := x.Identity()
			gpus = append(gpus, faultlog.GPU{Name: x.Name(), UUID: id.UUID, PCI: id.PCI, Slice: id.Slice})
		}
	}
	return faults.Watch(gpus)
}

// doctorRoom is enough for a report of many GPUs. The caller must provide it before the examination: a second one would take as long again.
const doctorRoom = 1 << 20

//export veloc_doctor
func veloc_doctor(request *C.veloc_const_char, size C.int64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := need(unsafe.Pointer(length)); err != nil {
			return 0, err
		}
		text, err := bytesAt(request, size)
		if err != nil {
			return 0, err
		}
		q, err := doctor.ParseRequest(text)
		if err != nil {
			return 0, status.Wrap(status.Invalid, err, "nothing was looked at")
		}
		if capacity >= 0 && capacity < doctorRoom {
			*length = doctorRoom
			return status.OK, nil
		}
		reply, err := json.Marshal(doctor.Examine(thisMachine(q), q))
		if err != nil {
			return 0, err
		}
		return status.OK, give(string(reply), buf, capacity, length)
	})
}

func thisMachine(q doctor.Request) doctor.Machine {
	return doctor.Machine{
		Driver: func() (cuda.Driver, error) {
			driver, err := libcuda.Open()
			if err != nil {
				return nil, err // not a nil *Driver in an interface
			}
			return driver, nil
		},
		Topology: nvml.Open,
		Hidden:   libcuda.Hidden(),
		Kernels:  func() ([]byte, error) { return vfs.ReadFile(q.Kernels) },
		Limits:   doctor.ReadLimits(vfs.ReadFile),
	}
}
