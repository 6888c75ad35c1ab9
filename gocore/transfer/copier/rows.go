package copier

import "unsafe"

// copyRowsPlain is the plain twin of the vector code.
func copyRowsPlain(dst, src unsafe.Pointer, n, rows, dstStep, srcStep int64) {
	for i := range rows {
		to, from := unsafe.Add(dst, i*dstStep), unsafe.Add(src, i*srcStep)
		copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	}
}
