package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"unsafe"

	"go.uber.org/atomic"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
)

// pins records the pinned ranges, so that no copy crosses a border: the driver refuses such a copy. Copies read the table without a lock; Pin and
// Unpin replace it.
type pins struct {
	mu    sync.Mutex // held while the table is replaced
	table atomic.Pointer[seams]
}

// seams are the pinned ranges in the order of their addresses.
type seams []pinned

type pinned struct {
	at    uintptr
	bytes int64
	by    pinner
}

// pinner says which device pinned a range, or is about to.
type pinner uint8

const (
	ours   pinner = iota
	theirs        // another device of the process, for all devices
)

func (p pinned) end() uintptr { return p.at + uintptr(p.bytes) }

var nothing seams

func (p *pins) current() *seams {
	if t := p.table.Load(); t != nil {
		return t
	}
	return &nothing
}

// after is the index of the first range that ends after an address.
func (s seams) after(at uintptr) int {
	return sort.Search(len(s), func(i int) bool { return s[i].end() > at })
}

// has tells whether an address is in a pinned range.
func (s seams) has(at uintptr) bool {
	i := s.after(at)
	return i < len(s) && s[i].at <= at
}

// whole is how many of n bytes at an address are in one pinned range, or in none.
func (s seams) whole(at uintptr, n int64) int64 {
	i := s.after(at)
	if i == len(s) {
		return n
	}
	border := s[i].at
	if border <= at {
		border = s[i].end()
	}
	return int64(min(uintptr(n), border-at))
}

// insert adds a range, or marks it as ours if it was another device's.
func (p *pins) insert(r pinned) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.assign(r, theirs, r.by) {
		return true
	}
	old := *p.current()
	i := old.after(r.at)
	if i < len(old) && old[i].at < r.end() {
		return false
	}
	table := slices.Insert(slices.Clone(old), i, r)
	p.table.Store(&table)
	return true
}

func (p *pins) remove(r pinned) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.current()
	i := old.index(r)
	if i < 0 {
		return false
	}
	table := slices.Delete(slices.Clone(old), i, i+1)
	p.table.Store(&table)
	return true
}

// assign changes the pinner of a range. The caller holds the lock.
func (p *pins) assign(r pinned, from, to pinner) bool {
	i := p.current().index(r)
	if i < 0 || (*p.current())[i].by != from {
		return false
	}
	table := slices.Clone(*p.current())
	table[i].by = to
	p.table.Store(&table)
	return true
}

// share records that another device pinned a range.
func (p *pins) share(r pinned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.assign(r, ours, theirs)
}

// index is the index of a range, or -1.
func (s seams) index(r pinned) int {
	return slices.IndexFunc(s, func(x pinned) bool { return x.at == r.at && x.bytes == r.bytes })
}

// Pin takes 15 ms per GiB of touched huge pages. Copies of the range may run meanwhile. The table has the border before the memory is pinned, since a
// copy that crosses it fails from then on. A range that another device of the process has pinned counts as pinned for this one, too. The other device
// must keep it pinned as long as this one uses it.
func (d *Device) Pin(m *memory.Mapping, off, n int64) error {
	at, r, err := d.pinnable(m, off, n)
	if err != nil {
		return err
	}
	if !d.pins.insert(r) {
		return fmt.Errorf("%s: pinning %s: %w: some of them are pinned already", d.Name(), quantity.Exact(n), device.ErrPinning)
	}
	err = d.driver.Register(d.context, at, n)
	if err == nil {
		return nil
	}
	if Is(err, AlreadyRegistered) { // the driver pins for all devices
		d.pins.share(r)
		return nil
	}
	d.pins.remove(r)
	var e *Error
	if errors.As(err, &e) && e.Code.Sticky() {
		return d.lose("pinning", err)
	}
	return fmt.Errorf("%s: pinning %s: %w: %w (limits of locked memory and of the cgroup count)", d.Name(), quantity.Exact(n), device.ErrPinning, err)
}

// Border implements device.Device.
func (d *Device) Border(m *memory.Mapping, off, n int64) error {
	_, r, err := d.pinnable(m, off, n)
	if err != nil {
		return err
	}
	if r.by = theirs; !d.pins.insert(r) {
		return fmt.Errorf("%s: a border around %s: %w: some of them are pinned already", d.Name(), quantity.Exact(n), device.ErrPinning)
	}
	return nil
}

// Unpin takes exactly the range of one Pin.
func (d *Device) Unpin(m *memory.Mapping, off, n int64) error {
	at, r, err := d.pinnable(m, off, n)
	if err != nil {
		return err
	}
	table := *d.pins.current()
	i := table.index(r)
	if i < 0 {
		return fmt.Errorf("%s: unpinning %s: %w: they were not pinned as one", d.Name(), quantity.Exact(n), device.ErrPinning)
	}
	if table[i].by == ours {
		err = d.driver.Unregister(d.context, at)
	}
	d.pins.remove(r)
	return d.check("unpinning", err)
}

func (d *Device) pinnable(m *memory.Mapping, off, n int64) (unsafe.Pointer, pinned, error) {
	if err := d.Lost(); err != nil {
		return nil, pinned{}, err
	}
	p := m.Bytes(off, n)
	if len(p) == 0 {
		return nil, pinned{}, fmt.Errorf("%s: pinning [%d, %d+%d): %w: %w", d.Name(), off, off, n, device.ErrPinning, memory.ErrRange)
	}
	at := unsafe.Pointer(unsafe.SliceData(p))
	return at, pinned{at: uintptr(at), bytes: n}, nil
}

// unpinAll unpins the remaining ranges. Their addresses come from mappings that still exist.
func (d *Device) unpinAll() error {
	var failed []error
	for _, r := range *d.pins.current() {
		if r.by == ours {
			failed = append(failed, d.check("unpinning", d.driver.Unregister(d.context, place(r.at))))
		}
		d.pins.remove(r)
	}
	return errors.Join(failed...)
}

// place converts an address that the host can reach back to a pointer. The address is outside the Go heap.
func place(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
