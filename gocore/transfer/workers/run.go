package workers

import (
	"errors"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/path"
	"velocpy/gocore/transfer/pending"
)

// run is the loop of one worker: it carries out transfers until the store closes.
func (s *Workers) run(c *workerPool) {
	w := worker{s: s, pool: c}
	for {
		all, n := s.take(&w)
		if len(all) == 0 {
			break
		}
		for ; len(all) > 0; n = len(all) {
			results := w.carry(all[:n])
			s.done(&w, all, n, results)
			for _, m := range results {
				m.Unmap()
			}
			all = all[n:]
		}
	}
	w.free()
	s.ended()
}

// take waits for transfers, and tells how many of them are carried out together: all, or all but the last. It returns none when the store closes or the core has
// panicked. A core that has panicked may have lost track of which goroutines read which memory, so workers move nothing any more.
func (s *Workers) take(w *worker) (all []*engine.Transfer, together int) {
	c := w.pool
	s.Lock()
	defer s.Leave()
	for !s.Closing {
		if _, bad := safego.Poisoned(); bad {
			return nil, 0
		}
		all, together, aside := s.obtain(c)
		if len(all) > 0 {
			if c.device != nil {
				s.Host.BeginTransfer()
			}
			for _, x := range all {
				if s.UsesDisk(x) {
					s.Disk.Began(x)
				}
			}
			w.begin(len(all))
			s.beginShare(w, all[0])
			return all, together
		}
		if aside {
			continue
		}
		s.Notify()        // next may have found that a tier is full, and the waiting callers must learn it
		if c.pending(s) { // an anchor was let go, while this worker did not count as one that rests
			continue
		}
		c.resting++
		c.wake.Wait()
		c.resting--
	}
	return nil, 0
}

// obtain takes the transfers that are carried out next. aside: it has put one aside instead, and there may be others. The lock is held.
func (s *Workers) obtain(c *workerPool) (all []*engine.Transfer, together int, aside bool) {
	if all, together = s.release(c); len(all) > 0 {
		return all, together, false
	}
	x := c.next(s.Engine, s.Now())
	if x == nil {
		return nil, 0, false
	}
	if s.setAside(c, x) {
		return nil, 0, true
	}
	all, together = s.batch(c, x)
	return all, together, false
}

// setAside puts a transfer aside if it has to wait for its source or for others.
func (s *Workers) setAside(c *workerPool, x *engine.Transfer) bool {
	return s.deferSource(c, x) || s.heldRuns.hold(c, x)
}

// done reports the first n transfers, which were carried out together, of those that the worker has taken. The others begin.
func (s *Workers) done(w *worker, taken []*engine.Transfer, n int, results []*path.Result) {
	c, all := w.pool, taken[:n]
	s.Lock()
	defer s.Leave()
	took, bytes := w.use.end(s.Now(), moved(all, results)), sizes(all)
	if n < len(taken) {
		taken[n].Begun(s.Now())
		s.beginShare(w, taken[n])
	} else {
		w.end()
		if c.device != nil {
			s.Host.EndTransfer()
		}
	}
	now := s.Now()
	engine.Together(now, all)
	s.anchors.flushed.Broadcast()
	defer endTurns(results) // if this goroutine panics
	for i, x := range all {
		s.takeResult(x, results[i], share(took, x.Rec.Size, bytes))
		s.tell(c, now, x, results[i])
		if ended := results[i].Ended; ended != nil {
			results[i].Ended = nil
			ended(results[i].Err == nil)
		}
		s.noteResident(x)
	}
}

// endTurns ends the turns of transfers that have not ended theirs, for which other goroutines may wait. The lock is held.
func endTurns(results []*path.Result) {
	for _, r := range results {
		if r.Ended != nil {
			r.Ended(false)
		}
	}
}

// tell tells the engine and the disk of the end of a transfer.
func (s *Workers) tell(c *workerPool, now int64, x *engine.Transfer, did *path.Result) {
	switch {
	case errors.Is(did.Err, path.ErrRoom):
		s.Engine.Enlarge(now, x)
		if s.UsesDisk(x) {
			s.Disk.Ended(x, nil)
		}
		return
	case errors.Is(did.Err, path.ErrAnchor):
		s.Engine.FlushFirst(now, x)
		s.Disk.Ended(x, nil)
		return
	case s.Disk != nil && s.Disk.Commits(x, did.Err):
		s.Disk.Commit(x, did.Leaves)
		return
	}
	given := x.Kind == engine.Load && c.device != nil && s.Findings.End(x, did.Bad, did.Err)
	s.Engine.Done(now, x, did.Err)
	if s.UsesDisk(x) {
		s.Disk.Ended(x, did.Err)
	}
	if x.Kind == engine.Spill && !s.IsDurable() {
		s.Counted(x.Rec)
	}
	if given {
		s.WakeAll() // waits may be over
	}
}

// sizes is the room of the plain bytes of several checkpoints together.
func sizes(all []*engine.Transfer) (n int64) {
	for _, x := range all {
		n += x.Rec.Size
	}
	return n
}

// moved is how many bytes of several checkpoints have crossed their link, of those that have arrived.
func moved(all []*engine.Transfer, results []*path.Result) (n int64) {
	for i, x := range all {
		if results[i].Err != nil {
			continue
		}
		if x.Stage == engine.Encoding {
			n += results[i].Staged.Written()
		} else {
			n += x.Sends()
		}
	}
	return n
}

// takeResult takes over the results of a transfer, whose share of its link's time is so many ns. The bytes of a fetch go to the operation that requested them,
// unless it has ended. The lock is held.
func (s *Workers) takeResult(x *engine.Transfer, m *path.Result, share int64) {
	if x.Stage != engine.Verbatim && m.Err == nil {
		s.takeStaged(x, &m.Staged, share)
	}
	switch x.Kind {
	case engine.Spill:
		b := x.Rec.Version
		if m.Err == nil && pending.Of(b).Source.Abandoned() { // it must not replace a version that was written after it was given up
			m.Err = borrow.ErrAbandoned
		}
		pending.Of(b).Source.Forget()
		b.Pending, b.Sums = nil, m.Sums
		b.KeepLeaves(m.Leaves)
	case engine.Fetch:
		f := x.Restore.Notify.(Fetcher)
		switch {
		case m.Err != nil:
		case m.Fetched == nil:
			f.Filled()
		case f.Took(m.Fetched):
			m.Fetched = nil
		}
	}
}
