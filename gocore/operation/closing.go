package operation

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
)

// closing is the operation that ends when the store has been closed.
type closing struct {
	Op
	freed  func() bool
	undone func() error
}

// Close returns the operation that ends when the store has been closed. freed tells when that is, and undone, once, the error about what could not be made
// durable. Both are called with the lock held, as Close is.
func Close(s *cache.Cache, fd int32, freed func() bool, undone func() error) *Op {
	op := &closing{Op: begun(s, fd), freed: freed, undone: undone}
	op.does = op
	s.Callers[&op.Op] = struct{}{}
	return &op.Op
}

// step is part of operation.
func (op *closing) step(out *Outcome) (status.Code, error) {
	s := op.s
	s.Lock()
	defer s.Leave()
	if !op.freed() {
		return op.waits(s.Now())
	}
	op.end()
	out.Waited = op.waited
	err := s.Findings.TakeAll()
	if err == nil {
		err = op.undone()
	}
	if err != nil {
		return status.CodeOf(err), err
	}
	return status.OK, nil
}
