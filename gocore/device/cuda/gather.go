package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/kernel"
	"velocpy/gocore/model"
)

// plans is a pool of memory for the preparation of launches.
var plans = sync.Pool{New: func() any { return new(kernel.Plan) }}

// planned launches the kernels that prepare plans.
func (l *lane) planned(functions kernels, prepare func(*kernel.Plan)) error {
	plan := plans.Get().(*kernel.Plan)
	defer plans.Put(plan)
	plan.Reset()
	prepare(plan)
	return l.launch(functions, plan)
}

// Gather copies pieces of pageable memory first, since their sums are computed from the slot.
func (l *lane) Gather(pieces []device.Piece, withSums bool) (device.Sums, error) {
	if err := l.ready(pieces); err != nil {
		return nil, err
	}
	staged := hostBytes(pieces) > 0
	pieces, release, err := l.brought(pieces)
	if err != nil {
		return nil, err
	}
	if !withSums {
		return nil, errors.Join(l.gather(pieces, staged), release())
	}
	s, err := l.summed(pieces, false, func(p *kernel.Plan, at device.Address) { p.Gather(pieces, at) })
	if err = errors.Join(err, release()); err != nil {
		return nil, err
	}
	return s, nil
}

// gather uses the copy engine for a single contiguous piece, and for those that it brings over the link sooner than a kernel.
func (l *lane) gather(pieces []device.Piece, staged bool) error {
	if only := single(pieces); only != nil {
		return l.copy(only.Slot, uintptr(only.Mem.Base), only.Bytes)
	}
	rest, err := l.overLink(pieces, staged, func(p *device.Piece) device.Move {
		return device.Move{To: p.Slot, From: uintptr(p.Mem.Base), Bytes: p.Bytes}
	})
	if err != nil || len(rest) == 0 {
		return err
	}
	return l.planned(l.d.kernels, func(p *kernel.Plan) { p.Gather(rest, 0) })
}

// Scatter copies pieces of pageable memory last, since they make the caller wait.
func (l *lane) Scatter(pieces []device.Piece) error {
	if err := l.ready(pieces); err != nil {
		return err
	}
	if err := l.scatter(pieces); err != nil {
		return err
	}
	return l.toHost(pieces)
}

func (l *lane) scatter(pieces []device.Piece) error {
	if only := single(pieces); only != nil {
		return l.copy(uintptr(only.Mem.Base), only.Slot, only.Bytes)
	}
	rest, err := l.overLink(pieces, false, func(p *device.Piece) device.Move {
		return device.Move{To: uintptr(p.Mem.Base), From: p.Slot, Bytes: p.Bytes}
	})
	if err != nil || len(rest) == 0 {
		return err
	}
	return l.planned(l.d.kernels, func(p *kernel.Plan) { p.Scatter(rest) })
}

// The copy engine moves contiguous pieces over the link that are larger: it uses all of the link, and a kernel four fifths of it (H100). Where a call is for one copy, each leaves the
// engine idle for some 3 µs, and the host makes a call in 5; where it is for many, pieces of batchBytes come at nearly the rate of large ones (H200). Staged pieces are not larger than
// linkBytes: the driver would wait for a copy from host memory to host memory.
const (
	linkBytes  = stagedBytes
	batchBytes = 64 << 10
)

// overLink moves the large contiguous pieces of device memory whose slots are in host memory, and returns the others. move says how one is moved. staged: some pieces were staged.
func (l *lane) overLink(pieces []device.Piece, staged bool, move func(*device.Piece) device.Move) (rest []device.Piece, err error) {
	table, least := l.d.pins.current(), int64(linkBytes)
	if l.own && !staged {
		least = batchBytes
	}
	crosses := func(p *device.Piece) bool {
		return p.Bytes > least && !p.Host && p.Mem.Contiguous() && table.has(p.Slot) && !table.has(uintptr(p.Mem.Base))
	}
	if !slices.ContainsFunc(pieces, func(p device.Piece) bool { return crosses(&p) }) {
		return pieces, nil
	}
	moves := make([]device.Move, 0, len(pieces))
	for i := range pieces {
		if p := &pieces[i]; crosses(p) {
			moves = append(moves, move(p))
		} else {
			rest = append(rest, *p)
		}
	}
	return rest, l.copyAll(moves)
}

// Hash reads the slots once.
func (l *lane) Hash(pieces []device.Piece) (device.Sums, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	for i := range pieces {
		if pieces[i].Bytes < 0 {
			return nil, fmt.Errorf("%s: a slot of %s: %w", l.d.Name(), quantity.Exact(pieces[i].Bytes), model.ErrShape)
		}
	}
	return l.summed(pieces, true, func(p *kernel.Plan, at device.Address) { p.Hash(pieces, at) })
}

// ready tells whether the lane takes work now and the arrays are valid: a kernel with invalid arguments would lose the context.
func (l *lane) ready(pieces []device.Piece) error {
	for i := range pieces {
		if err := pieces[i].Mem.Check(pieces[i].Bytes); err != nil {
			return fmt.Errorf("%s: piece %d: %w", l.d.Name(), i, err)
		}
	}
	return l.open()
}

// summed runs kernels that write hashes. If some of the launches fail, the words of the others stay unused: no event tells when they have been
// written.
func (l *lane) summed(pieces []device.Piece, waited bool, prepare func(*kernel.Plan, device.Address)) (device.Sums, error) {
	s, err := l.d.sumsFor(pieces, waited)
	if err != nil {
		return nil, err
	}
	if err := l.planned(l.d.kernels, func(p *kernel.Plan) { prepare(p, s.address()) }); err != nil {
		return nil, err
	}
	return s, nil
}

// single is the only piece if it is contiguous in device memory; nil if there is none, several, or another kind.
func single(pieces []device.Piece) *device.Piece {
	var only *device.Piece
	for i := range pieces {
		p := &pieces[i]
		if p.Bytes <= 0 || p.Host {
			continue
		}
		if only != nil || !p.Mem.Contiguous() {
			return nil
		}
		only = p
	}
	return only
}
