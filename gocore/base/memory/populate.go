package memory

import (
	"errors"
	"fmt"
	"unsafe"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// populateStep bounds one system call to one huge page. The call holds the lock of the process's address space, and a thread that
// maps memory, or starts a thread, waits for it: 15 ms with steps of 8 and 16 MiB, and eight threads beside one that registered.
const populateStep = hugePage

// Populate makes the pages of [off, off+n) resident and writable, so that a later first write does
// not fault. It changes no contents and may run beside any use of any part of the mapping, also of
// the same part. It costs some tenths of a second per GiB of new pages and little for resident ones. The
// error wraps the errno when memory runs out. Unmap must wait for it.
func (m *Mapping) Populate(off, n int64) error { return m.populate(off, n, bring) }

// bring makes the pages of at most one huge page present. The first word is touched before: its fault brings the huge page and takes the lock of
// this mapping alone, whereas the system call holds that of the address space while the kernel clears the page. Twelve threads touched 39 GB/s by
// faults alone and 33 by the system call alone. The call stays, for memory without huge pages.
func bring(p []byte) error {
	touch(p[:1], 1)
	return unix.Madvise(p, unix.MADV_POPULATE_WRITE)
}

// Discard gives the pages of [off, off+n) back, whole pages inside it alone: they read as zeroes afterwards and become resident when they are touched again. No device may
// have them pinned. The error wraps the errno.
func (m *Mapping) Discard(off, n int64) error {
	if !m.holds(off, n) {
		return fmt.Errorf("discard [%d, %d+%d) of %s: %w", off, off, n, m.purpose, ErrRange)
	}
	if m.gone.Load() {
		return fmt.Errorf("discard %s: %w", m.purpose, ErrUnmapped)
	}
	page := int64(unix.Getpagesize())
	first, end := (off+page-1)&^(page-1), (off+n)&^(page-1)
	if off+n == m.bytes {
		end = (off + n + page - 1) &^ (page - 1) // the last page is the mapping's alone
	}
	if first >= end {
		return nil
	}
	if err := unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(m.base, first)), end-first), unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("discard %s: %w", m.purpose, err)
	}
	return nil
}

func (m *Mapping) populate(off, n int64, advise func([]byte) error) error {
	if !m.holds(off, n) {
		return fmt.Errorf("populate [%d, %d+%d) of %s: %w", off, off, n, m.purpose, ErrRange)
	}
	page := int64(unix.Getpagesize())
	for end := off + n; off < end; {
		if m.gone.Load() {
			return fmt.Errorf("populate %s: %w", m.purpose, ErrUnmapped)
		}
		first := off &^ (page - 1)
		next := min(first+populateStep, end)
		p := unsafe.Slice((*byte)(unsafe.Add(m.base, first)), (next-first+page-1)&^(page-1))
		switch err := advise(p); {
		case err == nil:
			off = next
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // kernel before 5.14
			touch(p, page)
			off = next
		default:
			return fmt.Errorf("populate %s: %w", m.purpose, err)
		}
	}
	return nil
}

// touch writes to every page without changing it: adding zero atomically cannot undo what another
// goroutine stores in the same word meanwhile.
func touch(p []byte, page int64) {
	for i := int64(0); i < int64(len(p)); i += page {
		(*atomic.Int64)(unsafe.Pointer(&p[i])).Add(0)
	}
}
