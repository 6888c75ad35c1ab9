//go:build !amd64 || race

package copier

import "unsafe"

// copyRows copies rows of n bytes that begin at the given steps; the race detector can observe it.
func copyRows(dst, src unsafe.Pointer, n, rows, dstStep, srcStep int64) {
	copyRowsPlain(dst, src, n, rows, dstStep, srcStep)
}
