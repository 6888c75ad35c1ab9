// Package memory makes the mappings that hold checkpoints: off the Go heap, and anonymous and private, except those of MapShared.
//
// The garbage collector neither scans nor counts them, so a cache of many GiB costs it nothing. The price is an explicit lifetime: the holder of a
// view must keep the mapping until the view is gone. No other package maps memory.
package memory

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/quantity"
)

var (
	// ErrUnmapped marks uses of a mapping after Unmap, including a second Unmap.
	ErrUnmapped = errors.New("mapping was already given back")
	// ErrRange marks offsets and lengths outside a mapping, and impossible sizes.
	ErrRange = errors.New("range outside the mapping")
)

// hugePage is the size from which on transparent huge pages are used.
const hugePage = 2 << 20

// Mapping is a range of zeroed memory, aligned to a page, and to 2 MiB if it is at least that large. Its methods may be called from any goroutine.
// Unmap must not run while its bytes are in use.
type Mapping struct {
	purpose string
	use     *atomic.Int64
	base    unsafe.Pointer
	bytes   int64
	whole   []byte // the range for munmap: base may be inside, at the border of a huge page
	gone    atomic.Bool
}

// empty is the base of mappings without bytes: a valid address that is never read.
var empty [64]byte

// Map reserves bytes of zeroed memory and accounts them to purpose. Pages become resident when they
// are first touched. Zero bytes are allowed. The error wraps the errno (ENOMEM).
func Map(purpose string, bytes int64) (*Mapping, error) {
	return mapped(purpose, bytes, (*Mapping).reserve)
}

// MapSparse is Map for memory of which few pages will be touched, more of it perhaps than the machine has. It uses no huge pages.
func MapSparse(purpose string, bytes int64) (*Mapping, error) {
	return mapped(purpose, bytes, (*Mapping).reserveSparse)
}

// MapShared is Map for memory that another process maps too, by the descriptor that it returns. The caller closes the descriptor.
func MapShared(purpose string, bytes int64) (m *Mapping, descriptor int, err error) {
	descriptor = -1
	m, err = mapped(purpose, bytes, func(m *Mapping) (err error) {
		descriptor, m.whole, err = reserveShared(int(m.bytes))
		m.base = unsafe.Pointer(unsafe.SliceData(m.whole))
		return err
	})
	return m, descriptor, err
}

func reserveShared(bytes int) (descriptor int, whole []byte, err error) {
	if descriptor, err = unix.MemfdCreate("velocpy", unix.MFD_CLOEXEC); err != nil {
		return -1, nil, err
	}
	if err = unix.Ftruncate(descriptor, int64(bytes)); err == nil {
		whole, err = unix.Mmap(descriptor, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return -1, nil, errors.Join(err, unix.Close(descriptor))
	}
	return descriptor, whole, nil
}

func mapped(purpose string, bytes int64, reserve func(*Mapping) error) (*Mapping, error) {
	if bytes < 0 || bytes > math.MaxInt-2*hugePage {
		return nil, fmt.Errorf("map %s for %s: %w", quantity.Exact(bytes), purpose, ErrRange)
	}
	m := &Mapping{purpose: purpose, bytes: bytes, base: unsafe.Pointer(&empty)}
	if bytes > 0 {
		if err := reserve(m); err != nil {
			return nil, fmt.Errorf("map %s for %s: %w", quantity.Exact(bytes), purpose, err)
		}
	}
	m.use = counter(purpose)
	m.use.Add(bytes)
	return m, nil
}

func (m *Mapping) reserve() error {
	length := int(m.bytes)
	if m.bytes >= hugePage {
		length += hugePage // so that it contains a 2 MiB border; untouched pages cost no memory
	}
	whole, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	m.whole = whole
	m.base = unsafe.Pointer(unsafe.SliceData(whole))
	if m.bytes >= hugePage {
		m.base = unsafe.Add(m.base, -uintptr(m.base)&(hugePage-1))
		// Advice: without huge pages everything works, only slower.
		_ = unix.Madvise(unsafe.Slice((*byte)(m.base), m.bytes), unix.MADV_HUGEPAGE)
	}
	return nil
}

// reserveSparse asks for memory that the kernel does not count before it is touched.
func (m *Mapping) reserveSparse() (err error) {
	m.whole, err = unix.Mmap(-1, 0, int(m.bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	m.base = unsafe.Pointer(unsafe.SliceData(m.whole))
	_ = unix.Madvise(m.whole, unix.MADV_NOHUGEPAGE) // a system without huge pages refuses the advice, and needs none
	return nil
}

// Base returns the address of byte 0; never nil.
func (m *Mapping) Base() unsafe.Pointer { return m.base }

// Size returns the number of bytes asked for.
func (m *Mapping) Size() int64 { return m.bytes }

// Bytes returns a view of n bytes from off, or nil if that range is not inside the mapping or Unmap was called. The view is valid until Unmap.
func (m *Mapping) Bytes(off, n int64) []byte {
	if !m.holds(off, n) || m.gone.Load() {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(m.base, off)), n)
}

func (m *Mapping) holds(off, n int64) bool {
	return off >= 0 && n >= 0 && off <= m.bytes && n <= m.bytes-off
}

// Unmap frees the memory. A second call returns ErrUnmapped and does nothing.
func (m *Mapping) Unmap() error {
	if m.gone.Swap(true) {
		return fmt.Errorf("unmap %s: %w", m.purpose, ErrUnmapped)
	}
	m.use.Sub(m.bytes)
	if m.whole == nil {
		return nil
	}
	if err := unix.Munmap(m.whole); err != nil {
		return fmt.Errorf("unmap %s: %w", m.purpose, err)
	}
	return nil
}

// Release frees the pages of memory of MapShared, for all processes that have it. The memory is zero then, and gets pages again when it is touched.
func (m *Mapping) Release() error { return unix.Madvise(m.whole, unix.MADV_REMOVE) }

var (
	purposesMu sync.Mutex
	purposes   = map[string]*atomic.Int64{}
)

func counter(purpose string) *atomic.Int64 {
	purposesMu.Lock()
	defer purposesMu.Unlock()
	c, ok := purposes[purpose]
	if !ok {
		c = atomic.NewInt64(0)
		purposes[purpose] = c
	}
	return c
}

// InUse returns the bytes mapped for purpose now.
func InUse(purpose string) int64 { return counter(purpose).Load() }

// Total returns the bytes mapped for all purposes now.
func Total() int64 {
	purposesMu.Lock()
	defer purposesMu.Unlock()
	var sum int64
	for _, c := range purposes {
		sum += c.Load()
	}
	return sum
}
