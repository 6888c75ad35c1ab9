// Package borrow guards a caller's memory that a transfer reads or writes. The caller can take it back at any time; it then waits for one short piece
// of a copy, never for I/O.
package borrow

import (
	"errors"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/copier"
)

// ErrAbandoned is the error of a transfer whose caller took its memory back.
var ErrAbandoned = errors.New("the caller gave the checkpoint up")

// slice bounds how long one piece of a copy takes.
const slice = 25 * time.Millisecond

// Source is a checkpoint's regions in the caller's memory.
type Source struct {
	Regions []model.Region
	Ready   device.Event // of regions on a device: behind the work that fills them; nil: they are filled

	mu        sync.RWMutex // held while a goroutine accesses the caller's memory, shared by those of Beside; never during I/O
	abandoned atomic.Bool
}

// New guards regions. It keeps a copy of their description.
func New(regions []model.Region) *Source { return &Source{Regions: model.CloneRegions(regions)} }

// Forget drops the event behind which regions on a device are filled: no transfer will read them.
func (src *Source) Forget() {
	src.mu.Lock()
	defer src.mu.Unlock()
	src.dropReady()
}

// Filled is the event behind which regions on a device are filled, kept for the caller of this method; nil if they are filled already. No transfer
// accesses the memory while a caller waits for the event.
func (src *Source) Filled() device.Event {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.Ready == nil {
		return nil
	}
	return src.Ready.Keep()
}

// Pending is Filled, or nil if the event has passed or its device has failed.
func (src *Source) Pending() device.Event {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.Ready == nil {
		return nil
	}
	if passed, err := src.Ready.Passed(); passed || err != nil {
		return nil
	}
	return src.Ready.Keep()
}

func (src *Source) dropReady() {
	if src.Ready != nil {
		src.Ready.Drop()
		src.Ready = nil
	}
}

// Abandon gives the caller its memory back: when it returns no transfer accesses it, now or later. It waits for one piece of a copy, never for I/O.
func (src *Source) Abandon() {
	src.Refuse() // first: a copy in many pieces ends with the current piece
	src.mu.Lock()
	defer src.mu.Unlock()
	src.dropReady() // the transfer may never reach it
}

// Refuse makes every later piece fail. It does not wait for the one under way.
func (src *Source) Refuse() { src.abandoned.Store(true) }

// Abandoned tells whether the caller has its memory back, or waits for it.
func (src *Source) Abandoned() bool { return src.abandoned.Load() }

// Read runs one short piece of a copy that accesses the caller's memory.
func (src *Source) Read(piece func()) error {
	return src.During(func() error {
		piece()
		return nil
	})
}

// During runs work that accesses the caller's memory, unless the caller has it back. Long work checks Abandoned from time to time.
func (src *Source) During(work func() error) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.Abandoned() {
		return ErrAbandoned
	}
	return work()
}

// Beside is During for short work that may run beside other such work: it writes to a part of the caller's memory that no other work accesses.
func (src *Source) Beside(work func()) error {
	src.mu.RLock()
	defer src.mu.RUnlock()
	if src.Abandoned() {
		return ErrAbandoned
	}
	work()
	return nil
}

// Run runs a job that copies from or to the caller's memory, piece by piece.
func (src *Source) Run(job *copier.Job) error {
	for done := false; !done; {
		if err := src.Read(func() { done = job.Run(slice) }); err != nil {
			return err
		}
	}
	return nil
}
