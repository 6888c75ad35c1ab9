package vfs

import "unsafe"

// alignedBlock returns n zero bytes at an address that is a multiple of n, a power of two.
func alignedBlock(n int) []byte {
	p := make([]byte, 2*n)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(p))) & uintptr(n-1)
	return p[skip : skip+uintptr(n) : skip+uintptr(n)]
}
