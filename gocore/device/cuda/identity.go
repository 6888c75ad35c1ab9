package cuda

import (
	"fmt"
	"strings"

	"velocpy/gocore/device"
)

// Identity identifies a device. Ordinals are the driver's, after CUDA_VISIBLE_DEVICES. Other tools know the device by its UUID and its PCI address.
type Identity struct {
	Ordinal      int
	Name         string
	UUID         string // "GPU-…", or "MIG-…" of a slice
	PCI          string // "00000000:1b:00.0"
	Major, Minor int    // compute capability
	Processors   int
	CopyEngines  int
	NUMANode     int  // of the nearest host memory; -1 if the machine has no nodes
	Slice        bool // a part of a GPU (MIG)

	maps          bool // can map memory in pieces
	readsPageable bool // can read all memory of the process
}

// String is the name of the device in messages.
func (i Identity) String() string { return fmt.Sprintf("cuda:%d (%s)", i.Ordinal, i.Name) }

// Identify describes one device. It creates no context.
func Identify(driver Driver, ordinal int) (Identity, error) {
	count, err := driver.Devices()
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("%w: %w", device.ErrUnavailable, err)
	case count == 0:
		return Identity{}, fmt.Errorf("%w: the process sees no GPU", device.ErrUnavailable)
	case ordinal < 0 || ordinal >= count:
		return Identity{}, fmt.Errorf("%w: there is no cuda:%d, the process sees cuda:0 to cuda:%d (CUDA_VISIBLE_DEVICES can hide some)",
			device.ErrUnavailable, ordinal, count-1)
	}
	return describe(driver, ordinal)
}

func describe(driver Driver, ordinal int) (Identity, error) {
	i := Identity{Ordinal: ordinal}
	var err error
	if i.Name, err = driver.DeviceName(ordinal); err != nil {
		return i, fmt.Errorf("cuda:%d: %w: %w", ordinal, device.ErrUnavailable, err)
	}
	uuid, err := driver.DeviceUUID(ordinal)
	if err != nil {
		return i, fmt.Errorf("%s: %w: %w", i, device.ErrUnavailable, err)
	}
	var domain, bus, slot, maps, pageable int
	for _, ask := range []struct {
		attribute Attribute
		into      *int
	}{
		{ComputeMajor, &i.Major}, {ComputeMinor, &i.Minor}, {Processors, &i.Processors}, {CopyEngines, &i.CopyEngines},
		{HostNUMANode, &i.NUMANode}, {PCIDomain, &domain}, {PCIBus, &bus}, {PCIDevice, &slot}, {SupportsVMM, &maps},
		{ReadsPageable, &pageable},
	} {
		if *ask.into, err = driver.DeviceAttribute(ask.attribute, ordinal); err != nil {
			return i, fmt.Errorf("%s: %w: %w", i, device.ErrUnavailable, err)
		}
	}
	i.maps, i.readsPageable = maps != 0, pageable != 0
	i.PCI = fmt.Sprintf("%08x:%02x:%02x.0", domain, bus, slot)
	i.Slice = strings.Contains(i.Name, " MIG ")
	i.UUID = spell(uuid, i.Slice)
	return i, nil
}

func spell(uuid [16]byte, slice bool) string {
	kind := "GPU"
	if slice {
		kind = "MIG"
	}
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
}

// oldestMajor is the oldest compute capability that the kernels are compiled for.
const oldestMajor = 8

// Usable says why a device cannot hold a cache; nil if it can.
func (i Identity) Usable() error {
	if i.Major < oldestMajor {
		return fmt.Errorf("%s: %w: its compute capability is %d.%d, and %d.0 is needed", i, device.ErrUnavailable, i.Major, i.Minor, oldestMajor)
	}
	if !i.maps {
		return fmt.Errorf("%s: %w: it cannot map memory piece by piece (in a virtual machine, a vGPU profile may forbid it)", i, device.ErrUnavailable)
	}
	return nil
}
