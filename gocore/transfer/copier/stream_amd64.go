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
	streamBlock = 256     // bytes that one round of stream256 copies
	streamAlign = 32      // its alignment of the destination
	streamAhead = 1 << 10 // distance of the prefetches ahead of the reads
)

var canStream = cpu.X86.HasAVX2

// copyStream copies with stores that bypass the cache, if that is possible.
func copyStream(dst, src []byte) {
	copyStreamBefore(dst, src, uintptr(unsafe.Pointer(unsafe.SliceData(src)))+streamAhead)
	fence()
}

// copyStreamBefore is copyStream for a source in the cache. Meanwhile it prefetches memory from next on, as much as it copies. Other threads may read
// the copy only after a fence.
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
