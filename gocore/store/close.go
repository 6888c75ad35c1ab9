package store

import (
	"errors"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

// workersEnded closes the disk tier when the last worker has ended, and Close can end. The lock is not held.
func (s *Store) workersEnded() {
	var err, undone error
	if s.Disk != nil {
		err, undone = s.Disk.Close() // after the commits in flight have landed
	}
	s.Lock()
	defer s.Leave()
	s.freed, s.freeErr, s.undone = true, err, undone
	if err != nil { // no data is lost: everything was synced before
		logring.Add(logring.Warning, "the disk tier was not closed as it should be: "+err.Error())
	}
	s.WakeAll()
	for _, f := range s.ended {
		safego.Go("the end of a store", f)
	}
	s.ended = nil
}

// forgetAll drops the references to all that the store knew, so that the garbage collector can free it: handles of the store may live until the
// process exits. The lock is held.
func (s *Store) forgetAll() {
	for _, h := range s.histories.byName {
		h.h.Each(func(r *engine.Record) { s.Orphans.Release(r.ID, r.Version) })
		h.h = nil
	}
	if s.workers != nil {
		s.workers.ForgetSources()
	}
	s.Findings.Clear()
	s.ForgetAnchors()
	s.histories.byName, s.Layouts, s.Engine = nil, checkpoint.NewLayouts(nil), engine.New(engine.Config{})
}

func (s *Store) free() {
	if s.Copiers != nil {
		s.Copiers.Close()
	}
	s.freeErr = errors.Join(s.freeErr, s.devices.free())
	if s.Host != nil {
		s.freeErr = errors.Join(s.freeErr, s.Host.Unmap())
	}
}

// Close refuses further work at once. It returns an operation that ends when the transfers in flight have ended and the disk tier is closed. Waiting
// operations end with Closed. Memory of leases stays mapped until the last of them is released. Closing twice is allowed.
func (s *Store) Close(fd int32) *operation.Op {
	s.Lock()
	defer s.Leave()
	first := !s.Closing
	s.Closing = true
	if first {
		s.unhook()
		s.devices.stopWatching()
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
	return operation.Close(s.Cache, fd, func() bool { return s.freed }, s.takeUndone)
}

// takeUndone returns the error about what did not become durable, once.
func (s *Store) takeUndone() (err error) {
	err, s.undone = s.undone, nil
	return err
}
