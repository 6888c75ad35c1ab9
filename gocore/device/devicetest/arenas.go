package devicetest

import (
	"bytes"

	"velocpy/gocore/device"
)

// growing is a second arena without mapped memory.
func growing(b *bench, bytes int64) device.Arena {
	b.Helper()
	a, err := b.dev.Reserve(bytes)
	b.must(err)
	b.defers(func() { b.should(a.Free()) })
	if a.Mapped() != 0 || a.Base() == 0 || a.Base()%64 != 0 {
		b.Fatalf("a new arena at %#x with %d bytes mapped", a.Base(), a.Mapped())
	}
	return a
}

// grow maps one piece; 0: the limit is reached.
func grow(b *bench, a device.Arena, limit int64) int64 {
	b.Helper()
	before := a.Mapped()
	after, err := a.Grow(limit)
	b.must(err)
	if after != a.Mapped() || after < before || after > limit && after > before {
		b.Fatalf("Grow(%d) from %d gives %d, and %d is mapped", limit, before, after, a.Mapped())
	}
	return after - before
}

func growth(b *bench) {
	a := growing(b, 3*arenaBytes)
	base, limit := a.Base(), int64(2*arenaBytes)
	contents := map[int64][]byte{}
	for {
		at, n := a.Mapped(), grow(b, a, limit)
		if n == 0 {
			break
		}
		if at > 0 && !bytes.Equal(b.read(base, 4096), contents[0]) { // the mapped memory stays usable
			b.Fatalf("the first bytes changed when the arena grew beyond %d", at)
		}
		contents[at], contents[at+n-4096] = b.noise(4096), b.noise(4096)
		b.write(base+device.Address(at), contents[at])
		b.write(base+device.Address(at+n-4096), contents[at+n-4096])
	}
	if len(contents) < 1 || a.Base() != base {
		b.Fatal("the arena does not grow, or moves")
	}
	for off, want := range contents { // growing has not moved or changed any byte
		if !bytes.Equal(b.read(base+device.Address(off), 4096), want) {
			b.Fatalf("bytes at %d changed", off)
		}
	}
	want := b.noise(a.Mapped() - 12_345) // in copies across all borders of pieces
	b.write(base+12_345, want)
	if !bytes.Equal(b.read(base+12_345, int64(len(want))), want) {
		b.Fatal("copies across the seams of pieces")
	}
	for a.Mapped() < 3*arenaBytes && grow(b, a, 1<<50) > 0 { // the limit may exceed the reservation
	}
	if a.Mapped() > 3*arenaBytes {
		b.Fatalf("%d bytes mapped of %d", a.Mapped(), 3*arenaBytes)
	}
}

func shrinking(b *bench) {
	a := growing(b, arenaBytes)
	piece := grow(b, a, arenaBytes)
	for grow(b, a, arenaBytes) > 0 {
	}
	want := b.noise(4096)
	b.write(a.Base(), want)
	full := a.Mapped()
	if n, err := a.Shrink(full + 1); err != nil || n != full {
		b.Fatalf("Shrink to more than there is: %d, %v", n, err)
	}
	n, err := a.Shrink(piece)
	if b.must(err); n > piece || n != a.Mapped() || n <= 0 {
		b.Fatalf("shrunk from %d to %d, asked for %d", full, n, piece)
	}
	if !bytes.Equal(b.read(a.Base(), 4096), want) {
		b.Fatal("what stayed has changed")
	}
	for grow(b, a, arenaBytes) > 0 {
	}
	if a.Mapped() != full || !bytes.Equal(b.read(a.Base(), 4096), want) {
		b.Fatalf("grown again to %d, was %d", a.Mapped(), full)
	}
	b.write(a.Base()+device.Address(full-4096), want)
	if n, err = a.Shrink(0); err != nil || n != 0 || a.Mapped() != 0 {
		b.Fatalf("Shrink(0): %d, %v", n, err)
	}
}
