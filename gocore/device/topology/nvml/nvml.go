// Package nvml is the topology according to NVIDIA's management library. Without the library, or a driver, Open says so and every other function
// returns an error: see forward for why that needs care.
package nvml

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "table.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"velocpy/gocore/device/topology"
)

const library = "libnvidia-ml.so.1"

var bound = sync.OnceValue(func() bool {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	return C.velocpy_nvml_bind(name) > 0
})

// shared is the only instance of the module: two of them would write the same variables of the module, each under its own lock.
var shared = sync.OnceValue(func() nvml.Interface { return nvml.New() })

// source is the library in use.
type source struct{ lib nvml.Interface }

// Open initialises the library. The error wraps topology.ErrUnknown.
func Open() (topology.Source, error) {
	if !bound() {
		return nil, fmt.Errorf("%w: %s is not installed; it comes with the driver", topology.ErrUnknown, library)
	}
	return open(shared())
}

func open(lib nvml.Interface) (topology.Source, error) {
	if code := lib.Init(); code != nvml.SUCCESS {
		return nil, unknown("begin", code)
	}
	return &source{lib}, nil
}

func unknown(what string, code nvml.Return) error {
	return fmt.Errorf("%w: %s: %s", topology.ErrUnknown, what, code.Error())
}

func (s *source) Close() error {
	if code := s.lib.Shutdown(); code != nvml.SUCCESS {
		return unknown("end", code)
	}
	return nil
}

func (s *source) Driver() (string, error) {
	version, code := s.lib.SystemGetDriverVersion()
	if code != nvml.SUCCESS {
		return "", unknown("driver version", code)
	}
	return version, nil
}

func (s *source) GPUs() ([]topology.GPU, error) {
	count, code := s.lib.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, unknown("number of GPUs", code)
	}
	gpus := make([]topology.GPU, 0, count)
	for i := range count {
		device, code := s.lib.DeviceGetHandleByIndex(i)
		if code != nvml.SUCCESS {
			return nil, unknown(fmt.Sprintf("GPU %d", i), code)
		}
		gpus = append(gpus, describe(device))
	}
	return gpus, nil
}

// describe queries all properties; refused ones stay unknown.
func describe(device nvml.Device) topology.GPU {
	g := topology.GPU{
		Generation: known(device.GetCurrPcieLinkGeneration()), Width: known(device.GetCurrPcieLinkWidth()),
		MostGeneration: known(device.GetMaxPcieLinkGeneration()), MostWidth: known(device.GetMaxPcieLinkWidth()),
		NUMA: known(device.GetNumaNodeId()), Free: -1, Total: -1,
	}
	g.UUID, _ = device.GetUUID()
	g.Name, _ = device.GetName()
	if pci, code := device.GetPciInfo(); code == nvml.SUCCESS {
		g.PCI = fmt.Sprintf("%08x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	}
	if memory, code := device.GetMemoryInfo(); code == nvml.SUCCESS {
		g.Free, g.Total = int64(memory.Free), int64(memory.Total)
	}
	return g
}

func known(n int, code nvml.Return) int {
	if code != nvml.SUCCESS {
		return -1
	}
	return n
}

// patience is how long one wait for faults lasts, in ms: the delay until Watch notices stop.
const patience = 500

func (s *source) Watch(stop <-chan struct{}, f func(topology.Fault)) error {
	set, code := s.lib.EventSetCreate()
	if code != nvml.SUCCESS {
		return unknown("watching for faults", code)
	}
	defer func() { _ = set.Free() }() // used by this goroutine only
	if err := s.register(set); err != nil {
		return err
	}
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		switch event, code := set.Wait(patience); code {
		case nvml.SUCCESS:
			uuid, _ := event.Device.GetUUID()
			f(topology.Fault{UUID: uuid, Code: event.EventData})
		case nvml.ERROR_TIMEOUT:
		default:
			return unknown("waiting for faults", code)
		}
	}
}

func (s *source) register(set nvml.EventSet) error {
	count, code := s.lib.DeviceGetCount()
	if code != nvml.SUCCESS {
		return unknown("number of GPUs", code)
	}
	for i := range count {
		if device, code := s.lib.DeviceGetHandleByIndex(i); code == nvml.SUCCESS {
			_ = device.RegisterEvents(nvml.EventTypeXidCriticalError, set) // a GPU that reports no events is not watched
		}
	}
	return nil
}
