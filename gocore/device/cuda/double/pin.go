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

// pinnedMemory is the host memory that devices reach.
type pinnedMemory struct {
	*state

	pins  []*pin
	bytes int64 // of all pins
}

// Register implements cuda.Driver.
func (pm *pinnedMemory) Register(c cuda.Context, at unsafe.Pointer, n int64) error {
	const call = "Register"
	pm.mu.Lock()
	defer pm.mu.Unlock()
	if _, err := pm.within(call, c); err != nil {
		return err
	}
	if at == nil || n <= 0 {
		return fail(call, cuda.InvalidValue)
	}
	s := span(cuda.Pointer(at), n)
	if slices.ContainsFunc(pm.pins, func(p *pin) bool { return p.span.meets(s) }) {
		return fail(call, cuda.AlreadyRegistered)
	}
	return pm.addPin(call, &pin{span: s})
}

func (pm *pinnedMemory) addPin(call string, p *pin) error {
	if pm.cfg.Pinned != 0 && pm.bytes+p.span.Bytes > pm.cfg.Pinned {
		return fail(call, cuda.OutOfMemory)
	}
	pm.bytes += p.span.Bytes
	pm.pins = append(pm.pins, p)
	return nil
}

// Unregister implements cuda.Driver.
func (pm *pinnedMemory) Unregister(c cuda.Context, at unsafe.Pointer) error {
	return pm.unpin("Unregister", c, at, false, cuda.NotRegistered)
}

// AllocateHost implements cuda.Driver.
func (pm *pinnedMemory) AllocateHost(c cuda.Context, n int64) (unsafe.Pointer, error) {
	const call = "AllocateHost"
	pm.mu.Lock()
	defer pm.mu.Unlock()
	if _, err := pm.within(call, c); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, fail(call, cuda.InvalidValue)
	}
	m, err := memory.Map(Purpose, n)
	if err != nil {
		return nil, fail(call, cuda.OutOfMemory)
	}
	if err := pm.addPin(call, &pin{span: span(cuda.Pointer(m.Base()), n), mapping: m}); err != nil {
		_ = m.Unmap()
		return nil, err
	}
	return m.Base(), nil
}

// FreeHost implements cuda.Driver.
func (pm *pinnedMemory) FreeHost(c cuda.Context, at unsafe.Pointer) error {
	return pm.unpin("FreeHost", c, at, true, cuda.InvalidValue)
}

func (pm *pinnedMemory) unpin(call string, c cuda.Context, at unsafe.Pointer, allocated bool, otherwise cuda.Code) error {
	pm.mu.Lock()
	defer pm.mu.Unlock()
	if _, err := pm.within(call, c); err != nil {
		return err
	}
	i := slices.IndexFunc(pm.pins, func(p *pin) bool { return p.span.At == cuda.Pointer(at) && allocated == (p.mapping != nil) })
	if i < 0 {
		if slices.ContainsFunc(pm.pins, func(p *pin) bool { return p.span.meets(span(cuda.Pointer(at), 1)) }) {
			otherwise = cuda.InvalidValue
		}
		return fail(call, otherwise)
	}
	p := pm.pins[i]
	pm.virtual.gone(call, p.span)
	pm.pins = slices.Delete(pm.pins, i, i+1)
	pm.bytes -= p.span.Bytes
	if p.mapping != nil {
		_ = p.mapping.Unmap()
	}
	return nil
}
