package kernel

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// work is a set of pieces in one memory, by offset: the memory can be at any address.
type work struct {
	memory []byte // slots, arrays, and the words of the sums at its end
	sums   int
	pieces []place
}

// place is one piece. The array's elements are at mem + index * strides.
type place struct {
	slot, mem, bytes int
	shape, strides   []int64
	item             int64
	host             bool
}

// drawWork draws pieces that overlap only where no kernel writes. dense is the largest size of contiguous ones.
func drawWork(t *rapid.T, count, dense int, scatter bool) *work {
	w := &work{}
	used := rapid.IntRange(0, 63).Draw(t, "begin")
	take := func(bytes, align, skew int) int {
		at := (used+align-1)/align*align + skew
		used = at + bytes
		return at
	}
	for range count {
		p := drawArray(t, dense, scatter)
		low, high := int64(0), p.item
		for i, n := range p.shape {
			if p.strides[i] < 0 {
				low += (n - 1) * p.strides[i]
			} else {
				high += (n - 1) * p.strides[i]
			}
		}
		if len(p.shape) == 0 {
			high = int64(p.bytes)
		}
		// Slots are multiples of 64, but no kernel depends on it.
		p.slot = take(p.bytes, 64, rapid.SampledFrom([]int{0, 0, 0, 4, 1}).Draw(t, "slot"))
		p.mem = take(int(high-low), 16, rapid.IntRange(0, 15).Draw(t, "skew")*rapid.IntRange(0, 1).Draw(t, "skewed")) - int(low)
		w.pieces = append(w.pieces, p)
	}
	w.sums = take(0, 8, 0)
	w.memory = make([]byte, (used+8*Leaves(w.at(0)))/4096*4096+4096)
	src := rand.NewChaCha8([32]byte{byte(count), byte(used), byte(used >> 8)})
	_, _ = src.Read(w.memory)
	return w
}

func drawArray(t *rapid.T, dense int, scatter bool) place {
	sizes := []*rapid.Generator[int]{rapid.IntRange(0, 300), rapid.IntRange(0, 5000), rapid.IntRange(0, dense)}
	if rapid.IntRange(0, 2).Draw(t, "dense") == 0 {
		return place{bytes: rapid.OneOf(sizes...).Draw(t, "bytes"), host: !scatter && rapid.IntRange(0, 5).Draw(t, "host") == 0}
	}
	p := place{item: rapid.SampledFrom([]int64{1, 2, 3, 4, 8, 12, 16, 24}).Draw(t, "item")}
	rank := rapid.IntRange(1, 5).Draw(t, "rank")
	limit := []int64{0, 3000, 90, 24, 10, 6}[rank]
	size := p.item
	for range rank {
		n := rapid.Int64Range(1, limit).Draw(t, "length")
		p.shape, size = append(p.shape, n), size*n
	}
	p.bytes, p.strides = int(size), make([]int64, rank)
	stride := p.item
	for _, axis := range rapid.Permutation(order(rank)).Draw(t, "order") {
		gap := rapid.SampledFrom([]int64{0, 0, p.item, 3 * p.item, 1, 16}).Draw(t, "gap")
		p.strides[axis] = stride + gap
		stride = p.strides[axis] * p.shape[axis]
		switch rapid.IntRange(0, 7).Draw(t, "sign") {
		case 0:
			p.strides[axis] = -p.strides[axis]
		case 1:
			if !scatter {
				p.strides[axis] = 0
			}
		}
	}
	return p
}

func order(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// at returns the pieces with the memory at an address.
func (w *work) at(base uint64) []device.Piece {
	pieces := make([]device.Piece, len(w.pieces))
	for i, p := range w.pieces {
		mem := model.Strided{Base: pointer(base + uint64(p.mem)), Shape: p.shape, Strides: p.strides, Item: p.item}
		pieces[i] = device.Piece{Slot: uintptr(base) + uintptr(p.slot), Bytes: int64(p.bytes), Mem: mem, Host: p.host}
	}
	return pieces
}

// plan is a Plan of the work with its memory at an address.
func (w *work) plan(base uint64, what string, sums bool) *Plan {
	p, words := &Plan{}, device.Address(0)
	if sums {
		words = uintptr(base) + uintptr(w.sums)
	}
	switch what {
	case gather:
		p.Gather(w.at(base), words)
	case scatter:
		p.Scatter(w.at(base))
	case hash:
		p.Hash(w.at(base), words)
	}
	return p
}

// done is the expected memory afterwards, computed byte by byte.
func (w *work) done(what string, sums bool) []byte {
	after := bytes.Clone(w.memory)
	leaves := after[w.sums:]
	for _, p := range w.pieces {
		slot := after[p.slot : p.slot+p.bytes]
		for i := 0; i < p.bytes && what != hash && !p.host; i++ {
			mem := p.memOf(i)
			if what == gather {
				slot[i] = after[mem]
			} else {
				after[mem] = slot[i]
			}
		}
		for ; sums && len(slot) > 0; leaves = leaves[8:] {
			n := min(len(slot), checksum.LeafBytes)
			*(*uint64)(unsafe.Pointer(&leaves[0])) = checksum.Leaf(slot[:n])
			slot = slot[n:]
		}
	}
	return after
}

// memOf is the offset in the array of a byte of the slot.
func (p *place) memOf(i int) int {
	if len(p.shape) == 0 {
		return p.mem + i
	}
	at, element := int64(p.mem)+int64(i)%p.item, int64(i)/p.item
	for a := len(p.shape) - 1; a >= 0; a-- {
		at += element % p.shape[a] * p.strides[a]
		element /= p.shape[a]
	}
	return int(at)
}

// aligned is memory at a multiple of 4096, like that of the processes that run the kernels.
func aligned(content []byte) []byte {
	room := make([]byte, len(content)+4096)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(room))) & 4095)
	return room[skip : skip+copy(room[skip:], content)]
}

func sameBytes(t interface {
	Fatalf(string, ...any)
}, got, want []byte) {
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("byte %d of %d: %#x, want %#x", i, len(want), got[i], want[i])
		}
	}
}

func drawTask(t *rapid.T) (what string, sums bool) {
	what = rapid.SampledFrom([]string{gather, scatter, hash}).Draw(t, "what")
	return what, what == hash || what == gather && rapid.Bool().Draw(t, "sums")
}

func TestTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		what, sums := drawTask(t)
		w := drawWork(t, rapid.SampledFrom([]int{0, 1, 5, 20, 60}).Draw(t, "count"), 3*checksum.LeafBytes, what == scatter)
		memory := aligned(w.memory)
		base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
		for _, l := range w.plan(base, what, sums).Launches() {
			if err := Twin(l.Kernel)(l.Blocks, l.Threads, l.Parameter); err != nil {
				t.Fatal(err)
			}
		}
		sameBytes(t, memory, w.done(what, sums))
		if sums {
			words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory[w.sums:]))), Leaves(w.at(base)))
			for i, sum := range Combine(w.at(base), words) {
				p := w.pieces[i]
				if want := checksum.Sum(memory[p.slot : p.slot+p.bytes]); sum != want {
					t.Fatalf("piece %d: sum %#x, want %#x", i, sum, want)
				}
			}
		}
	})
}

func TestManyPieces(t *testing.T) {
	const count = 2500
	memory := aligned(make([]byte, 2*count*192+8*count))
	_, _ = rand.NewChaCha8([32]byte{}).Read(memory)
	base := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	pieces := make([]device.Piece, count)
	for i := range pieces {
		mem := model.Strided{Base: unsafe.Pointer(&memory[count*192+i*192+i%3])}
		pieces[i] = device.Piece{Slot: base + uintptr(i*192), Bytes: int64(1 + i%180), Mem: mem}
	}
	var p Plan
	p.Gather(pieces, base+2*count*192)
	if got := len(p.Launches()); got != 3 {
		t.Errorf("%d pieces took %d launches", count, got)
	}
	for _, l := range p.Launches() {
		if err := Twin(l.Kernel)(l.Blocks, l.Threads, l.Parameter); err != nil {
			t.Fatal(err)
		}
	}
	for i := range pieces {
		from := memory[count*192+i*192+i%3:][:pieces[i].Bytes]
		if !bytes.Equal(memory[i*192:][:pieces[i].Bytes], from) {
			t.Fatalf("piece %d differs", i)
		}
		if got := *(*uint64)(unsafe.Pointer(&memory[2*count*192+8*i])); got != checksum.Leaf(from) {
			t.Fatalf("piece %d: hash %#x, want %#x", i, got, checksum.Leaf(from))
		}
	}
}

// Only numbers: no memory of this size is touched.
func TestLargeArraysAreSplit(t *testing.T) {
	for _, c := range []struct {
		shape, strides []int64
	}{
		{[]int64{3 << 31}, []int64{2}},
		{[]int64{5, 1 << 31}, []int64{1 << 40, 2}},
		{[]int64{1 << 20, 1 << 13}, []int64{1, 1 << 20}},
		{[]int64{2, 3, 2, 3, 2, 3, 2, 3, 2, 3}, []int64{1 << 40, 1 << 36, 1 << 32, 1 << 28, 1 << 24, 1 << 20, 1 << 16, 1 << 12, 1 << 8, 2}},
	} {
		bytes := int64(1)
		for _, n := range c.shape {
			bytes *= n
		}
		const slot, mem = 1 << 45, 1 << 46
		var p Plan
		p.Gather([]device.Piece{{Slot: slot, Bytes: bytes, Mem: model.Strided{Base: pointer(mem), Shape: c.shape, Strides: c.strides, Item: 1}}}, 0)
		next := uint64(slot)
		for _, l := range p.Launches() {
			layout := manyArrays
			if len(l.Parameter) == fewArrays.size() {
				layout = fewArrays
			}
			for i := range int(l.Parameter[arrayCount]) {
				a, err := layout.decode(l.Parameter, i)
				if err != nil {
					t.Fatal(err)
				}
				if a.slot != next || len(a.axes) > maxAxes || a.elements > maxElements {
					t.Fatalf("%v: part %d at %#x after %#x, %d axes, %d elements", c.shape, i, a.slot, next, len(a.axes), a.elements)
				}
				whole := place{mem: mem, shape: c.shape, strides: c.strides, item: 1}
				if first := whole.memOf(int(a.slot - slot)); first != int(a.mem) {
					t.Fatalf("%v: part %d begins at %#x, want %#x", c.shape, i, a.mem, first)
				}
				next += uint64(a.elements)
			}
		}
		if next != slot+uint64(bytes) {
			t.Errorf("%v: %d bytes of %d", c.shape, next-slot, bytes)
		}
	}
}

func TestTwinsRefuse(t *testing.T) {
	memory := aligned(make([]byte, 4096))
	base := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	mem := model.Strided{Base: unsafe.Pointer(&memory[1024]), Shape: []int64{4}, Strides: []int64{2}, Item: 1}
	var p Plan
	p.Gather([]device.Piece{{Slot: base, Bytes: 512, Mem: model.Strided{Base: mem.Base}}, {Slot: base + 512, Bytes: 4, Mem: mem}}, 0)
	for _, l := range p.Launches() {
		run := Twin(l.Kernel)
		for what, err := range map[string]error{
			"blocks":    run(l.Blocks+1, l.Threads, l.Parameter),
			"threads":   run(l.Blocks, l.Threads-1, l.Parameter),
			"parameter": run(l.Blocks, l.Threads, l.Parameter[1:]),
			"nothing":   run(l.Blocks, l.Threads, make([]byte, len(l.Parameter))),
		} {
			if err == nil {
				t.Errorf("%s: wrong %s pass", l.Kernel, what)
			}
		}
	}
}

// A reused plan allocates nothing for contiguous pieces.
func TestPlanReusesItsMemory(t *testing.T) {
	memory := make([]byte, 1<<16)
	pieces := make([]device.Piece, 100)
	for i := range pieces {
		pieces[i] = device.Piece{Slot: uintptr(64 * i), Bytes: 40, Mem: model.Strided{Base: unsafe.Pointer(&memory[100*i])}}
	}
	var p Plan
	if n := testing.AllocsPerRun(10, func() { p.Reset(); p.Gather(pieces, 64) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPlan(b *testing.B) {
	memory := make([]byte, 1<<16)
	pieces := make([]device.Piece, 500)
	for i := range pieces {
		pieces[i] = device.Piece{Slot: uintptr(64 * i), Bytes: 2 << 20, Mem: model.Strided{Base: unsafe.Pointer(&memory[100*i])}}
	}
	var p Plan
	for b.Loop() {
		p.Reset()
		p.Gather(pieces, 64)
	}
}
