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
	s.mu.Lock()
	defer s.leave()
	op := &closing{Op: begun(s.Cache, fd), s: s}
	op.does = op
	first := !s.closing
	s.closing = true
	if first {
		s.unhookPoison()
		s.stopWatching()
		s.wakeAll()
		for _, c := range s.pools {
			c.wake.Broadcast()
		}
		s.verifier.bell.Broadcast()
		for _, a := range s.deviceTiers {
			a.Stop()
		}
		if s.host != nil {
			s.host.Stop()
		}
		if s.disk != nil {
			s.disk.Stop()
		}
	}
	s.ops[&op.Op] = struct{}{}
	return &op.Op
}

// step is part of operation.
func (op *closing) step(out *Outcome) (status.Code, error) {
	s := op.s
	s.mu.Lock()
	defer s.leave()
	if !s.freed {
		return op.waits(s.now())
	}
	op.end()
	out.Waited = op.waited
	err := s.deferred.takeFinding(nil, false)
	if s.deferred.found = nil; err == nil {
		err, s.undone = s.undone, nil
	}
	if err != nil {
		return status.CodeOf(err), err
	}
	return status.OK, nil
}
