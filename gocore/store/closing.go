package store

import "velocpy/gocore/base/status"

// closing is the operation that ends when the store has been closed.
type closing struct {
	Op
	s *Store
}

// Close refuses further work at once. It returns an operation that ends when the transfers in flight have ended and the disk tier is closed. Waiting
// operations end with Closed. Memory of leases stays mapped until the last of them is released. Closing twice is allowed.
func (s *Store) Close(fd int32) *Op {
	s.Lock()
	defer s.Leave()
	op := &closing{Op: begun(s.Cache, fd), s: s}
	op.does = op
	first := !s.Closing
	s.Closing = true
	if first {
		s.unhookPoison()
		s.stopWatching()
		s.WakeAll()
		s.workers.Stop()
		for _, a := range s.Devices {
			a.Stop()
		}
		if s.Host != nil {
			s.Host.Stop()
		}
		if s.Disk != nil {
			s.Disk.Stop()
		}
	}
	s.Callers[&op.Op] = struct{}{}
	return &op.Op
}

// step is part of operation.
func (op *closing) step(out *Outcome) (status.Code, error) {
	s := op.s
	s.Lock()
	defer s.Leave()
	if !s.freed {
		return op.waits(s.Now())
	}
	op.end()
	out.Waited = op.waited
	err := s.Findings.TakeAll()
	if err == nil {
		err, s.undone = s.undone, nil
	}
	if err != nil {
		return status.CodeOf(err), err
	}
	return status.OK, nil
}
