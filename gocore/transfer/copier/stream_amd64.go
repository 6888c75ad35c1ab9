//go:build !race

package copier

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func stream256(dst, src unsafe.Pointer, blocks int, next uintptr)

//go:noescape
func fence()

const (
	streamBlock = 256     // what one round of stream256 copies
	streamAlign = 32      // what it demands of the destination
	streamAhead = 1 << 10 // how far in front of the reads the next lines of a source are asked for
)

var canStream = cpu.X86.HasAVX2

// copyStream copies with stores that bypass the cache, where that is possible.
func copyStream(dst, src []byte) {
	copyStreamBefore(dst, src, uintptr(unsafe.Pointer(unsafe.SliceData(src)))+streamAhead)
	fence()
}

// copyStreamBefore is copyStream for what lies in the cache: memory from next on is asked for meanwhile, as much as is copied. Nobody else
// may be told of the copy before a fence.
func copyStreamBefore(dst, src []byte, next uintptr) {
	if !canStream || len(src) < streamBlock {
		copy(dst, src)
		return
	}
	head := int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) & (streamAlign - 1))
	copy(dst[:head], src)
	dst, src = dst[head:], src[head:]
	body := len(src) &^ (streamBlock - 1)
	stream256(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), body/streamBlock, next)
	copy(dst[body:], src[body:])
}
