package cuda

import (
	"errors"
	"fmt"

	"go.uber.org/atomic"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/device/topology"
)

// Device is one accelerator, on its primary context: the one that PyTorch and CuPy use, so that their addresses and streams are ours.
type Device struct {
	driver   Driver
	identity Identity
	place    device.Place
	context  Context
	module   Module
	kernels  kernels

	least, greatest int // priorities of streams

	lost   atomic.Error
	pins   pins
	marks  atomic.Uint64 // how many were made
	behind behind
	signs  events // of marks in the application's streams
	events events // of others
	timers events // of stamps
	pinned words
	mapped words // of the device's own memory

	waiters waiters
}

var _ device.Device = (*Device)(nil)

// Open opens the device with that ordinal. image holds the kernels, for all kinds of devices. It waits for the context if nobody
// in the process has created it yet.
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

// Name is how messages call the device.
func (d *Device) Name() string { return d.identity.String() }

// Place is where it hangs on the host, as the driver and the kernel say.
func (d *Device) Place() device.Place {
	return d.place
}

// Ordinal is its number among those that the process sees.
func (d *Device) Ordinal() int { return d.identity.Ordinal }

// Identity says more.
func (d *Device) Identity() Identity { return d.identity }

// Memory asks the driver; what other processes hold is not free.
func (d *Device) Memory() (free, total int64, err error) {
	if err := d.Lost(); err != nil {
		return 0, 0, err
	}
	free, total, err = d.driver.MemoryInfo(d.context)
	return free, total, d.check("free memory", err)
}

// Close gives back what the device holds itself: memory, events, kernels, its share of the context. After a loss there is
// nothing to give back but the share.
func (d *Device) Close() error {
	var failed []error
	for _, free := range []func() error{d.pinned.free, d.mapped.free, d.waiters.free, d.signs.free, d.events.free, d.timers.free, d.unpinAll, d.unloadKernels} {
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
