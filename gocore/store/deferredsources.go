package store

import (
	"velocpy/gocore/base/safego"
	"velocpy/gocore/policy/engine"
)

// deferredSources are transfers from sources on a device that are still to be filled, by what the caller had queued before. Workers do not wait for that: it
// may take long, and what fills one source may itself wait for somebody whose checkpoints need the workers.
type deferredSources struct {
	waiting map[*engine.Transfer]struct{} // taken from the engine and not carried out
	filled  []*engine.Transfer            // those whose sources are there
}

// deferSource keeps a transfer back if its source is late. The lock is held.
func (s *Store) deferSource(c *workerPool, x *engine.Transfer) bool {
	if x.Kind != engine.Spill {
		return false
	}
	src := x.Rec.Body.(*body).openSource()
	if src == nil {
		return false
	}
	m := src.Pending()
	if m == nil {
		if _, waited := c.deferred.waiting[x]; waited {
			delete(c.deferred.waiting, x)
			s.eng.TakeUp(s.now(), x)
		}
		return false
	}
	s.eng.PutAside(x)
	if c.deferred.waiting == nil {
		c.deferred.waiting = map[*engine.Transfer]struct{}{}
	}
	c.deferred.waiting[x] = struct{}{}
	s.users++
	safego.Go("late source", func() {
		_ = m.Wait() // whoever carries it out finds the error
		m.Drop()
		s.mu.Lock()
		defer s.leave()
		s.users--
		c.deferred.filled = append(c.deferred.filled, x)
	})
	return true
}

// next takes a transfer whose source is there; nil when there is none.
func (l *deferredSources) next() *engine.Transfer {
	if len(l.filled) == 0 {
		return nil
	}
	x := l.filled[0]
	l.filled = l.filled[1:]
	return x
}
