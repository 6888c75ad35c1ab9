//go:build linux

package codec

import (
	"bytes"
	"syscall"
	"testing"
)

// guarded returns memory that ends where a page begins that cannot be read.
func guarded(t testing.TB, n int) []byte {
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
	everyWay(t, testNothingIsTouchedOutside)
}

func testNothingIsTouchedOutside(t *testing.T) {
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

// Payloads of regions of any length, mutated and cut, whose buffers all end where memory ends, decode to the same bytes in every way, or are refused.
func TestMutatedPayloadsOfAnyLength(t *testing.T) {
	onlyOne(t)
	if !vectors256 {
		t.Skip("this processor has no AVX2")
	}
	last := func(p []byte, n int) []byte { return p[len(p)-n:] }
	payloads, references, backs := guarded(t, ChunkBytes), guarded(t, ChunkBytes), guarded(t, ChunkBytes)
	r, outside := source(11), dirty(ChunkBytes)
	for round := range 1500 {
		k, m, n := kinds[round%len(kinds)], Mode(r.IntN(int(modes))), 1+r.IntN(ChunkBytes)
		if round%3 == 0 {
			n = 64 * (1 + r.IntN(ChunkBytes/64))
		}
		plain := make([]byte, n)
		fillFamily(plain, k, r.IntN(len(families)), r.Uint64())
		reference := last(references, n)
		copy(reference, change(plain, k, 1+r.IntN(9), r.Uint64()))
		e, err := NewEncoder(k, Only(m))
		if err != nil {
			t.Fatal(err)
		}
		encoded := make([]byte, n)
		entry := e.Chunk(encoded, plain, reference)
		for flips := range 3 {
			payload := last(payloads, max(1, entry.Bytes-r.IntN(1+20*flips)))
			copy(payload, encoded)
			for range flips {
				payload[r.IntN(len(payload))>>r.IntN(13)] ^= 1 << r.IntN(8)
			}
			decode := func() ([]byte, bool) {
				back := last(backs, n)
				copy(backs, outside)
				ok := new(decoder).chunk(back, payload, reference, entry.Mode, k)
				return bytes.Clone(backs), ok
			}
			restore := onlyVectors256()
			got, ok := decode()
			restore()
			restore = withoutVectors()
			want, fine := decode()
			restore()
			if ok != fine || ok && !bytes.Equal(got, want) || flips == 0 && !bytes.Equal(last(got, n), plain) {
				t.Fatalf("%v, %v, %d B, %d flips: AVX2 accepts a payload: %v; loops: %v", m, k, n, flips, ok, fine)
			}
		}
	}
}

// FuzzOutside mutates payloads that end where readable memory ends: the process would end if a decoder read behind them.
func FuzzOutside(f *testing.F) {
	addPayloads(f)
	reference, back, room := guarded(f, ChunkBytes), guarded(f, ChunkBytes), guarded(f, ChunkBytes)
	fillFamily(reference, Int8, 0, 9)
	f.Fuzz(func(_ *testing.T, payload []byte, mode, kind byte) {
		at := max(0, len(room)-len(payload))
		copy(room[at:], payload)
		decode := func() { new(decoder).chunk(back, room[at:], reference, Mode(mode%8), kinds[int(kind)%len(kinds)]) }
		decode()
		defer onlyVectors256()()
		decode()
	})
}
