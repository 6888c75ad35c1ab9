package store

import (
	"sync"

	"velocpy/gocore/engine"
)

// crew is the workers that carry transfers over one link in one direction. Without devices there is one crew for each direction, since
// there is one link; with them each link has its own, or else the slow ones would keep everybody busy.
type crew struct {
	direction engine.Direction
	link      int          // its upper tier; engine.AnyLink
	device    *accelerator // of its upper tier; nil for host memory
	size      int
	bell      *sync.Cond // workers wait here
	resting   int        // how many do
}

// deviceWorkers keep a link to a device busy while one transfer is being finished and the next begun.
const deviceWorkers = 2

// newCrews makes the crews of all links.
func (s *Store) newCrews() []*crew {
	var crews []*crew
	for _, d := range []engine.Direction{engine.Down, engine.Up} {
		if len(s.accelerators) == 0 {
			crews = append(crews, &crew{direction: d, link: engine.AnyLink, size: s.set.Workers})
			continue
		}
		for t := range s.tiers[:len(s.tiers)-1] {
			c := &crew{direction: d, link: t, device: s.accelerator(t), size: s.set.Workers}
			if c.device != nil {
				c.size = deviceWorkers
			}
			crews = append(crews, c)
		}
	}
	for _, c := range crews {
		c.bell = sync.NewCond(&s.mu)
	}
	return crews
}
