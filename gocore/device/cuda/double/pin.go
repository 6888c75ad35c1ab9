package double

import (
	"slices"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device/cuda"
)

// pin is a range of host memory that was registered, or allocated pinned.
type pin struct {
	span    Span
	mapping *memory.Mapping // of AllocateHost
}

// Register implements cuda.Driver.
func (d *Driver) Register(c cuda.Context, at unsafe.Pointer, n int64) error {
	const call = "Register"
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.within(call, c); err != nil {
		return err
	}
	if at == nil || n <= 0 {
		return fail(call, cuda.InvalidValue)
	}
	s := span(cuda.Pointer(at), n)
	if slices.ContainsFunc(d.pins, func(p *pin) bool { return p.span.meets(s) }) {
		return fail(call, cuda.AlreadyRegistered)
	}
	return d.addPin(call, &pin{span: s})
}

func (d *Driver) addPin(call string, p *pin) error {
	if d.cfg.Pinned != 0 && d.pinned+p.span.Bytes > d.cfg.Pinned {
		return fail(call, cuda.OutOfMemory)
	}
	d.pinned += p.span.Bytes
	d.pins = append(d.pins, p)
	return nil
}

// Unregister implements cuda.Driver.
func (d *Driver) Unregister(c cuda.Context, at unsafe.Pointer) error {
	return d.unpin("Unregister", c, at, false, cuda.NotRegistered)
}

// AllocateHost implements cuda.Driver.
func (d *Driver) AllocateHost(c cuda.Context, n int64) (unsafe.Pointer, error) {
	const call = "AllocateHost"
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.within(call, c); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, fail(call, cuda.InvalidValue)
	}
	m, err := memory.Map(Purpose, n)
	if err != nil {
		return nil, fail(call, cuda.OutOfMemory)
	}
	if err := d.addPin(call, &pin{span: span(cuda.Pointer(m.Base()), n), mapping: m}); err != nil {
		_ = m.Unmap()
		return nil, err
	}
	return m.Base(), nil
}

// FreeHost implements cuda.Driver.
func (d *Driver) FreeHost(c cuda.Context, at unsafe.Pointer) error {
	return d.unpin("FreeHost", c, at, true, cuda.InvalidValue)
}

func (d *Driver) unpin(call string, c cuda.Context, at unsafe.Pointer, allocated bool, otherwise cuda.Code) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.within(call, c); err != nil {
		return err
	}
	i := slices.IndexFunc(d.pins, func(p *pin) bool { return p.span.At == cuda.Pointer(at) && allocated == (p.mapping != nil) })
	if i < 0 {
		if slices.ContainsFunc(d.pins, func(p *pin) bool { return p.span.meets(span(cuda.Pointer(at), 1)) }) {
			otherwise = cuda.InvalidValue
		}
		return fail(call, otherwise)
	}
	p := d.pins[i]
	d.gone(call, p.span)
	d.pins = slices.Delete(d.pins, i, i+1)
	d.pinned -= p.span.Bytes
	if p.mapping != nil {
		_ = p.mapping.Unmap()
	}
	return nil
}
