//go:build !race

package copier

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func stream256(dst, src unsafe.Pointer, blocks int)

const (
	streamBlock = 256 // what one round of stream256 copies
	streamAlign = 32  // what it demands of the destination
	streamLeast = 4 << 10
)

var canStream = cpu.X86.HasAVX2

// copyStream copies with stores that bypass the cache, where that is possible.
func copyStream(dst, src []byte) {
	if !canStream || len(src) < streamLeast {
		copy(dst, src)
		return
	}
	head := int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) & (streamAlign - 1))
	copy(dst[:head], src)
	dst, src = dst[head:], src[head:]
	body := len(src) &^ (streamBlock - 1)
	stream256(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), body/streamBlock)
	copy(dst[body:], src[body:])
}
