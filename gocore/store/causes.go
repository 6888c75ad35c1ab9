package store

import (
	"velocpy/gocore/figures"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
)

// lookAtBlocked updates the causes for which captures wait. Every section that may have changed them ends with it.
func (s *Store) lookAtBlocked() {
	if len(s.roomless) == 0 {
		return
	}
	now := s.now()
	for op := range s.roomless {
		if op.capture.Phase == engine.Waiting {
			op.noteBlocked(now, s.eng.Blocker(op.capture))
		}
	}
}

// causesOf returns the causes of the waits of captures, or of restores, on a device.
func causesOf(s *devicememory.Waits, waiting devicememory.Kind) figures.Causes {
	w := s[waiting]
	return figures.Causes{
		Flush: w[devicememory.Flushes], Load: w[devicememory.Loads], Reader: w[devicememory.Reads] + w[devicememory.Restores],
		Other: w[devicememory.Captures] + w[devicememory.Checks],
	}
}
