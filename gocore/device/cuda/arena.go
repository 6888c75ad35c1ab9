package cuda

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"go.uber.org/atomic"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
)

// The first piece is small, so that the first checkpoint does not wait long. Each further piece is as large as all before it together, up to a size
// from which larger ones gain nothing. In granules of 2 MiB, the size of all current devices: 64 MiB and 1 GiB.
const (
	firstPiece   = 32
	largestPiece = 512
)

// arena is a range of addresses whose first part is mapped to memory.
type arena struct {
	d           *Device
	base        Pointer
	reserved    int64
	granularity int64
	mapped      atomic.Int64

	mu     sync.Mutex // held by Grow and Shrink
	pieces []physical
}

// physical is one allocation, mapped after the previous one.
type physical struct {
	handle Memory
	bytes  int64
}

// Reserve takes microseconds, whatever the size.
func (d *Device) Reserve(bytes int64) (device.Arena, error) {
	a, err := d.reserve(bytes)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (d *Device) reserve(bytes int64) (*arena, error) {
	if err := d.Lost(); err != nil {
		return nil, err
	}
	if bytes <= 0 || bytes > math.MaxInt64/2 {
		return nil, fmt.Errorf("%s: reserving addresses for %s: %w", d.Name(), quantity.Exact(bytes), memory.ErrRange)
	}
	granularity, err := d.driver.Granularity(d.identity.Ordinal)
	if err != nil {
		return nil, d.check("granularity of memory", err)
	}
	a := &arena{d: d, granularity: granularity, reserved: (bytes + granularity - 1) / granularity * granularity}
	if a.base, err = d.driver.ReserveAddress(a.reserved, granularity); err != nil {
		return nil, d.check(fmt.Sprintf("reserving addresses for %s", quantity.Exact(a.reserved)), err)
	}
	return a, nil
}

func (a *arena) Base() device.Address { return a.base }
func (a *arena) Mapped() int64        { return a.mapped.Load() }

// Grow maps nothing if less than the driver's granularity is left below the limit.
func (a *arena) Grow(limit int64) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	mapped := a.mapped.Load()
	if err := a.d.Lost(); err != nil {
		return mapped, err
	}
	n := min(max(mapped, firstPiece*a.granularity), largestPiece*a.granularity, min(limit, a.reserved)-mapped)
	n -= n % a.granularity
	if n <= 0 {
		return mapped, nil
	}
	if err := a.add(n); err != nil {
		return mapped, a.d.check(fmt.Sprintf("%s more for the cache", quantity.Exact(n)), err)
	}
	return a.mapped.Add(n), nil
}

// add undoes its steps when it fails.
func (a *arena) add(n int64) error {
	driver, end := a.d.driver, a.base+Pointer(a.mapped.Load())
	handle, err := driver.CreateMemory(a.d.context, a.d.identity.Ordinal, n)
	if err != nil {
		return err
	}
	if err := driver.Map(end, n, handle); err != nil {
		return errors.Join(err, driver.ReleaseMemory(handle))
	}
	if err := driver.SetAccess(end, n, a.d.identity.Ordinal); err != nil {
		return errors.Join(err, driver.Unmap(end, n), driver.ReleaseMemory(handle))
	}
	a.pieces = append(a.pieces, physical{handle, n})
	return nil
}

// Shrink frees pieces from the end.
func (a *arena) Shrink(to int64) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.d.Lost(); err != nil {
		return a.mapped.Load(), err
	}
	for len(a.pieces) > 0 && a.mapped.Load() > max(to, 0) {
		if err := a.drop(); err != nil {
			return a.mapped.Load(), a.d.check("memory given back by the cache", err)
		}
	}
	return a.mapped.Load(), nil
}

// drop lowers mapped before it frees the memory of the last piece.
func (a *arena) drop() error {
	last := a.pieces[len(a.pieces)-1]
	a.pieces = a.pieces[:len(a.pieces)-1]
	end := a.mapped.Sub(last.bytes)
	if err := a.d.driver.Unmap(a.base+Pointer(end), last.bytes); err != nil {
		return err
	}
	return a.d.driver.ReleaseMemory(last.handle)
}

// Free frees memory and addresses. After a loss both are freed with the context.
func (a *arena) Free() error {
	if _, err := a.Shrink(0); err != nil {
		return err
	}
	return a.d.check("addresses given back", a.d.driver.FreeAddress(a.base, a.reserved))
}
