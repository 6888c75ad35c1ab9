package store

import (
	"sync"

	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
)

// asyncJob is work that a separate goroutine does for an operation because the work waits. It waits for the caller's streams, or for copies to and
// from memory that the device cannot access. The goroutine accesses memory of the operation and of its caller through the gate only. The operation
// can therefore be given up while the job still waits.
type asyncJob struct {
	gate *borrow.Source

	mu   sync.Mutex
	over bool
	err  error
}

// startAsync runs work in a goroutine after the event behind, if it is not nil. The job takes over the event. The caller is notified when the job has
// ended.
func (op *Op) startAsync(a *devicememory.Memory, behind device.Event, work func(gate *borrow.Source) error) {
	e := &asyncJob{gate: borrow.New(op.regions)}
	op.async = e
	a.Go("device job", func() {
		var err error
		if behind != nil {
			err = a.Wait(behind)
		}
		if err == nil {
			err = work(e.gate)
		}
		e.end(err)
		op.notifier.notify()
	})
}

func (e *asyncJob) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over, e.err = true, err
}

func (e *asyncJob) ended() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over, e.err
}

// abandonAsync closes the gate of the operation's job. When it returns, the job accesses no memory of the operation or its caller any more. It waits
// for at most one piece of a copy.
func (op *Op) abandonAsync() {
	if op.async != nil {
		op.async.gate.Abandon()
	}
}
