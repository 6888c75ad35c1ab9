package double

import (
	"bytes"
	"slices"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device/cuda"

	"golang.org/x/sys/unix"
)

// Fresh is the byte that fills new device memory.
const Fresh = 0xCB

// Purpose is the account of the memory of all doubles.
const Purpose = "double of the driver"

// place is a range of addresses that the double handed out. After it is freed it stays reserved and protected.
type place struct {
	span    Span
	mapping *memory.Mapping
	offset  int64 // of span in the mapping
	gpu     *gpu  // of Allocate
	chunks  []*chunk
	foreign bool
	freed   bool
}

// chunk is a part of a place that is mapped to memory.
type chunk struct {
	span   Span
	memory *physical
	access bool
}

// physical is an allocation of CreateMemory.
type physical struct {
	gpu              *gpu
	bytes            int64
	mapped, released bool
}

// virtualMemory is ranges of addresses, and the device memory that is mapped at them.
type virtualMemory struct {
	*state

	places   []*place
	memories map[cuda.Memory]*physical
}

func (vm *virtualMemory) newPlace(n, align int64) (*place, error) {
	m, err := memory.Map(Purpose, n+align)
	if err != nil {
		return nil, err
	}
	base := uintptr(m.Base())
	offset := int64(-base & uintptr(align-1))
	p := &place{span: span(base+uintptr(offset), n), mapping: m, offset: offset}
	if err := p.protect(p.span, unix.PROT_NONE); err != nil {
		_ = m.Unmap()
		return nil, err
	}
	vm.places = append(vm.places, p)
	return p, nil
}

func (p *place) view(s Span) []byte { return p.mapping.Bytes(p.offset+int64(s.At-p.span.At), s.Bytes) }

func (p *place) protect(s Span, how int) error { return unix.Mprotect(p.view(s), how) }

// open makes a range accessible and fills it.
func (p *place) open(s Span) error {
	if err := p.protect(s, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	fill := p.view(s)
	for n := copy(fill, bytes.Repeat([]byte{Fresh}, 4096)); n < len(fill); n *= 2 {
		copy(fill[n:], fill[:n])
	}
	return nil
}

// shut frees the pages of a range.
func (p *place) shut(s Span) {
	_ = unix.Madvise(p.view(s), unix.MADV_DONTNEED)
	_ = p.protect(s, unix.PROT_NONE)
}

// at finds the place that contains an address, freed or not.
func (vm *virtualMemory) at(a cuda.Pointer) *place {
	for _, p := range vm.places {
		if p.span.At <= a && a < p.span.end() {
			return p
		}
	}
	return nil
}

// reachable tells whether work may touch a range now: it is not device memory, or all of it is mapped and accessible.
func (vm *virtualMemory) reachable(s Span) bool {
	p := vm.at(s.At)
	if p == nil || s.Bytes == 0 {
		return true
	}
	next := s.At
	for _, c := range p.chunks {
		if c.access && c.span.At <= next && next < c.span.end() {
			next = c.span.end()
		}
	}
	return next >= s.end()
}

// pinnedOrDevice tells whether a kernel may touch a range: device memory, or pinned host memory, in any number of pieces.
func (vm *virtualMemory) pinnedOrDevice(s Span) bool {
	if s.Bytes == 0 || vm.at(s.At) != nil || vm.cfg.Attributes[cuda.ReadsPageable] != 0 {
		return true
	}
	next := s.At
	for more := true; more && next < s.end(); {
		more = false
		for _, p := range vm.pinned.pins {
			if p.span.At <= next && next < p.span.end() {
				next, more = p.span.end(), true
			}
		}
	}
	return next >= s.end()
}

// partly tells whether a part of a range is mapped.
func (p *place) partly(s Span) bool {
	return slices.ContainsFunc(p.chunks, func(c *chunk) bool { return c.span.meets(s) })
}

// gone is called when a range's memory is freed.
func (vm *virtualMemory) gone(call string, s Span) {
	vm.queues.taken(call, s)
	for _, open := range vm.queues.watch.forget(s) {
		vm.checks.wrong("%s of %v while nobody has waited for %s", call, s, open)
	}
}

// Granularity implements cuda.Driver.
func (vm *virtualMemory) Granularity(number int) (int64, error) {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	_, err := vm.devices.device("Granularity", number)
	return vm.cfg.Granularity, err
}

func (vm *virtualMemory) grained(n int64) bool { return n > 0 && n%vm.cfg.Granularity == 0 }

// ReserveAddress implements cuda.Driver.
func (vm *virtualMemory) ReserveAddress(n, align int64) (cuda.Pointer, error) {
	const call = "ReserveAddress"
	vm.mu.Lock()
	defer vm.mu.Unlock()
	if err := vm.enter(call); err != nil {
		return 0, err
	}
	if !vm.grained(n) || align < 0 || align&(align-1) != 0 {
		return 0, fail(call, cuda.InvalidValue)
	}
	p, err := vm.newPlace(n, max(align, vm.cfg.Granularity))
	if err != nil {
		return 0, fail(call, cuda.OutOfMemory)
	}
	return p.span.At, nil
}

// FreeAddress implements cuda.Driver.
func (vm *virtualMemory) FreeAddress(at cuda.Pointer, n int64) error {
	const call = "FreeAddress"
	vm.mu.Lock()
	defer vm.mu.Unlock()
	if err := vm.enter(call); err != nil {
		return err
	}
	p := vm.at(at)
	if p == nil || p.freed || p.foreign || p.span != span(at, n) {
		vm.checks.wrong("%s of %v, which is no reservation", call, span(at, n))
		return fail(call, cuda.InvalidValue)
	}
	if len(p.chunks) > 0 {
		vm.checks.wrong("%s of %v, of which something is mapped", call, p.span)
		return fail(call, cuda.InvalidValue)
	}
	vm.gone(call, p.span)
	p.freed = true
	return nil
}

// CreateMemory implements cuda.Driver.
func (vm *virtualMemory) CreateMemory(c cuda.Context, number int, n int64) (cuda.Memory, error) {
	const call = "CreateMemory"
	vm.mu.Lock()
	defer vm.mu.Unlock()
	g, err := vm.within(call, c)
	if err != nil {
		return 0, err
	}
	if g.number != number || !vm.grained(n) {
		return 0, fail(call, cuda.InvalidValue)
	}
	if n > vm.devices.free(g) {
		return 0, fail(call, cuda.OutOfMemory)
	}
	g.used += n
	h := cuda.Memory(vm.handle())
	vm.memories[h] = &physical{gpu: g, bytes: n}
	return h, nil
}

// ReleaseMemory implements cuda.Driver. A mapping, and its memory, stays until Unmap.
func (vm *virtualMemory) ReleaseMemory(h cuda.Memory) error {
	const call = "ReleaseMemory"
	vm.mu.Lock()
	defer vm.mu.Unlock()
	m, err := vm.memory(call, h)
	if err != nil {
		return err
	}
	m.released = true
	m.drop()
	return nil
}

func (vm *virtualMemory) memory(call string, h cuda.Memory) (*physical, error) {
	m := vm.memories[h]
	if m == nil || m.released {
		vm.checks.calls[call]++
		vm.checks.wrong("%s of memory %#x, which was released or never was", call, uintptr(h))
		return nil, fail(call, cuda.InvalidHandle)
	}
	vm.checks.calls[call]++
	return m, vm.faults.failing(call, m.gpu)
}

func (m *physical) drop() {
	if m.released && !m.mapped {
		m.gpu.used -= m.bytes
	}
}

// Map implements cuda.Driver.
func (vm *virtualMemory) Map(at cuda.Pointer, n int64, h cuda.Memory) error {
	const call = "Map"
	vm.mu.Lock()
	defer vm.mu.Unlock()
	m, err := vm.memory(call, h)
	if err != nil {
		return err
	}
	s, p := span(at, n), vm.at(at)
	if n < m.bytes {
		return fail(call, cuda.NotSupported)
	}
	if n != m.bytes || m.mapped || p == nil || p.freed || p.foreign || !p.span.holds(s) || int64(at-p.span.At)%vm.cfg.Granularity != 0 {
		return fail(call, cuda.InvalidValue)
	}
	if p.partly(s) {
		return fail(call, cuda.InvalidValue)
	}
	m.mapped = true
	p.chunks = append(p.chunks, &chunk{span: s, memory: m})
	slices.SortFunc(p.chunks, func(a, b *chunk) int { return int(int64(a.span.At) - int64(b.span.At)) })
	return nil
}

// mapped finds the chunks that exactly cover a range.
func (vm *virtualMemory) mapped(call string, s Span) (*place, []*chunk, error) {
	vm.checks.calls[call]++
	p := vm.at(s.At)
	if p == nil || p.freed || p.foreign {
		return nil, nil, fail(call, cuda.InvalidValue)
	}
	var found []*chunk
	next := s.At
	for _, c := range p.chunks {
		if c.span.At == next && c.span.end() <= s.end() {
			found, next = append(found, c), c.span.end()
		}
	}
	if len(found) == 0 || next != s.end() {
		return nil, nil, fail(call, cuda.InvalidValue)
	}
	return p, found, vm.faults.failing(call, found[0].memory.gpu)
}

// Unmap implements cuda.Driver, for one or several whole mappings.
func (vm *virtualMemory) Unmap(at cuda.Pointer, n int64) error {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	p, found, err := vm.mapped("Unmap", span(at, n))
	if err != nil {
		return err
	}
	vm.gone("Unmap", span(at, n))
	for _, c := range found {
		p.shut(c.span)
		c.memory.mapped = false
		c.memory.drop()
	}
	p.chunks = slices.DeleteFunc(p.chunks, func(c *chunk) bool { return slices.Contains(found, c) })
	return nil
}

// SetAccess implements cuda.Driver, for one or several whole mappings.
func (vm *virtualMemory) SetAccess(at cuda.Pointer, n int64, number int) error {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	p, found, err := vm.mapped("SetAccess", span(at, n))
	if err != nil {
		return err
	}
	if number < 0 || number >= len(vm.gpus) {
		return fail("SetAccess", cuda.InvalidDevice)
	}
	for _, c := range found {
		if c.access {
			continue
		}
		if err := p.open(c.span); err != nil {
			return fail("SetAccess", cuda.OutOfMemory)
		}
		c.access = true
	}
	return nil
}

// pageBytes is the unit of memory protection.
const pageBytes = 4096

// Allocate gives device memory to the application, for its arrays.
func (vm *virtualMemory) Allocate(device int, n int64) (cuda.Pointer, error) {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	g := vm.gpus[device]
	if n <= 0 || n > vm.devices.free(g) {
		return 0, fail("Allocate", cuda.OutOfMemory)
	}
	n = (n + pageBytes - 1) &^ (pageBytes - 1)
	p, err := vm.newPlace(n, pageBytes)
	if err != nil {
		return 0, fail("Allocate", cuda.OutOfMemory)
	}
	if err := p.open(p.span); err != nil {
		return 0, fail("Allocate", cuda.OutOfMemory)
	}
	p.gpu, p.foreign = g, true
	p.chunks = []*chunk{{span: p.span, access: true}}
	g.used += n
	return p.span.At, nil
}

// Deallocate frees an application's memory. Later work that touches it is misuse.
func (vm *virtualMemory) Deallocate(at cuda.Pointer) {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	p := vm.at(at)
	if p == nil || !p.foreign || p.freed {
		vm.checks.wrong("Deallocate of %#x", at)
		return
	}
	vm.gone("Deallocate", p.span)
	p.shut(p.span)
	p.chunks, p.freed = nil, true
	p.gpu.used -= p.span.Bytes
}

// Bytes is a view of memory that is accessible now: an array of the application, or a slot of a cache. The caller must have waited for the work that
// writes it.
func (vm *virtualMemory) Bytes(at cuda.Pointer, n int64) []byte {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	p := vm.at(at)
	if p == nil || !p.span.holds(span(at, n)) || !vm.reachable(span(at, n)) {
		return nil
	}
	return p.view(span(at, n))
}

// bytesAt is a view of any memory of the process.
func bytesAt(s Span) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&s.At))), s.Bytes)
}
