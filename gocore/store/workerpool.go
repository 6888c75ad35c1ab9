package store

import (
	"sync"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// workerPool is the workers that carry transfers over one link in one direction. Without devices there is one crew for each direction, since
// there is one link; with them each link has its own, or else the slow ones would keep everybody busy.
type workerPool struct {
	direction engine.Direction
	link      int                  // its upper tier; engine.AnyLink
	device    *devicememory.Memory // of its upper tier; nil for host memory
	demanded  bool                 // takes only what restores wait for
	size      int
	atOnce    int        // so many of its workers read at once, and more only what somebody waits for; 0: all
	reading   int        // how many do
	wake      *sync.Cond // workers wait here
	resting   int        // how many do
	deferred      deferredSources
}

// deviceWorkers keep a link to a device busy while one transfer is being finished and the next begun. One more, on the way up, is free
// whenever a restore begins to wait.
const deviceWorkers = 2

// pending tells whether there may be work for the crew.
func (c *workerPool) pending(e *engine.Engine) bool {
	if c.demanded {
		return e.PendingDemanded(c.link)
	}
	if c.isReading() {
		return e.PendingUrgent(c.link)
	}
	return len(c.deferred.filled) > 0 || e.PendingOver(c.direction, c.link)
}

// next is the crew's next transfer, or nil.
func (c *workerPool) next(e *engine.Engine, now int64) *engine.Transfer {
	if c.demanded {
		return e.NextDemanded(now, c.link)
	}
	if x := c.deferred.next(); x != nil {
		return x
	}
	return c.another(e, now, false)
}

// another is a transfer of the engine's, one that is waited for if it has to be.
func (c *workerPool) another(e *engine.Engine, now int64, urgent bool) *engine.Transfer {
	if urgent || c.isReading() {
		return e.NextUrgent(now, c.link)
	}
	return e.NextOver(now, c.direction, c.link)
}

// isReading tells whether nothing should be read until another transfer has been, but what a restore waits for.
func (c *workerPool) isReading() bool { return c.atOnce > 0 && c.reading >= c.atOnce }

// limitReads lets a crew have one worker more than transfers that are read ahead at once: while one is compared and copied the disk does not rest, and one that a restore
// waits for is read beside those that nobody waits for.
func (c *workerPool) limitReads(atOnce int) {
	c.size, c.atOnce = atOnce+1, atOnce
}

// newPools makes the crews of all links.
func (s *Store) newPools() []*workerPool {
	var crews []*workerPool
	for _, d := range []engine.Direction{engine.Down, engine.Up} {
		if len(s.deviceTiers) == 0 {
			crews = append(crews, &workerPool{direction: d, link: engine.AnyLink, size: s.set.Workers})
			if d == engine.Up {
				crews[len(crews)-1].limitReads(s.set.Workers)
			}
			continue
		}
		for t := range s.tiers[:len(s.tiers)-1] {
			c := &workerPool{direction: d, link: t, device: s.deviceTier(t), size: s.set.Workers}
			crews = append(crews, c)
			if c.device == nil {
				if d == engine.Up {
					c.limitReads(s.set.Workers)
				}
				continue
			}
			c.size = deviceWorkers
			if d == engine.Up {
				crews = append(crews, &workerPool{direction: d, link: t, device: c.device, demanded: true, size: 1})
			}
		}
	}
	for _, c := range crews {
		c.wake = sync.NewCond(&s.mu)
	}
	return crews
}
