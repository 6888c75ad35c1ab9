package devicetest

import (
	"bytes"
	"encoding/binary"
	"math"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// The layout of the arena: slots in the first half, arrays in the second.
const arraysFrom = arenaBytes / 2

// copies checks all directions, sizes and offsets of plain copies.
func copies(b *bench) {
	pageable := b.mapping(2 << 20)
	for _, n := range []int64{0, 1, 3, 64, 4095, 4097, 100_003, 1<<20 + 1} {
		for _, off := range []int64{0, 1, 63} {
			want := b.noise(n)
			copy(b.host.Bytes(off, n), want)
			b.must(b.lane.Copy(b.at(off), b.hostAt(off), n))
			b.must(b.lane.Copy(b.at(3<<20+off*7), b.at(off), n))
			b.must(b.lane.Copy(b.hostAt(4<<20+off), b.at(3<<20+off*7), n))
			b.must(b.lane.Copy(device.Address(pageable.Base())+device.Address(off), b.at(3<<20+off*7), n))
			b.finish(b.lane)
			if !bytes.Equal(b.host.Bytes(4<<20+off, n), want) || !bytes.Equal(pageable.Bytes(off, n), want) {
				b.Fatalf("%d bytes at offset %d", n, off)
			}
			b.fill(want)
			copy(pageable.Bytes(off, n), want)
			b.must(b.lane.Copy(b.at(off), device.Address(pageable.Base())+device.Address(off), n))
			if !bytes.Equal(b.read(b.at(off), n), want) {
				b.Fatalf("%d bytes at offset %d from pageable memory", n, off)
			}
		}
	}
}

// array is a strided array in memory, and its dense form.
type array struct {
	device.Piece
	origin device.Address // of the memory
	memory []byte         // its content
	zero   int64          // offset in memory of the first dense byte
	order  []int64        // offset in memory of every dense byte; nil if they are contiguous
}

// layout describes an array: axes may be in any order, strides may be negative.
type layout struct {
	shape, strides []int64
	item           int64
}

// flat is a layout of contiguous bytes.
func flat(n int64) layout { return layout{item: n} }

// array creates one at an address; the memory around it is random and must not change.
func (b *bench) array(slot, at device.Address, lay layout) *array {
	const margin = 5
	low, high := int64(0), lay.item
	n := lay.item
	for i, length := range lay.shape {
		n *= length
		if reach := (length - 1) * lay.strides[i]; reach < 0 {
			low += reach
		} else {
			high += reach
		}
	}
	if n == 0 {
		low, high = 0, 0
	}
	a := &array{origin: at, memory: b.noise(high - low + 2*margin)}
	zero := margin - low
	a.Piece = device.Piece{Slot: slot, Bytes: n, Mem: model.Strided{
		Base: pointer(at + device.Address(zero)), Shape: lay.shape, Strides: lay.strides, Item: lay.item}}
	if a.zero = zero; len(lay.shape) == 0 {
		return a
	}
	for i := range n {
		element, off := i/lay.item, zero+i%lay.item
		for k := len(lay.shape) - 1; k >= 0; k-- {
			off += element % lay.shape[k] * lay.strides[k]
			element /= lay.shape[k]
		}
		a.order = append(a.order, off)
	}
	return a
}

func (a *array) dense() []byte {
	if len(a.Mem.Shape) == 0 {
		return a.memory[a.zero : a.zero+a.Bytes]
	}
	p := make([]byte, len(a.order))
	for i, off := range a.order {
		p[i] = a.memory[off]
	}
	return p
}

// scattered is the content of the memory once the dense bytes are in the array.
func (a *array) scattered(p []byte) []byte {
	m := bytes.Clone(a.memory)
	if len(a.Mem.Shape) == 0 {
		copy(m[a.zero:], p)
	}
	for i, off := range a.order {
		m[off] = p[i]
	}
	return m
}

// arrays creates several one after another, with slots one after another.
func (b *bench) arrays(lays ...layout) []*array {
	slot, at := int64(64), int64(arraysFrom+b.rand.Int64N(16))
	var all []*array
	for _, lay := range lays {
		a := b.array(b.at(slot), b.at(at), lay)
		slot += (a.Bytes + 64 + 63) &^ 63
		at += int64(len(a.memory)) + b.rand.Int64N(9)
		if slot > arraysFrom || at > arenaBytes {
			b.Fatalf("the suite's own arrays do not fit")
		}
		all = append(all, a)
	}
	return all
}

func asPieces(all []*array) []device.Piece {
	p := make([]device.Piece, len(all))
	for i, a := range all {
		p[i] = a.Piece
	}
	return p
}

// roundTrip gathers arrays, checks slots and sums, puts other bytes into the slots, and scatters them.
func (b *bench) roundTrip(all []*array) {
	b.Helper()
	origin := all[0].origin
	region := b.noise(int64(all[len(all)-1].origin-origin) + int64(len(all[len(all)-1].memory)))
	for _, a := range all {
		copy(region[a.origin-origin:], a.memory)
	}
	b.write(origin, region)
	first, last := b.at(0), all[len(all)-1]
	around := b.noise(int64(last.Slot-first) + last.Bytes + 64)
	b.write(first, around)
	want := bytes.Clone(around)
	for _, a := range all {
		copy(want[a.Slot-first:], a.dense())
	}
	b.gather(all, first, want)

	b.fill(around)
	b.write(first, around)
	b.must(b.lane.Scatter(asPieces(all)))
	b.finish(b.lane)
	for _, a := range all {
		copy(region[a.origin-origin:], a.scattered(around[a.Slot-first:][:a.Bytes]))
	}
	got := b.read(origin, int64(len(region)))
	for i, a := range all {
		at := a.origin - origin
		if !bytes.Equal(got[at:][:len(a.memory)], region[at:][:len(a.memory)]) {
			b.Fatalf("piece %d of %d (%d bytes) is scattered wrongly, or its surroundings are written", i, len(all), a.Bytes)
		}
	}
	if !bytes.Equal(got, region) || !bytes.Equal(b.read(first, int64(len(around))), around) {
		b.Fatal("Scatter wrote between the arrays, or changed slots")
	}
}

func (b *bench) gather(all []*array, first device.Address, want []byte) {
	b.Helper()
	if s, err := b.lane.Gather(asPieces(all), false); err != nil || s != nil {
		b.Fatalf("without sums: %v, %v", s, err)
	}
	if !bytes.Equal(b.read(first, int64(len(want))), want) {
		b.Fatal("slots differ, or the memory between them has changed")
	}
	taken, err := b.lane.Gather(asPieces(all), true)
	b.must(err)
	b.must(taken.Fetch(b.lane))
	hashed, err := b.lane.Hash(asPieces(all))
	b.must(err)
	b.finish(b.lane)
	if !bytes.Equal(b.read(first, int64(len(want))), want) {
		b.Fatal("slots differ with sums")
	}
	one, two := taken.Take(), hashed.Take()
	if len(one) != len(all) || len(two) != len(all) {
		b.Fatalf("%d and %d sums for %d pieces", len(one), len(two), len(all))
	}
	for i, a := range all {
		if sum := checksum.Sum(a.dense()); one[i] != sum || two[i] != sum {
			b.Fatalf("sums of piece %d of %d (%d bytes): gathered %#x, hashed %#x, want %#x", i, len(all), a.Bytes, one[i], two[i], sum)
		}
	}
}

// pieces: no piece, empty pieces among others, one piece.
func pieces(b *bench) {
	for _, check := range []bool{false, true} {
		s, err := b.lane.Gather(nil, check)
		b.must(err)
		if check {
			b.must(s.Fetch(b.lane))
		}
		b.finish(b.lane)
		if check && len(s.Take()) != 0 {
			b.Fatal("sums of no pieces")
		}
	}
	b.must(b.lane.Scatter(nil))
	b.roundTrip(b.arrays(flat(0)))
	b.roundTrip(b.arrays(flat(1)))
	b.roundTrip(b.arrays(flat(0), flat(100), flat(0), layout{[]int64{0, 5}, []int64{40, 8}, 8}, flat(7), flat(0)))
}

func oddSizes(b *bench) {
	var lays []layout
	for _, n := range []int64{1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 129, 239, 240, 241, 255, 257, 1023, 1024, 1025, 4093, 65_537,
		checksum.LeafBytes - 1, checksum.LeafBytes, checksum.LeafBytes + 1, 2*checksum.LeafBytes + 1023} {
		lays = append(lays, flat(n))
	}
	b.roundTrip(b.arrays(lays...))
	b.roundTrip(b.arrays(flat(5*checksum.LeafBytes + 13)))
}

func strides(b *bench) {
	for _, item := range []int64{1, 2, 4, 8, 16, 3, 12} {
		b.roundTrip(b.arrays(
			layout{[]int64{50}, []int64{2 * item}, item},
			layout{[]int64{50}, []int64{-item}, item},
			layout{[]int64{50}, []int64{-3*item - 1}, item},
			layout{[]int64{33, 65}, []int64{item, 33 * item}, item},   // transposed
			layout{[]int64{33, 65}, []int64{80 * item, item}, item},   // with a halo
			layout{[]int64{33, 65}, []int64{-80 * item, item}, item},  // upside down
			layout{[]int64{33, 65}, []int64{-65 * item, -item}, item}, // backwards, yet contiguous
			layout{[]int64{1, 65, 1}, []int64{999, item, -77}, item},  // axes of one element
			layout{[]int64{4, 3, 5, 7}, []int64{item * 200, -item * 60, item * 9, item}, item},
			layout{[]int64{2, 3, 2, 3, 2, 3}, []int64{item, 2 * item, 7 * item, 15 * item, 50 * item, -101 * item}, item},
			flat(77),
		))
	}
	b.roundTrip(b.arrays(layout{[]int64{210, 160}, []int64{8, 1680}, 8})) // several leaves, across the border of a leaf
	b.roundTrip(b.arrays(layout{[]int64{53_000}, []int64{-12}, 5}))
}

func manyPieces(b *bench) {
	var lays []layout
	for i := range int64(2500) {
		if i%7 == 3 {
			lays = append(lays, layout{[]int64{3 + i%5, 4}, []int64{48, -8}, 8})
		} else {
			lays = append(lays, flat(i%301))
		}
	}
	lays = append(lays, flat(checksum.LeafBytes+5))
	b.roundTrip(b.arrays(lays...))
}

// notANumber: every bit of floating-point numbers is kept, including signalling NaNs and payloads.
func notANumber(b *bench) {
	var p []byte
	for i := range uint64(2000) {
		p = binary.LittleEndian.AppendUint64(p, math.Float64bits(math.Inf(1))|1+i*0x1_0001)
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(float32(math.Inf(-1)))|uint32(1+i))
		p = binary.LittleEndian.AppendUint32(p, 0x7F80_0001|uint32(i)<<3)
	}
	n := int64(len(p))
	for _, lay := range []layout{flat(n), {[]int64{n / 8}, []int64{-8}, 8}, {[]int64{n / 4}, []int64{4}, 4}, {[]int64{n / 16}, []int64{32}, 16}} {
		all := b.arrays(lay)
		copy(all[0].memory[5:], p)
		b.roundTrip(all)
	}
}

// pageablePieces have their arrays in pageable host memory, beside others.
func pageablePieces(b *bench) {
	m := b.mapping(4 << 20)
	for _, n := range []int64{0, 1, 1000, 300_001} {
		want := b.noise(n)
		copy(m.Bytes(3, n), want)
		ours := b.array(b.at(1<<20), b.at(arraysFrom+1), flat(5000))
		b.write(ours.origin, ours.memory)
		mixed := []device.Piece{
			{Slot: b.at(0), Bytes: n, Mem: dense(device.Address(m.Base()) + 3), Host: true},
			ours.Piece,
			{Slot: b.at(2 << 20), Bytes: 600, Host: true, Mem: model.Strided{
				Base: pointer(device.Address(m.Base()) + 2<<20), Shape: []int64{50, 3}, Strides: []int64{40, -4}, Item: 4}},
		}
		strided := b.array(0, 0, layout{[]int64{50, 3}, []int64{40, -4}, 4})
		corner := int64(2<<20) - 8 // its lowest byte
		copy(strided.memory, m.Bytes(corner-5, int64(len(strided.memory))))
		taken, err := b.lane.Gather(mixed, true)
		b.must(err)
		b.must(taken.Fetch(b.lane))
		b.finish(b.lane)
		got := taken.Take()
		for i, p := range [][]byte{want, ours.dense(), strided.dense()} {
			if !bytes.Equal(b.read(mixed[i].Slot, mixed[i].Bytes), p) || got[i] != checksum.Sum(p) {
				b.Fatalf("%d bytes: piece %d", n, i)
			}
		}
		back, stripes := b.noise(n), b.noise(600)
		b.write(b.at(0), back)
		b.write(b.at(2<<20), stripes)
		b.must(b.lane.Scatter(mixed))
		b.finish(b.lane)
		if !bytes.Equal(m.Bytes(3, n), back) || !bytes.Equal(m.Bytes(corner-5, int64(len(strided.memory))), strided.scattered(stripes)) {
			b.Fatalf("%d bytes back to pageable memory", n)
		}
	}
}

// pinnedPieces have their arrays in pinned memory, which kernels can reach.
func pinnedPieces(b *bench) {
	const n = 100_001
	want, stripes := b.noise(n), b.noise(n)
	copy(b.host.Bytes(9, n), want)
	p := []device.Piece{{Slot: b.at(0), Bytes: n, Mem: dense(b.hostAt(9))}}
	taken, err := b.lane.Gather(p, true)
	b.must(err)
	b.must(taken.Fetch(b.lane))
	if !bytes.Equal(b.read(b.at(0), n), want) || taken.Take()[0] != checksum.Sum(want) {
		b.Fatal("gathered from pinned memory")
	}
	b.write(b.at(0), stripes)
	b.must(b.lane.Scatter(p))
	b.finish(b.lane)
	if !bytes.Equal(b.host.Bytes(9, n), stripes) {
		b.Fatal("scattered to pinned memory")
	}
}

// sums can be taken late, in any order, or not at all; many can exist at once.
func sums(b *bench) {
	const n = 1000
	var open []device.Sums
	var want []uint64
	for i := range int64(300) {
		p := b.noise(n)
		copy(b.host.Bytes(i*n, n), p)
		want = append(want, checksum.Sum(p))
		b.must(b.lane.Copy(b.at(i*1024), b.hostAt(i*n), n))
		s, err := b.lane.Hash([]device.Piece{{Slot: b.at(i * 1024), Bytes: n}, {Slot: b.at(i * 1024), Bytes: 0}})
		b.must(err)
		open = append(open, s)
	}
	b.finish(b.lane)
	for i := len(open) - 1; i >= 0; i-- {
		if i%5 == 0 {
			open[i].Discard()
			continue
		}
		if got := open[i].Take(); len(got) != 2 || got[0] != want[i] || got[1] != checksum.Sum(nil) {
			b.Fatalf("sums %d: %#x, want %#x", i, got, want[i])
		}
	}
}
