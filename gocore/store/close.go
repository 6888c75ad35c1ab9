package store

import (
	"errors"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/pending"
)

// run is the loop of one worker: it carries out transfers until the store closes.
func (s *Store) run(c *workerPool) {
	w := worker{s: s, pool: c}
	for {
		all := s.take(&w)
		if len(all) == 0 {
			break
		}
		for n := joined(all); len(all) > 0; n = len(all) {
			results := w.carry(all[:n])
			s.done(&w, all[:n], results, n == len(all))
			for _, m := range results {
				m.unmap()
			}
			if all = all[n:]; len(all) > 0 {
				all[0].Begun(s.now())
			}
		}
	}
	w.free()
	s.workerEnded()
}

// take waits for transfers. It returns none when the store closes or the core has panicked. A core that has panicked may have lost track of which
// goroutines read which memory, so workers move nothing any more.
func (s *Store) take(w *worker) []*engine.Transfer {
	c := w.pool
	s.mu.Lock()
	defer s.leave()
	for !s.closing {
		if _, bad := safego.Poisoned(); bad {
			return nil
		}
		if x := c.next(s.eng, s.now()); x != nil {
			if s.deferSource(c, x) {
				continue
			}
			if c.device != nil {
				s.host.BeginTransfer()
			}
			all := s.batch(c, x)
			for _, x := range all {
				if s.usesDisk(x) {
					s.disk.Began(x)
				}
			}
			w.begin(len(all))
			return all
		}
		s.notify() // next may have found that a tier is full, and the waiting callers must learn it
		c.resting++
		c.wake.Wait()
		c.resting--
	}
	return nil
}

// done reports transfers that were carried out together. last: the worker has no more of those that it took.
func (s *Store) done(w *worker, all []*engine.Transfer, results []*moved, last bool) {
	c := w.pool
	s.mu.Lock()
	defer s.leave()
	if last {
		w.end()
	}
	if c.device != nil {
		s.host.EndTransfer()
	}
	now := s.now()
	engine.Together(now, all)
	for i, x := range all {
		s.takeResult(x, results[i])
		if s.disk != nil && s.disk.Commits(x, results[i].err) {
			s.disk.Commit(x, results[i].leaves)
			continue
		}
		given := x.Kind == engine.Load && c.device != nil && s.deferred.end(x, results[i])
		s.eng.Done(now, x, results[i].err)
		if s.usesDisk(x) {
			s.disk.Ended(x, results[i].err)
		}
		if x.Kind == engine.Spill && !s.isDurable() {
			s.countForRetention(x.Rec)
		}
		if given {
			s.wakeAll() // waits may be over
		}
	}
}

// takeResult takes over the results of a transfer. The bytes of a fetch go to the operation that requested them, unless it has ended. The lock is
// held.
func (s *Store) takeResult(x *engine.Transfer, m *moved) {
	switch x.Kind {
	case engine.Spill:
		b := x.Rec.Version
		if m.err == nil && pending.Of(b).Source.Abandoned() { // it must not replace a version that was written after it was given up
			m.err = borrow.ErrAbandoned
		}
		pending.Of(b).Source.Forget()
		b.Pending, b.Sums = nil, m.sums
	case engine.Fetch:
		if op := x.Restore.Notify.(*Op).does.(*restore); !op.over && m.err == nil {
			op.private, m.fetched = m.fetched, nil
		}
	}
}

// workerEnded counts a worker out. The last one closes the disk tier, and Close can end.
func (s *Store) workerEnded() {
	s.mu.Lock()
	s.workers--
	last := s.workers == 0
	s.mu.Unlock()
	var err, undone error
	if last {
		err, undone = s.closeDisk()
	}
	s.mu.Lock()
	defer s.leave()
	s.users--
	if !last {
		return
	}
	s.freed, s.freeErr, s.undone = true, err, undone
	if err != nil { // no data is lost: everything was synced before
		logring.Add(logring.Warning, "the disk tier was not closed as it should be: "+err.Error())
	}
	s.wakeAll()
	for _, f := range s.ended {
		safego.Go("the end of a store", f)
	}
	s.ended = nil
}

// closeDisk closes the disk tier after the commits in flight have landed. The lock is not held.
func (s *Store) closeDisk() (err, undone error) {
	if s.disk == nil {
		return nil, nil
	}
	return s.disk.Close()
}

// forgetAll drops the references to all that the store knew, so that the garbage collector can free it: handles of the store may live until the
// process exits. The lock is held.
func (s *Store) forgetAll() {
	for _, h := range s.histories {
		h.h.Each(func(r *engine.Record) { s.orphans.Release(r.ID, r.Version) })
		h.h = nil
	}
	unbegun := func(x *engine.Transfer) { // also of versions that are gone
		if x.Kind == engine.Spill {
			s.orphans.Release(x.Rec.ID, x.Rec.Version)
		}
	}
	s.eng.Unbegun(unbegun)
	for _, c := range s.pools {
		for x := range c.deferred.waiting {
			unbegun(x)
		}
		c.deferred = deferredSources{}
	}
	s.deferred.lent, s.deferred.suspects = nil, nil
	s.histories, s.layouts, s.eng = nil, checkpoint.NewLayouts(nil), engine.New(engine.Config{})
}

func (s *Store) free() {
	if s.pool != nil {
		s.pool.Close()
	}
	s.freeDevices()
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
