package cuda

import (
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/copier"
)

// Pageable memory has no way of its own: the driver stages it, waits, or believes that it is pinned by somebody else and reads it
// later, all as it likes. A little of it, which is what comes with arrays of the device, is staged here, so that nobody waits and
// the sources are free when a call returns. Much of it waits.

// stagedBytes is how much a call stages without waiting.
const stagedBytes = 4 << 20

// slotAlign is what slots are multiples of, and pieces on the stage with them.
const slotAlign = 64

// hostBytes is how much a stage for the pieces in pageable memory takes.
func hostBytes(pieces []device.Piece) int64 {
	total := int64(0)
	for i := range pieces {
		if p := &pieces[i]; p.Host && p.Bytes > 0 {
			total += (p.Bytes + slotAlign - 1) &^ (slotAlign - 1)
		}
	}
	return total
}

// brought returns the pieces with none in pageable memory left to copy, and what is to be called behind the work that reads them.
func (l *lane) brought(pieces []device.Piece) ([]device.Piece, func() error, error) {
	nothingLeft := func() error { return nil }
	total := hostBytes(pieces)
	if total == 0 {
		return pieces, nothingLeft, nil
	}
	if total > stagedBytes {
		return pieces, nothingLeft, l.fromHost(pieces)
	}
	block, err := l.d.pinned.take(int(total / 8))
	if err != nil {
		return nil, nil, err
	}
	return onStage(pieces, block.onHost()), func() error { return l.release(block) }, nil
}

// onStage copies pieces in pageable memory to pinned memory, where they are pieces like others.
func onStage(pieces []device.Piece, block []uint64) []device.Piece {
	at := unsafe.Pointer(unsafe.SliceData(block))
	moved := make([]device.Piece, len(pieces))
	for i, p := range pieces {
		if p.Host && p.Bytes > 0 {
			run(copier.Gather, &p, at)
			p.Host, p.Mem = false, model.Strided{Base: at}
			at = unsafe.Add(at, (p.Bytes+slotAlign-1)&^(slotAlign-1))
		}
		moved[i] = p
	}
	return moved
}

// release gives a stage back once all that is in the lane has happened.
func (l *lane) release(block block) error {
	m, err := l.mark(false)
	if err != nil {
		return err
	}
	l.d.pinned.later(m, block)
	return nil
}

// fromHost fills the slots of pieces in pageable memory, and waits for it.
func (l *lane) fromHost(pieces []device.Piece) error {
	for i := range pieces {
		p := &pieces[i]
		if p.Bytes <= 0 || !p.Host {
			continue
		}
		fill := l.fromStrided
		if p.Mem.Contiguous() {
			fill = func(p *device.Piece) error { return l.copy(p.Slot, uintptr(p.Mem.Base), p.Bytes) }
		}
		if err := fill(p); err != nil {
			return err
		}
	}
	return l.settle()
}

func (l *lane) fromStrided(p *device.Piece) error {
	return l.staged(p, func(stage unsafe.Pointer) error {
		run(copier.Gather, p, stage)
		if err := l.copy(p.Slot, uintptr(stage), p.Bytes); err != nil {
			return err
		}
		return l.settle()
	})
}

// toHost fills arrays in pageable memory. Those that lie together are full when a mark behind passes, others when it returns.
func (l *lane) toHost(pieces []device.Piece) error {
	for i := range pieces {
		p := &pieces[i]
		if p.Bytes <= 0 || !p.Host {
			continue
		}
		fill := l.toStrided
		if p.Mem.Contiguous() {
			fill = func(p *device.Piece) error { return l.copy(uintptr(p.Mem.Base), p.Slot, p.Bytes) }
		}
		if err := fill(p); err != nil {
			return err
		}
	}
	return nil
}

func (l *lane) toStrided(p *device.Piece) error {
	return l.staged(p, func(stage unsafe.Pointer) error {
		if err := l.copy(uintptr(stage), p.Slot, p.Bytes); err != nil {
			return err
		}
		if err := l.settle(); err != nil {
			return err
		}
		run(copier.Scatter, p, stage)
		return nil
	})
}

// staged lends memory for the dense form of a piece. After a failure something queued may still touch it, so that it stays.
func (l *lane) staged(p *device.Piece, do func(stage unsafe.Pointer) error) error {
	m, err := memory.Map("staging of strided host arrays", p.Bytes)
	if err != nil {
		return err
	}
	if err := do(m.Base()); err != nil {
		return err
	}
	return m.Unmap()
}

// run moves a piece between its array and the dense form.
func run(direction copier.Direction, p *device.Piece, stage unsafe.Pointer) {
	job := copier.NewJob(direction, []copier.Piece{{Slot: stage, Bytes: p.Bytes, Mem: p.Mem}}, copier.Options{})
	job.Run(0)
	job.Free()
}

// settle waits for what is in the lane.
func (l *lane) settle() error {
	m, err := l.mark(true)
	if err != nil {
		return err
	}
	defer m.Drop()
	return m.Wait()
}
