package cuda

import (
	"errors"
	"fmt"

	"go.uber.org/atomic"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/kernel"
	"velocpy/gocore/device/topology"
)

// Device is one GPU, on its primary context. PyTorch and CuPy use the same context, so their addresses and streams are valid here.
type Device struct {
	driver   Driver
	identity Identity
	place    device.Place
	context  Context
	module   Module
	kernels  kernels
	codec    optional // kernels of the codec
	dedup    optional // … of de-duplication

	least, greatest int // priorities of streams

	lost       atomic.Error
	pins       pins
	eventCount atomic.Uint64 // number of events made
	behind     behind
	signs      events // for events in the application's streams
	events     events // for other events
	timers     events // for stamps
	pinned     words
	mapped     words // in device memory

	waiters waiters
}

var _ device.Device = (*Device)(nil)

// Open opens the device with that ordinal. image holds the kernels for all kinds of devices. It creates the context, and waits for that, if the
// process has none yet.
func Open(driver Driver, ordinal int, image []byte) (*Device, error) {
	identity, err := Identify(driver, ordinal)
	if err != nil {
		return nil, err
	}
	if err := identity.Usable(); err != nil {
		return nil, err
	}
	d := &Device{driver: driver, identity: identity}
	d.place = device.Place{Node: identity.NUMANode, LinkRate: topology.LinkAt(vfs.ReadFile, identity.PCI)}
	d.signs.d, d.events.d, d.events.blocking, d.timers.d, d.timers.timed, d.waiters.d = d, d, true, d, true, d
	d.codec = optional{d: d, of: "the codec", names: kernel.CodecNames(), absent: device.ErrCodec}
	d.dedup = optional{d: d, of: "de-duplication", names: kernel.DedupNames(), absent: device.ErrDedup}
	d.pinned.slabs, d.mapped.slabs = &pinnedSlabs{d: d}, &mappedSlabs{d: d}
	if d.context, err = driver.RetainPrimary(ordinal); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", identity, device.ErrUnavailable, err)
	}
	if err := d.start(image); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Device) start(image []byte) error {
	var err error
	if d.least, d.greatest, err = d.driver.StreamPriorities(d.context); err != nil {
		return d.check("priorities of streams", err)
	}
	if err := d.loadKernels(image); err != nil {
		return err
	}
	return d.pinned.grow()
}

// Name is the name of the device in messages.
func (d *Device) Name() string { return d.identity.String() }

// Place is where the device is attached to the host, according to the driver and the kernel.
func (d *Device) Place() device.Place {
	return d.place
}

// Ordinal is its number among the devices that the process sees.
func (d *Device) Ordinal() int { return d.identity.Ordinal }

// Identity describes the device in detail.
func (d *Device) Identity() Identity { return d.identity }

// Memory asks the driver; memory of other processes counts as used.
func (d *Device) Memory() (free, total int64, err error) {
	if err := d.Lost(); err != nil {
		return 0, 0, err
	}
	free, total, err = d.driver.MemoryInfo(d.context)
	return free, total, d.check("free memory", err)
}

// Close frees the memory, events and kernels of the device itself, and releases its reference to the context. After a loss only the reference is left
// to release.
func (d *Device) Close() error {
	var failed []error
	for _, free := range []func() error{d.pinned.free, d.mapped.free, d.waiters.free, d.signs.free, d.events.free, d.timers.free, d.unpinAll, d.dedup.unload, d.codec.unload, d.unloadKernels} {
		if d.Lost() == nil {
			failed = append(failed, free())
		}
	}
	if d.Lost() != nil {
		failed = nil
	}
	err := d.driver.ReleasePrimary(d.identity.Ordinal)
	var e *Error
	if errors.As(err, &e) && e.Code.Sticky() {
		err = nil
	}
	return errors.Join(append(failed, err)...)
}
