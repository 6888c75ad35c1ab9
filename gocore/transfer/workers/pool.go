package workers

import (
	"sync"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// workerPool is the workers that carry out transfers over one link in one direction. Without devices there is one pool for each direction, since
// there is one link. With devices each link has its own pools; otherwise the transfers of slow links would occupy all workers.
type workerPool struct {
	direction engine.Direction
	link      int                  // index of the link's upper tier, or engine.AnyLink
	device    *devicememory.Memory // device of the upper tier; nil for host memory
	demanded  bool                 // takes only transfers that restores wait for
	size      int
	atOnce    int        // most workers that read at once, except transfers that restores wait for; 0: all
	reading   int        // number of workers that read
	wake      *sync.Cond // signalled when there may be work
	resting   int        // number of workers that wait
	deferred  deferredSources
	held      []*heldRun
}

// deviceWorkers is two, so that the link to a device stays busy while one transfer ends and the next begins. One more worker, for loads, is free
// whenever a restore begins to wait.
const deviceWorkers = 2

// pending tells whether there may be work for the pool.
func (c *workerPool) pending(s *Workers) bool {
	e := s.Engine
	if c.demanded {
		return e.Pending(c.want(engine.AwaitedLoads))
	}
	if c.isReading() {
		return e.Pending(c.want(engine.Awaited))
	}
	return len(c.deferred.filled) > 0 || s.heldRuns.releasable(c) >= 0 || e.Pending(c.want(engine.Everything))
}

// next returns the pool's next transfer, or nil.
func (c *workerPool) next(e *engine.Engine, now int64) *engine.Transfer {
	if c.demanded {
		return e.Next(now, c.want(engine.AwaitedLoads))
	}
	if x := c.deferred.next(); x != nil {
		return x
	}
	return c.another(e, now, false)
}

// another returns a transfer of the engine. If urgent, or if no more reads may begin, it returns only one that a restore waits for.
func (c *workerPool) another(e *engine.Engine, now int64, urgent bool) *engine.Transfer {
	if urgent || c.isReading() {
		return e.Next(now, c.want(engine.Awaited))
	}
	return e.Next(now, c.want(engine.Everything))
}

// want says which transfers of the engine the pool carries out now.
func (c *workerPool) want(only engine.Selection) engine.Want {
	return engine.Want{Direction: c.direction, Link: c.link, Only: only}
}

// isReading tells whether the next read has to wait for the end of another, unless a restore waits for it.
func (c *workerPool) isReading() bool { return c.atOnce > 0 && c.reading >= c.atOnce }

// limitReads sets the pool size to atOnce + 1, for atOnce transfers that are read ahead. While one transfer is verified and copied, another worker
// keeps the disk busy. A transfer that a restore waits for is read in parallel with the read-ahead.
func (c *workerPool) limitReads(atOnce int) {
	c.size, c.atOnce = atOnce+1, atOnce
}

// newPools creates the pools of all links.
func (s *Workers) newPools() []*workerPool {
	var pools []*workerPool
	for _, d := range []engine.Direction{engine.Down, engine.Up} {
		if len(s.Devices) == 0 {
			pools = append(pools, &workerPool{direction: d, link: engine.AnyLink, size: s.Set.Workers})
			if d == engine.Up {
				pools[len(pools)-1].limitReads(s.Set.Workers)
			}
			continue
		}
		for t := range s.Tiers {
			if s.Engine.Below(t) < 0 {
				continue // no link leads down from it
			}
			c := &workerPool{direction: d, link: t, device: s.DeviceTier(t), size: s.Set.Workers}
			pools = append(pools, c)
			if c.device == nil {
				if d == engine.Up {
					c.limitReads(s.Set.Workers)
				}
				continue
			}
			c.size = deviceWorkers
			if d == engine.Up {
				pools = append(pools, &workerPool{direction: d, link: t, device: c.device, demanded: true, size: 1})
			}
		}
	}
	for _, c := range pools {
		c.wake = sync.NewCond(s.Cache)
	}
	return pools
}
