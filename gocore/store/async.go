package store

import (
	"sync"

	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
)

// asyncJob is what somebody else does for an operation because it waits: for the caller's streams, and for copies to and from memory that the
// device does not reach by itself. Whatever belongs to the operation or its caller is touched through the gate, so that the
// operation can be given up while the errand still waits.
type asyncJob struct {
	gate *borrow.Source

	mu   sync.Mutex
	over bool
	err  error
}

// startAsync has work done behind a mark, if there is one, which is the errand's then. The caller is woken when it has ended.
func (op *Op) startAsync(a *devicememory.Memory, behind device.Mark, work func(gate *borrow.Source) error) {
	e := &asyncJob{gate: borrow.New(op.regions)}
	op.async = e
	a.Go("device errand", func() {
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

// abandonAsync ends the operation's errand: when it returns, nothing is touched any more. It waits for one piece of a copy.
func (op *Op) abandonAsync() {
	if op.async != nil {
		op.async.gate.Abandon()
	}
}
