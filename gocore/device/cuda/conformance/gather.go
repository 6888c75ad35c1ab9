package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
)

// layout is a set of arrays and their slots, anywhere in the bench.
type layout struct {
	arrays  []array
	regions []device.Address
	pieces  []device.Piece
	image   []byte // of all memory that the bench uses, as it was laid out
}

// lay puts arrays and their slots into the bench and fills all of it with random bytes.
func lay(b *bench, r *rand.Rand, arrays []array) *layout {
	b.t.Helper()
	l := &layout{}
	for i, a := range arrays {
		l.add(b, a, b.room(a.region, r.Int64N(64)&^(align(a.item)-1)))
		if i%7 == 3 { // pieces of no bytes are allowed everywhere
			l.add(b, array{item: 1, shape: []int64{3, 0}, strides: []int64{1, 1}}, b.room(1, 0))
		}
	}
	l.image = pattern(r.Uint64(), b.used)
	b.put(b.arena.Base(), l.image)
	return l
}

func (l *layout) add(b *bench, a array, region device.Address) {
	n := a.bytes()
	l.arrays, l.regions = append(l.arrays, a), append(l.regions, region)
	l.pieces = append(l.pieces, device.Piece{Slot: b.room(n, 0), Bytes: n, Mem: a.strided(region)})
}

// memory is an array's part of an image of the bench, slot the part of its slot.
func (l *layout) memory(b *bench, image []byte, i int) []byte {
	at := int64(l.regions[i] - b.arena.Base())
	return image[at : at+l.arrays[i].region]
}

func (l *layout) slot(b *bench, image []byte, i int) []byte {
	at := int64(l.pieces[i].Slot - b.arena.Base())
	return image[at : at+l.pieces[i].Bytes]
}

// gathered compares the whole bench with the expected result of a gather: the slots have changed, and nothing else.
func (l *layout) gathered(b *bench, what string, sums []uint64) {
	b.t.Helper()
	want := bytes.Clone(l.image)
	now := b.get(b.arena.Base(), int64(len(want)))
	for i, p := range l.pieces {
		slot := l.slot(b, want, i)
		if p.Bytes > 0 {
			copy(slot, l.arrays[i].dense(l.memory(b, l.image, i)))
		}
		same(b.t, fmt.Sprintf("%s, piece %d of %d, %+v", what, i, len(l.pieces), l.arrays[i]), l.slot(b, now, i), slot)
		if sums != nil && sums[i] != checksum.Sum(slot) {
			b.t.Fatalf("%s: the sum of piece %d, %d bytes, is %#x, want %#x", what, i, p.Bytes, sums[i], checksum.Sum(slot))
		}
	}
	same(b.t, what+", outside of the slots", now, want)
}

// scattered does so for a scatter: the elements of the arrays have changed, and nothing between them.
func (l *layout) scattered(b *bench, what string) {
	b.t.Helper()
	want := bytes.Clone(l.image)
	now := b.get(b.arena.Base(), int64(len(want)))
	for i, p := range l.pieces {
		if p.Bytes > 0 && !p.Host {
			l.arrays[i].spread(l.memory(b, want, i), l.slot(b, l.image, i))
		}
		same(b.t, fmt.Sprintf("%s, array %d of %d, %+v", what, i, len(l.pieces), l.arrays[i]), l.memory(b, now, i), l.memory(b, want, i))
	}
	same(b.t, what+", outside of the arrays", now, want)
}

// align is the guaranteed alignment of an array of such elements: that of their type for some sizes, none for the others.
func align(item int64) int64 {
	if item&(item-1) == 0 && item <= 16 {
		return item
	}
	return 1
}

func anyArrays(r *rand.Rand) []array {
	count := 1 + r.IntN(12)
	if r.IntN(4) == 0 {
		count = 1
	}
	var all []array
	for range count {
		all = append(all, anyArray(r, []int64{30, 3000, 200_000, 700_000}[r.IntN(4)]))
	}
	return all
}

// gather fills slots from arrays of all shapes, with sums and without.
func gather(t *testing.T, m Machine) {
	b := newBench(t, m, 24*mib)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		b.used = 0
		gatherTwice(b, lay(b, r, anyArrays(r)), fmt.Sprintf("seed %d", seed))
	}
	b.close()
}

func gatherTwice(b *bench, l *layout, what string) {
	b.t.Helper()
	sums := got(b.lane.Gather(l.pieces, true))(b.t)
	must(b.t, sums.Fetch(b.lane))
	b.settle(b.lane)
	l.gathered(b, what+", with sums", sums.Take())
	b.put(b.arena.Base(), l.image)
	none, err := b.lane.Gather(l.pieces, false)
	if err != nil || none != nil {
		b.t.Fatalf("%s: sums %v that nobody asked for, %v", what, none, err)
	}
	b.settle(b.lane)
	l.gathered(b, what, nil)
}

// scatter fills arrays from slots and leaves the bytes between their elements alone.
func scatter(t *testing.T, m Machine) {
	b := newBench(t, m, 24*mib)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		b.used = 0
		l := lay(b, r, anyArrays(r))
		must(t, b.lane.Scatter(l.pieces))
		b.settle(b.lane)
		l.scattered(b, fmt.Sprintf("seed %d", seed))
	}
	b.close()
}

// manyPieces are more pieces than fit one launch, dense and strided ones mixed.
func manyPieces(t *testing.T, m Machine) {
	b := newBench(t, m, 24*mib)
	r := rand.New(rand.NewPCG(7, 7))
	var arrays []array
	for i := range 1700 {
		if i%3 == 0 {
			arrays = append(arrays, anyArray(r, 2000))
		} else {
			arrays = append(arrays, array{region: 1 + r.Int64N(5000), item: 1})
		}
	}
	l := lay(b, r, arrays)
	gatherTwice(b, l, "gather")
	b.put(b.arena.Base(), l.image)
	must(t, b.lane.Scatter(l.pieces))
	b.settle(b.lane)
	l.scattered(b, "scatter")
	b.close()
}

// hash computes sums of all lengths around the limits of the definition, at all kinds of addresses, one by one and together.
func hash(t *testing.T, m Machine) {
	b := newBench(t, m, 48*mib)
	const leaf = checksum.LeafBytes
	lengths := []int64{0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025, leaf - 1, leaf, leaf + 1, 2 * leaf, 5*leaf + 77, 65*leaf + 1}
	if m.Large {
		lengths = append(lengths, 17*mib+5)
	}
	var pieces []device.Piece
	var want []uint64
	for i, n := range lengths {
		p := pattern(uint64(i), n)
		at := b.room(n, int64(i%2*i))
		b.put(at, p)
		pieces, want = append(pieces, device.Piece{Slot: at, Bytes: n}), append(want, checksum.Sum(p))
	}
	compare := func(what string, have, want []uint64) {
		t.Helper()
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("%s: %x, want %x", what, have, want)
		}
	}
	all := got(b.lane.Hash(pieces))(t)
	var single []device.Sums
	for i := range pieces {
		single = append(single, got(b.lane.Hash(pieces[i:i+1]))(t))
	}
	b.settle(b.lane)
	compare("together", all.Take(), want)
	for i, s := range single {
		compare(fmt.Sprintf("%d bytes", lengths[i]), s.Take(), want[i:i+1])
	}
	none := got(b.lane.Hash(nil))(t)
	compare("no pieces", none.Take(), nil)
	b.close()
}

// sumsPool takes sums out of order, and discards some: their words are reused, and never by two at once.
func sumsPool(t *testing.T, m Machine) {
	b := newBench(t, m, 16*mib)
	type asked struct {
		sums device.Sums
		want uint64
	}
	var open []asked
	r := rand.New(rand.NewPCG(8, 8))
	slots := make([]device.Piece, 8)
	want := make([]uint64, len(slots))
	for i := range slots {
		n := 1 + r.Int64N(mib)
		p := pattern(uint64(i), n)
		slots[i] = device.Piece{Slot: b.room(n, 0), Bytes: n}
		b.put(slots[i].Slot, p)
		want[i] = checksum.Sum(p)
	}
	for range 400 {
		i := r.IntN(len(slots))
		open = append(open, asked{got(b.lane.Hash(slots[i : i+1]))(t), want[i]})
		if len(open) < 30 {
			continue
		}
		b.settle(b.lane)
		for _, i := range r.Perm(len(open))[:20] {
			if a := &open[i]; a.sums != nil && r.IntN(4) == 0 {
				a.sums.Discard()
				a.sums = nil
			} else if a.sums != nil {
				leaves := a.sums.Leaves()
				if have := a.sums.Take(); leaves != nil && checksum.Combine(leaves) != a.want || len(have) != 1 || have[0] != a.want {
					t.Fatalf("%x, want %x", have, a.want)
				}
				a.sums = nil
			}
		}
		kept := open[:0]
		for _, a := range open {
			if a.sums != nil {
				kept = append(kept, a)
			}
		}
		open = kept
	}
	b.settle(b.lane)
	b.close()
}

// hostPieces are pieces in pageable memory beside others in device memory: few bytes, which are staged, and many.
func hostPieces(t *testing.T, m Machine) {
	b := newBench(t, m, 56*mib)
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 9))
		b.used = 0
		size := int64(3000)
		if seed%3 == 2 {
			size = 3 * mib
		}
		var arrays []array
		for range 1 + r.IntN(5) {
			arrays = append(arrays, anyArray(r, size))
		}
		if seed%3 == 2 {
			arrays = append(arrays, array{region: 5*mib + 1, item: 1})
		}
		hostAndDevice(b, r, lay(b, r, arrays), fmt.Sprintf("seed %d", seed))
	}
	b.close()
}

// hostAndDevice moves most of the arrays to pageable memory, gathers them, and scatters the original bytes.
func hostAndDevice(b *bench, r *rand.Rand, l *layout, what string) {
	b.t.Helper()
	onHost := map[int][]byte{}
	for i, p := range l.pieces {
		if n := l.arrays[i].region; p.Bytes > 0 && r.IntN(3) > 0 {
			h := host(b.t, n)
			onHost[i] = h.Bytes(0, n)
			copy(onHost[i], l.memory(b, l.image, i))
			l.pieces[i].Host, l.pieces[i].Mem = true, l.arrays[i].strided(address(h))
		}
	}
	sums := got(b.lane.Gather(l.pieces, true))(b.t)
	for _, h := range onHost { // the caller may reuse sources in pageable memory at once
		clear(h)
	}
	must(b.t, sums.Fetch(b.lane))
	b.settle(b.lane)
	l.gathered(b, what, sums.Take())
	b.put(b.arena.Base(), l.image)
	must(b.t, b.lane.Scatter(l.pieces))
	b.settle(b.lane)
	l.scattered(b, what)
	for i, h := range onHost {
		want := make([]byte, len(h))
		l.arrays[i].spread(want, l.slot(b, l.image, i))
		same(b.t, fmt.Sprintf("%s, host array %d", what, i), h, want)
	}
}
