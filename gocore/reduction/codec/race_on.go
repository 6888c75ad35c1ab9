//go:build race

package codec

import (
	"runtime"
	"unsafe"
)

// raceReads tells the race detector that bytes are read, and raceWrites that they are written. The loops over whole chunks are hidden from it (go:norace): it looks at
// each of their words, and makes them ten times as slow. The assembly in their place is not part of a build with it.
func raceReads(p []byte) {
	if len(p) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(p)), len(p))
	}
}

func raceWrites(p []byte) {
	if len(p) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(p)), len(p))
	}
}
