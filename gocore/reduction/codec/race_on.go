//go:build race

package codec

import (
	"runtime"
	"unsafe"
)

// raceReads tells the race detector that bytes are read. The loops that read them are hidden from it (go:norace): it would make them ten times as slow, and of the
// assembly that does the same it sees nothing either.
func raceReads(p []byte) {
	if len(p) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(p)), len(p))
	}
}
