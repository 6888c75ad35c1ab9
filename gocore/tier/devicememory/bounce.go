package devicememory

import (
	"sync"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/numa"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/borrow"
)

// BounceBytes is the size of the bounce buffer.
const BounceBytes = 8 << 20

// bounceBuffer is host memory through which a device copies to and from memory that its kernels do not reach: host memory that is not pinned. It is pinned, where
// that is allowed, when it is first needed.
type bounceBuffer struct {
	device  device.Device
	run     Runner     // of the memory's own lane
	mu      sync.Mutex // held while the buffer is in use
	mapping *memory.Mapping
	pinned  bool
}

// open makes the buffer. Its lock is held.
func (b *bounceBuffer) open() error {
	if b.mapping != nil {
		return nil
	}
	x, err := memory.Map("bounce buffer", BounceBytes)
	if err != nil {
		return status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(int64(BounceBytes)))
	}
	numa.Place("a device's bounce buffer", x.Bytes(0, x.Size()), device.Nodes([]device.Device{b.device})...)
	b.mapping, b.pinned = x, b.device.Pin(x, 0, BounceBytes) == nil
	return nil
}

// Bounce returns the bounce buffer, and makes it if there is none yet.
func (b *bounceBuffer) Bounce() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	return b.mapping.Bytes(0, BounceBytes), nil
}

// through takes a region of the caller's through the buffer: move is given one part after the other, and the bytes of the buffer for it.
func (b *bounceBuffer) through(r *model.Region, move func(part []byte, mem model.Strided) error) error {
	return eachPart(r.Mem, r.Bytes, BounceBytes, func(mem model.Strided, n int64) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if err := b.open(); err != nil {
			return err
		}
		return move(b.mapping.Bytes(0, n), mem)
	})
}

// Fetch brings a region of the caller's to host memory in parts of at most one buffer and shows each to use, in their order.
func (b *bounceBuffer) Fetch(src *borrow.Source, r *model.Region, use func(part []byte) error) error {
	return b.through(r, func(part []byte, mem model.Strided) error {
		err := src.During(func() error {
			return b.run(func(lane device.Lane) error { return b.fill(lane, part, mem) })
		})
		if err != nil {
			return err
		}
		return use(part)
	})
}

// Deliver fills a region of the caller's from host memory, the same way.
func (b *bounceBuffer) Deliver(src *borrow.Source, r *model.Region, from []byte) error {
	return b.through(r, func(part []byte, mem model.Strided) error {
		return src.During(func() error {
			from = from[copy(part, from):]
			return b.run(func(lane device.Lane) error { return b.empty(lane, part, mem) })
		})
	})
}

// fill queues the copy of an array into a part of the buffer.
func (b *bounceBuffer) fill(lane device.Lane, part []byte, mem model.Strided) error {
	at, n := device.AddressOf(part), int64(len(part))
	if mem.Contiguous() {
		return lane.Copy(at, device.Address(mem.Base), n)
	}
	if !b.pinned {
		return errUnpinned
	}
	_, err := lane.Gather([]device.Piece{{Slot: at, Bytes: n, Mem: mem}}, false)
	return err
}

// empty queues the copy of a part of the buffer into an array.
func (b *bounceBuffer) empty(lane device.Lane, part []byte, mem model.Strided) error {
	at, n := device.AddressOf(part), int64(len(part))
	if mem.Contiguous() {
		return lane.Copy(device.Address(mem.Base), at, n)
	}
	if !b.pinned {
		return errUnpinned
	}
	return lane.Scatter([]device.Piece{{Slot: at, Bytes: n, Mem: mem}})
}

var errUnpinned = status.New(status.Unavailable, "no host memory can be pinned, which arrays on a device that do not lie together need: make them contiguous, or raise the limits of locked memory").
	AtTier(status.TierDevice)

// close gives the buffer back when the device has been closed.
func (b *bounceBuffer) close() error {
	if b.mapping == nil {
		return nil
	}
	return b.mapping.Unmap()
}

// eachPart calls f for parts of an array of at most so many bytes each, in the order of their bytes.
func eachPart(m model.Strided, bytes, most int64, f func(model.Strided, int64) error) error {
	if bytes == 0 {
		return nil
	}
	if m.Contiguous() {
		for off := int64(0); off < bytes; off += most {
			n := min(most, bytes-off)
			if err := f(model.Strided{Base: unsafe.Add(m.Base, off)}, n); err != nil {
				return err
			}
		}
		return nil
	}
	if bytes <= most {
		return f(m, bytes)
	}
	axis := 0
	for m.Shape[axis] == 1 {
		axis++
	}
	n, half := m.Shape[axis], m.Shape[axis]/2
	first, second := m, m
	first.Shape, second.Shape = append([]int64(nil), m.Shape...), append([]int64(nil), m.Shape...)
	first.Shape[axis], second.Shape[axis] = half, n-half
	second.Base = unsafe.Add(m.Base, half*m.Strides[axis])
	if err := eachPart(first, bytes/n*half, most, f); err != nil {
		return err
	}
	return eachPart(second, bytes/n*(n-half), most, f)
}
