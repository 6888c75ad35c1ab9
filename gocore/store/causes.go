package store

import (
	"velocpy/gocore/figures"
	"velocpy/gocore/tier/devicememory"
)

// causesOf returns the causes of the waits of captures, or of restores, on a device.
func causesOf(s *devicememory.Waits, waiting devicememory.Kind) figures.Causes {
	w := s[waiting]
	return figures.Causes{
		Flush: w[devicememory.Flushes], Load: w[devicememory.Loads], Reader: w[devicememory.Reads] + w[devicememory.Restores],
		Other: w[devicememory.Captures] + w[devicememory.Checks],
	}
}
