package workers

import (
	"velocpy/gocore/base/safego"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/pending"
)

// deferredSources are transfers whose sources on a device are not filled yet: work that the caller queued before is still running. Workers do not
// wait for it. It may take long, and it may itself wait for another caller whose checkpoints need the workers.
type deferredSources struct {
	waiting map[*engine.Transfer]struct{} // taken from the engine and not carried out
	filled  []*engine.Transfer            // those whose sources are filled
}

// deferSource sets a transfer aside if its source is not filled. The lock is held.
func (s *Workers) deferSource(c *workerPool, x *engine.Transfer) bool {
	if x.Kind != engine.Spill {
		return false
	}
	src := pending.OpenSource(x.Rec.Version)
	if src == nil {
		return false
	}
	m := src.Pending()
	if m == nil {
		if _, waited := c.deferred.waiting[x]; waited {
			delete(c.deferred.waiting, x)
			s.Engine.TakeUp(s.Now(), x)
		}
		return false
	}
	s.Engine.PutAside(x)
	if c.deferred.waiting == nil {
		c.deferred.waiting = map[*engine.Transfer]struct{}{}
	}
	c.deferred.waiting[x] = struct{}{}
	s.Users++
	safego.Go("deferred source", func() {
		_ = m.Wait() // the worker that carries it out gets the error
		m.Drop()
		s.Lock()
		defer s.Leave()
		s.Users--
		c.deferred.filled = append(c.deferred.filled, x)
	})
	return true
}

// next takes a transfer whose source is filled; nil when there is none.
func (l *deferredSources) next() *engine.Transfer {
	if len(l.filled) == 0 {
		return nil
	}
	x := l.filled[0]
	l.filled = l.filled[1:]
	return x
}
