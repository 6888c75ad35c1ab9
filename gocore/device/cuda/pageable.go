package cuda

import (
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/copier"
)

// The driver may handle pageable memory in several ways: stage it, wait, or take it for pinned by another library and read it later. A few bytes,
// which come along with device arrays, are staged here. Then the caller does not wait, and the sources are free when a call returns. For more bytes
// the caller waits.

// stagedBytes is how many bytes a call stages without waiting.
const stagedBytes = 4 << 20

// slotAlign is the alignment of slots, and of staged pieces.
const slotAlign = 64

// hostBytes is the size of a stage for the pieces in pageable memory.
func hostBytes(pieces []device.Piece) int64 {
	total := int64(0)
	for i := range pieces {
		if p := &pieces[i]; p.Host && p.Bytes > 0 {
			total += (p.Bytes + slotAlign - 1) &^ (slotAlign - 1)
		}
	}
	return total
}

// brought returns the pieces with the pageable ones copied or staged, and a function to call after the work that reads them is queued.
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

// onStage copies pieces in pageable memory to pinned memory, which kernels can read.
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

// release frees a stage once all work queued in the lane has run.
func (l *lane) release(block block) error {
	m, err := l.recordEvent(false)
	if err != nil {
		return err
	}
	l.d.pinned.later(m, block)
	return nil
}

// fromHost fills the slots of pieces in pageable memory, and waits for the copies.
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

// toHost fills arrays in pageable memory. Contiguous arrays are complete when a later event passes, others when it returns.
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

// staged provides memory for the dense form of a piece. After a failure the memory stays mapped, since queued work may still touch it.
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

// run copies a piece between its array and the dense form.
func run(direction copier.Direction, p *device.Piece, stage unsafe.Pointer) {
	job := copier.NewJob(direction, []copier.Piece{{Slot: stage, Bytes: p.Bytes, Mem: p.Mem}}, copier.Options{})
	job.Run(0)
	job.Free()
}

// settle waits for all work in the lane.
func (l *lane) settle() error {
	m, err := l.recordEvent(true)
	if err != nil {
		return err
	}
	defer m.Drop()
	return m.Wait()
}
