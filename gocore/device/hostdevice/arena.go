package hostdevice

import (
	"errors"
	"fmt"
	"slices"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
)

// Errors of this implementation only.
var (
	ErrInUse   = errors.New("still in use")
	ErrAddress = errors.New("no such memory") // a real device would lose its context
)

// arena implements device.Arena. All of it is one mapping from the start; mapped is only a number.
type arena struct {
	dev     *Device
	mapping *memory.Mapping
	mapped  int64
	freed   bool
}

// Reserve implements device.Device.
func (d *Device) Reserve(bytes int64) (device.Arena, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("reserve %d bytes: %w", bytes, memory.ErrRange)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return nil, d.lost
	}
	m, err := memory.Map("device", bytes)
	if err != nil {
		return nil, fmt.Errorf("reserve: %w: %w", device.ErrMemory, err)
	}
	a := &arena{dev: d, mapping: m}
	d.arenas = append(d.arenas, a)
	return a, nil
}

// Base implements device.Arena.
func (a *arena) Base() device.Address { return device.Address(a.mapping.Base()) }

// Mapped implements device.Arena.
func (a *arena) Mapped() int64 {
	a.dev.mu.Lock()
	defer a.dev.mu.Unlock()
	return a.mapped
}

// Grow implements device.Arena.
func (a *arena) Grow(limit int64) (int64, error) {
	d := a.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil || a.freed {
		return a.mapped, a.unusable()
	}
	// As on a real device, memory comes in whole pieces, except that the last one of a reservation may be cut.
	n := min(d.opt.Piece, min(limit, a.mapping.Size())-a.mapped)
	if n <= 0 {
		return a.mapped, nil
	}
	if n > d.opt.Memory-d.used {
		return a.mapped, fmt.Errorf("grow by %d bytes: %w", n, device.ErrMemory)
	}
	d.used += n
	a.mapped += n
	return a.mapped, nil
}

func (a *arena) unusable() error {
	if a.dev.lost != nil {
		return a.dev.lost
	}
	return fmt.Errorf("an arena that was freed: %w", ErrAddress)
}

// Shrink implements device.Arena.
func (a *arena) Shrink(to int64) (int64, error) {
	d := a.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil || a.freed {
		return a.mapped, a.unusable()
	}
	for to = max(to, 0); a.mapped > to; {
		last := (a.mapped - 1) / d.opt.Piece * d.opt.Piece
		d.used -= a.mapped - last
		a.mapped = last
	}
	return a.mapped, nil
}

// Free implements device.Arena.
func (a *arena) Free() error {
	d := a.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.freed {
		return a.unusable()
	}
	a.freed = true
	d.used -= a.mapped
	a.mapped = 0
	d.arenas = slices.DeleteFunc(d.arenas, func(o *arena) bool { return o == a })
	return a.mapping.Unmap()
}

// check tells whether work may touch [at, at+n): it must be in one pinned range, in the mapped part of an arena, or in neither.
func (d *Device) check(at device.Address, n int64) error {
	to := at + device.Address(n)
	for _, a := range d.arenas {
		base, end := a.Base(), a.Base()+device.Address(a.mapping.Size())
		if at < end && base < to && (at < base || to > base+device.Address(a.mapped)) {
			return fmt.Errorf("[%#x, +%d): %w in the arena of %d bytes at %#x", at, n, ErrAddress, a.mapped, base)
		}
	}
	for _, p := range d.pins {
		if at < p.end() && p.at < to && (at < p.at || to > p.end()) {
			return fmt.Errorf("[%#x, +%d) crosses the border of pinned memory at %#x: %w", at, n, p.at, ErrAddress)
		}
	}
	return nil
}
