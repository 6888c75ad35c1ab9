//go:build !race

package copier

import "unsafe"

//go:noescape
func rows256(dst, src unsafe.Pointer, n, rows, dstStep, srcStep, ahead int64)

// rowLeast is the shortest row that rows256 can copy. From rowMost on, a call of the runtime's copy, which has vector code too, costs little compared
// to the bytes.
const (
	rowLeast = 32
	rowMost  = 2 << 10
)

// rowAhead is the distance of prefetches when rows are not adjacent: the hardware prefetcher detects only dense ones.
const rowAhead = 1 << 10

// copyRows copies rows of n bytes that begin at the given steps.
func copyRows(dst, src unsafe.Pointer, n, rows, dstStep, srcStep int64) {
	if !canStream || n < rowLeast || n > rowMost {
		copyRowsPlain(dst, src, n, rows, dstStep, srcStep)
		return
	}
	ahead := int64(0)
	if srcStep != n {
		ahead = rowAhead
	}
	rows256(dst, src, n, rows, dstStep, srcStep, ahead)
}
