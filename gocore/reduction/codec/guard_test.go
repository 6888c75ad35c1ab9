//go:build linux

package codec

import (
	"bytes"
	"syscall"
	"testing"
)

// guarded returns memory that ends where a page begins that cannot be read.
func guarded(t *testing.T, n int) []byte {
	page := syscall.Getpagesize()
	whole := (n + page - 1) / page * page
	p, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(p) })
	if err := syscall.Mprotect(p[whole:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return p[whole-n : whole : whole]
}

// Nothing is read or written behind the buffers: the process would end.
func TestNothingIsTouchedOutside(t *testing.T) {
	onlyOne(t)
	for _, n := range []int{ChunkBytes, 64 * 40, ChunkBytes - 33} {
		plain, reference, dst, back := guarded(t, n), guarded(t, n), guarded(t, n), guarded(t, n)
		for _, k := range kinds {
			for family := range families {
				fillFamily(plain, k, family, 2)
				copy(reference, change(plain, k, 7, 2))
				for m := range modes {
					e, err := NewEncoder(k, Only(m))
					if err != nil {
						t.Fatal(err)
					}
					entry := e.Chunk(dst, plain, reference)
					payload := dst[n-entry.Bytes:]
					copy(payload, dst[:entry.Bytes])
					if !new(decoder).chunk(back, payload, reference, entry.Mode, k) || !bytes.Equal(back, plain) {
						t.Fatalf("%v, family %d, %v: other bytes", k, family, m)
					}
				}
			}
		}
	}
}
