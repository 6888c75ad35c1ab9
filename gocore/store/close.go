package store

import (
	"errors"

	"velocpy/gocore/engine"
	"velocpy/gocore/memory"
	"velocpy/gocore/status"
)

// Close refuses further work at once and returns an operation that ends when the transfers in flight have ended and the disk space
// is gone. Operations that wait end with Closed. Memory that leases show stays until the last of them is released. Closing twice is fine.
func (s *Store) Close(fd int32) *Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := &Op{s: s, kind: closeOp, fd: fd}
	first := !s.closing
	s.closing = true
	if first {
		s.unhookPoison()
		for other := range s.ops {
			other.signal()
		}
		for _, c := range s.work {
			c.Broadcast()
		}
		s.stopWarming()
	}
	s.ops[op] = struct{}{}
	return op
}

// run is one worker: it takes transfers until the store closes.
func (s *Store) run(d engine.Direction) {
	for {
		x := s.take(d)
		if x == nil {
			break
		}
		fetched, err := s.move(x)
		s.done(x, fetched, err)
	}
	s.retire()
}

// take waits for a transfer; nil when the store closes.
func (s *Store) take(d engine.Direction) *engine.Transfer {
	s.mu.Lock()
	defer s.leave()
	for !s.closing {
		if x := s.eng.Next(s.now(), d); x != nil {
			return x
		}
		s.settle() // Next may have found that a tier is full: those who wait for it must know
		s.resting[d]++
		s.work[d].Wait()
		s.resting[d]--
	}
	return nil
}

// done reports a transfer; what a fetch has brought goes to the operation that asked for it, if it still lives.
func (s *Store) done(x *engine.Transfer, fetched *memory.Mapping, err error) {
	s.mu.Lock()
	defer s.leave()
	if fetched != nil {
		if op := x.Restore.Notify.(*Op); op.over || err != nil {
			_ = fetched.Unmap() // mapped for this operation alone
		} else {
			op.private = fetched
		}
	}
	s.eng.Done(s.now(), x, err)
}

// retire counts a worker out; the last one clears the disk away and lets Close end.
func (s *Store) retire() {
	s.mu.Lock()
	s.workers--
	last := s.workers == 0
	s.mu.Unlock()
	if !last {
		s.drop()
		return
	}
	var err error
	if s.disk != nil {
		err = s.disk.Close()
	}
	s.mu.Lock()
	s.freeErr = err
	s.finish()
	s.mu.Unlock()
	s.drop()
}

// finish lets the operations of Close end.
func (s *Store) finish() {
	s.freed = true
	for op := range s.ops {
		op.signal()
	}
}

// hold counts a user of the memory in; drop counts it out, and the last one after Close gives the memory back.
func (s *Store) hold() { s.users++ }

func (s *Store) drop() {
	s.mu.Lock()
	s.users--
	last := s.closing && s.users == 0
	s.mu.Unlock()
	if last {
		s.free()
	}
}

func (s *Store) free() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.host != nil {
		s.freeErr = errors.Join(s.freeErr, s.host.Unmap())
	}
}

func (s *Store) unhookPoison() {
	if s.unhook != nil {
		s.unhook()
		s.unhook = nil
	}
}

// wakeEverybody runs when the core has panicked: whoever waits learns it from the next step.
func (s *Store) wakeEverybody() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for op := range s.ops {
		op.signal()
	}
}

var errClosed = status.New(status.Closed, "the store was closed")
