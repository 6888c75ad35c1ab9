package copier

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

func random(n int) []byte {
	p := make([]byte, n)
	src := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = src.Read(p)
	return p
}

// eagerPool helps with jobs of any size, so that small ones have the same hazards.
func eagerPool(n int) *Pool {
	pool := NewPool(n)
	pool.contiguous, pool.strided = 0, 0
	return pool
}

func address(p []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }

// array is a Strided with the Go memory behind it.
type array struct {
	model.Strided
	memory []byte
}

// offsets lists, in dense order, the offset in memory of each byte of the array: the naive reference.
func (a *array) offsets() []int {
	base := int(uintptr(a.Base) - uintptr(address(a.memory)))
	if len(a.Shape) == 0 {
		out := make([]int, len(a.memory)-base)
		for i := range out {
			out[i] = base + i
		}
		return out
	}
	var out []int
	var visit func(axis, off int)
	visit = func(axis, off int) {
		if axis == len(a.Shape) {
			for i := range int(a.Item) {
				out = append(out, off+i)
			}
			return
		}
		for i := range int(a.Shape[axis]) {
			visit(axis+1, off+i*int(a.Strides[axis]))
		}
	}
	visit(0, base)
	return out
}

// drawArray draws an array of at most about limit bytes: dense axes in any order and direction, some with padding, some broadcast (stride 0, only if
// it is read).
func drawArray(t *rapid.T, limit int, readOnly bool) *array {
	item := rapid.SampledFrom([]int64{1, 2, 3, 4, 5, 8, 12, 16, 24, 33}).Draw(t, "item")
	shape := rapid.SliceOfN(rapid.Int64Range(0, 9), 0, 5).Draw(t, "shape")
	if len(shape) > 0 && rapid.Bool().Draw(t, "long") {
		shape[rapid.IntRange(0, len(shape)-1).Draw(t, "which")] = int64(rapid.IntRange(1, limit/int(item)).Draw(t, "length"))
	}
	total := item
	for i := range shape {
		if shape[i] > 1 && total*shape[i] > int64(limit) {
			shape[i] = max(1, int64(limit)/total)
		}
		total *= max(1, shape[i])
	}
	strides := make([]int64, len(shape))
	order := rapid.Permutation(indices(len(shape))).Draw(t, "order")
	extent, below := item, int64(0)
	for _, axis := range order {
		n := max(1, shape[axis])
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0 && readOnly:
			strides[axis] = 0
			continue
		case kind == 1 && extent < int64(limit):
			extent += rapid.Int64Range(1, 7).Draw(t, "padding")
		case kind == 2:
			strides[axis] = -extent
			below += extent * (n - 1)
			extent *= n
			continue
		}
		strides[axis] = extent
		extent *= n
	}
	front := rapid.Int64Range(0, 9).Draw(t, "front")
	a := &array{memory: random(int(front + extent + 3))}
	a.Strided = model.Strided{Shape: shape, Strides: strides, Item: item, Base: unsafe.Add(address(a.memory), front+below)}
	if len(shape) == 0 {
		a.memory = a.memory[:front+item]
	}
	return a
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// runAll does a job in slices of an absurdly small budget, to use every way out of Run.
func runAll(j *Job, budget time.Duration) (slices int) {
	for slices = 1; !j.Run(budget); slices++ {
	}
	return slices
}

// Random arrays, several per job, compared with copying byte by byte; slots are in one buffer with guard bytes between them.
func TestJobAgainstReference(t *testing.T) {
	pool := eagerPool(3)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		dir := rapid.SampledFrom([]Direction{Gather, Scatter, Verify}).Draw(t, "direction")
		limit := rapid.SampledFrom([]int{200, 5000, 3 * unitBytes}).Draw(t, "limit")
		count := rapid.IntRange(0, 5).Draw(t, "pieces")
		opt := Options{Checksum: rapid.Bool().Draw(t, "checksum")}
		if rapid.Bool().Draw(t, "helpers") {
			opt.Pool = pool
		}
		const guard = 13
		slots := random(guard)
		arrays, where := make([]*array, count), make([][]int, count)
		starts := make([]int, count)
		for i := range count {
			arrays[i] = drawArray(t, limit, dir != Scatter)
			where[i] = arrays[i].offsets()
			starts[i] = len(slots)
			slots = append(slots, random(len(where[i])+guard)...)
		}
		pieces := make([]Piece, count)
		wantSlots := bytes.Clone(slots)
		wantMemory := make([][]byte, count)
		for i, a := range arrays {
			pieces[i] = Piece{Slot: unsafe.Add(address(slots), starts[i]), Bytes: int64(len(where[i])), Mem: a.Strided}
			if err := a.Check(pieces[i].Bytes); err != nil {
				t.Fatal(err)
			}
			wantMemory[i] = bytes.Clone(a.memory)
			for k, off := range where[i] {
				switch dir {
				case Gather:
					wantSlots[starts[i]+k] = a.memory[off]
				case Scatter:
					wantMemory[i][off] = slots[starts[i]+k]
				}
			}
		}
		want := make([]uint64, count)
		for i := range want {
			want[i] = checksum.Sum(wantSlots[starts[i]:][:len(where[i])])
		}
		j := NewJob(dir, pieces, opt)
		runAll(j, time.Duration(rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "budget")))
		if !bytes.Equal(slots, wantSlots) {
			t.Fatal("slots differ")
		}
		for i, a := range arrays {
			if !bytes.Equal(a.memory, wantMemory[i]) {
				t.Fatalf("memory of piece %d differs", i)
			}
		}
		sums := j.Sums()
		if !opt.Checksum && dir != Verify {
			if sums != nil {
				t.Fatal("checksums nobody asked for")
			}
		} else {
			if len(sums) != count {
				t.Fatalf("%d sums of %d", len(sums), count)
			}
			for i := range want {
				if sums[i] != want[i] {
					t.Fatalf("sum of piece %d is %#x, want %#x", i, sums[i], want[i])
				}
			}
		}
		j.Free()
	})
}

// Large arrays, several units each, with unit borders inside of elements.
func TestLargeStrided(t *testing.T) {
	pool := eagerPool(2)
	defer pool.Close()
	const n = 5*unitBytes/3 + 7
	for _, c := range []struct {
		name    string
		item    int64
		shape   []int64
		strides []int64
		base    int
	}{
		{"every second byte", 1, []int64{n}, []int64{2}, 0},
		{"backwards", 8, []int64{n / 8}, []int64{-8}, n/8*8 - 8},
		{"odd element", 7, []int64{n / 7}, []int64{11}, 5},
		{"short rows", 4, []int64{n / 12, 3}, []int64{16, 4}, 0},
		{"transposed", 8, []int64{1000, 300}, []int64{8, 8000}, 0},
		{"broadcast", 4, []int64{500, 1000}, []int64{0, 4}, 0},
		{"three axes with a hole", 2, []int64{100, 90, 70}, []int64{2 * 71 * 91, 2 * 71, 2}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &array{memory: random(11*n/7 + 4<<20)}
			a.Strided = model.Strided{Base: unsafe.Add(address(a.memory), c.base), Shape: c.shape, Strides: c.strides, Item: c.item}
			where := a.offsets()
			slot := make([]byte, len(where))
			pieces := []Piece{{Slot: address(slot), Bytes: int64(len(where)), Mem: a.Strided}}
			j := NewJob(Gather, pieces, Options{Checksum: true, Pool: pool})
			runAll(j, 1)
			for k, off := range where {
				if slot[k] != a.memory[off] {
					t.Fatalf("byte %d differs", k)
				}
			}
			sum := checksum.Sum(slot)
			if j.Sums()[0] != sum {
				t.Fatal("checksum")
			}
			if c.name == "broadcast" {
				return // several elements at one address are no destination
			}
			before := bytes.Clone(a.memory)
			back := NewJob(Scatter, pieces, Options{Checksum: true, Pool: pool})
			runAll(back, 1)
			if back.Sums()[0] != sum || !bytes.Equal(a.memory, before) {
				t.Fatal("scattering what was gathered changes the array")
			}
		})
	}
}

func contiguous(dst, src []byte) []Piece {
	return []Piece{{Slot: address(dst), Bytes: int64(len(dst)), Mem: model.Strided{Base: address(src)}}}
}

func TestBudgetIsKeptAndEverySliceGetsOn(t *testing.T) {
	src, dst := random(64<<20), make([]byte, 64<<20)
	j := NewJob(Gather, contiguous(dst, src), Options{Checksum: true})
	slices := runAll(j, 1)
	if want := len(src) / watchBytes; slices != want {
		t.Errorf("%d slices of one nanosecond, want %d", slices, want)
	}
	if !j.Run(1) || !bytes.Equal(src, dst) {
		t.Error("a job that is done must stay so")
	}
	if j.Sums()[0] != checksum.Sum(src) {
		t.Error("checksum")
	}
}

// Between two Runs no thread touches the memory: the slot is overwritten then, and an abandoned job must not undo that.
func TestNothingIsTouchedBetweenRuns(t *testing.T) {
	pool := eagerPool(4)
	defer pool.Close()
	src := random(16 << 20)
	dst := make([]byte, len(src))
	for range 50 {
		j := NewJob(Gather, contiguous(dst, src), Options{Pool: pool, Checksum: true})
		for range 1 + rand.IntN(5) {
			if j.Run(1) {
				break
			}
			clear(dst) // the race detector watches, too
		}
		clear(dst)
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		if !bytes.Equal(dst, make([]byte, len(dst))) {
			t.Fatal("a helper wrote after Run had returned")
		}
		j.Free()
	}
}

// Many threads, jobs of all sizes, one pool, jobs reused through Free.
func TestConcurrentJobs(t *testing.T) {
	pool := eagerPool(2)
	defer pool.Close()
	var all sync.WaitGroup
	for g := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			src := random(3<<20 + g)
			dst := make([]byte, len(src))
			for i := range 60 {
				n := rand.IntN(len(src))
				if i%2 == 0 {
					n = rand.IntN(3000)
				}
				clear(dst[:n])
				j := NewJob(Gather, contiguous(dst[:n], src[:n]), Options{Checksum: true, Pool: pool})
				runAll(j, time.Duration(i%3)*time.Microsecond)
				if !bytes.Equal(dst[:n], src[:n]) || j.Sums()[0] != checksum.Sum(src[:n]) {
					t.Errorf("job of %d bytes went wrong", n)
				}
				j.Free()
			}
		}()
	}
	all.Wait()
}

func TestPoolClose(t *testing.T) {
	for _, n := range []int{-1, 0, 2} {
		pool := NewPool(n)
		pool.Close()
		pool.Close()
		src := random(4 << 20)
		dst := make([]byte, len(src))
		for range 20 {
			j := NewJob(Gather, contiguous(dst, src), Options{Pool: pool})
			runAll(j, 0)
		}
		if !bytes.Equal(src, dst) {
			t.Error("a closed pool spoils jobs")
		}
	}
}

func TestCheck(t *testing.T) {
	good := model.Strided{Shape: []int64{2, 3}, Strides: []int64{24, 8}, Item: 8}
	for _, c := range []struct {
		s     model.Strided
		bytes int64
		ok    bool
	}{
		{good, 48, true}, {good, 47, false}, {good, -1, false}, {model.Strided{}, 5, true}, {model.Strided{}, -5, false},
		{model.Strided{Shape: []int64{2}, Item: 8}, 16, false},
		{model.Strided{Shape: []int64{2}, Strides: []int64{8}}, 0, false},
		{model.Strided{Shape: []int64{-2}, Strides: []int64{8}, Item: 8}, 16, false},
		{model.Strided{Shape: []int64{-2, -1}, Strides: []int64{8, 8}, Item: 8}, 16, false},
		{model.Strided{Shape: []int64{0, 5}, Strides: []int64{8, 8}, Item: 8}, 0, true},
		{model.Strided{Shape: []int64{5, 0}, Strides: []int64{8, 8}, Item: 8}, 8, false},
		{model.Strided{Shape: []int64{math.MaxInt64, 0}, Strides: []int64{8, 8}, Item: 8}, 0, true},
		{model.Strided{Shape: []int64{1 << 32, 1 << 32}, Strides: []int64{8, 8}, Item: 8}, 0, false},
		{model.Strided{Shape: []int64{1 << 30, 1 << 30}, Strides: []int64{0, 0}, Item: 8}, 1 << 63 >> 1, false},
	} {
		if err := c.s.Check(c.bytes); (err == nil) != c.ok {
			t.Errorf("%+v for %d bytes: %v", c.s, c.bytes, err)
		}
	}
}

func TestCollapse(t *testing.T) {
	for _, c := range []struct {
		shape, strides []int64
		item           int64
		wantAxes       string
		wantItem       int64
	}{
		{[]int64{4, 5, 6}, []int64{240, 48, 8}, 8, "[]", 960},
		{[]int64{4, 5, 6}, []int64{480, 48, 8}, 8, "[{4 480}]", 240},
		{[]int64{4, 5, 6}, []int64{10 * 48, 2 * 48, 8}, 8, "[{20 96}]", 48},
		{[]int64{4, 1, 6}, []int64{48, 12345, 8}, 8, "[]", 192},
		{[]int64{6}, []int64{-8}, 8, "[{6 -8}]", 8},
		{[]int64{4, 6}, []int64{-48, -8}, 8, "[{24 -8}]", 8},
		{[]int64{4, 6}, []int64{0, 0}, 8, "[{24 0}]", 8},
		{[]int64{4, 6}, []int64{8, 32}, 8, "[{4 8} {6 32}]", 8},
		{[]int64{1, 1}, []int64{7, 9}, 3, "[]", 3},
	} {
		s := model.Strided{Shape: c.shape, Strides: c.strides, Item: c.item}
		axes, item := s.Collapse(nil)
		if got := fmt.Sprint(axes); got != c.wantAxes || item != c.wantItem {
			t.Errorf("%v %v: %s, %d bytes", c.shape, c.strides, got, item)
		}
	}
}

func TestTenSmallPiecesAllocateLittle(t *testing.T) {
	src, dst := random(10<<10), make([]byte, 10<<10)
	pieces := make([]Piece, 10)
	for i := range pieces {
		pieces[i] = Piece{Slot: address(dst[i<<10:]), Bytes: 1 << 10, Mem: model.Strided{Base: address(src[i<<10:])}}
	}
	allocs := testing.AllocsPerRun(1000, func() {
		j := NewJob(Gather, pieces, Options{Checksum: true})
		j.Run(0)
		j.Free()
	})
	if allocs > 1 && !raceEnabled {
		t.Errorf("%v allocations", allocs)
	}
	if !bytes.Equal(src, dst) {
		t.Error("bytes differ")
	}
}

// A panic in a helper must surface in Run, with the helper gone, and the job must not be reused.
func TestPanicOfAHelper(t *testing.T) {
	src, dst := random(1<<20), make([]byte, 1<<20)
	j := NewJob(Gather, contiguous(dst, src), Options{})
	j.parts[0].axes, j.parts[0].item = []model.Axis{{N: 1, Stride: 1}}, 0 // divides by zero
	j.gate.Store(0)
	if !j.enter() {
		t.Fatal("an open gate lets nobody in")
	}
	j.help()
	if j.gate.Load() != 0 {
		t.Errorf("%d helpers inside", j.gate.Load())
	}
	if _, poisoned := safego.Poisoned(); !poisoned {
		t.Error("not poisoned")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Run must not go on")
			}
		}()
		j.Run(0)
	}()
	j.Free()
	for range 10 {
		if NewJob(Gather, nil, Options{}) == j {
			t.Error("a broken job is used again")
		}
	}
}

// If the caller itself panics, helpers are gone as well before the panic leaves Run.
func TestPanicOfTheCallerWaitsForHelpers(t *testing.T) {
	pool := eagerPool(2)
	defer pool.Close()
	src, dst := random(16<<20), make([]byte, 16<<20)
	for range 20 {
		j := NewJob(Gather, contiguous(dst, src), Options{Pool: pool})
		j.parts = append(j.parts, part{slot: address(dst), axes: []model.Axis{{N: 1, Stride: 1}}, first: j.units, bytes: unitBytes})
		j.units++
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
				if g := j.gate.Load(); g != closed {
					t.Errorf("gate is %d", g)
				}
				clear(dst) // the race detector watches
			}()
			j.Run(0)
		}()
	}
}
