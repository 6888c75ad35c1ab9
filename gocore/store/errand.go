package store

import (
	"sync"

	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
)

// errand is what somebody else does for an operation because it waits: for the caller's streams, and for copies to and from memory that the
// device does not reach by itself. Whatever belongs to the operation or its caller is touched through the gate, so that the
// operation can be given up while the errand still waits.
type errand struct {
	gate *borrow.Source

	mu   sync.Mutex
	over bool
	err  error
}

// send has work done behind a mark, if there is one, which is the errand's then. The caller is woken when it has ended.
func (op *Op) send(a *devicememory.Memory, behind device.Mark, work func(gate *borrow.Source) error) {
	e := &errand{gate: borrow.New(op.regions)}
	op.errand = e
	a.Go("device errand", func() {
		var err error
		if behind != nil {
			err = a.Wait(behind)
		}
		if err == nil {
			err = work(e.gate)
		}
		e.end(err)
		op.bell.ring()
	})
}

func (e *errand) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over, e.err = true, err
}

func (e *errand) ended() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over, e.err
}

// recall ends the operation's errand: when it returns, nothing is touched any more. It waits for one piece of a copy.
func (op *Op) recall() {
	if op.errand != nil {
		op.errand.gate.Abandon()
	}
}
