package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
)

// slabs supplies the memory of a pool of words. Its calls are serialised.
type slabs interface {
	more(atLeast int) (block, error)
	free() error
}

// pinnedWords is how many words of pinned memory are allocated at a time. They suffice for the sums of 128 GiB in flight; pinning more memory may
// make the driver wait for the device.
const pinnedWords = 512 << 10

// pinnedSlabs are slabs of host memory that kernels can reach.
type pinnedSlabs struct {
	d   *Device
	all []unsafe.Pointer
}

func (p *pinnedSlabs) more(atLeast int) (block, error) {
	n := max(pinnedWords, atLeast)
	at, err := p.d.driver.AllocateHost(p.d.context, int64(n)*8)
	if err != nil {
		return block{}, p.d.check("pinned memory for checksums", err)
	}
	p.all = append(p.all, at)
	return block{uintptr(at), n}, nil
}

func (p *pinnedSlabs) free() error {
	var failed []error
	for _, at := range p.all {
		failed = append(failed, p.d.check("pinned memory given back", p.d.driver.FreeHost(p.d.context, at)))
	}
	p.all = nil
	return errors.Join(failed...)
}

// mappedReach is how many bytes of addresses are reserved for words on the device: for the sums of 8 TiB.
const mappedReach = 256 << 20

// mappedSlabs are slabs of device memory, each of the least size that can be mapped.
type mappedSlabs struct {
	d     *Device
	arena *arena
	full  error // the device had no more memory: later captures do not ask again
}

func (m *mappedSlabs) more(atLeast int) (block, error) {
	if m.full != nil {
		return block{}, m.full
	}
	slab, err := m.grow(int64(atLeast) * 8)
	if errors.Is(err, device.ErrMemory) {
		m.full = err
	}
	return slab, err
}

func (m *mappedSlabs) grow(atLeast int64) (block, error) {
	if m.arena == nil {
		arena, err := m.d.reserve(mappedReach)
		if err != nil {
			return block{}, err
		}
		m.arena = arena
	}
	before, grain := m.arena.Mapped(), m.arena.granularity
	after, err := m.arena.Grow(before + max((atLeast+grain-1)/grain, 1)*grain)
	if err != nil {
		return block{}, err
	}
	if after-before < max(atLeast, grain) {
		return block{}, fmt.Errorf("%s: %s for checksums: %w", m.d.Name(), quantity.Exact(atLeast), device.ErrMemory)
	}
	return block{m.arena.Base() + Pointer(before), int(after-before) / 8}, nil
}

func (m *mappedSlabs) free() error {
	if m.arena == nil {
		return nil
	}
	err := m.arena.Free()
	m.arena = nil
	return err
}
