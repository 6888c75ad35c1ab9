package evict

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"velocpy/gocore/policy/fragment"
)

// aged fills a table with n fragments whose rows are not in the order of their addresses, as after a long run.
func aged(n int, size func() int64, row func(i int, f *fragment.Fragment[*int])) *fragment.Table[*int] {
	rng := rand.New(rand.NewPCG(1, 2))
	t := fragment.New[*int](int64(n) << 19)
	var ids []fragment.ID
	for range n {
		id, ok := t.Place(size(), 1, new(int))
		if !ok {
			break
		}
		ids = append(ids, id)
	}
	for range 10 {
		rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids[:len(ids)/2] {
			t.Free(id)
		}
		for i := range ids[:len(ids)/2] {
			ids[i], _ = t.Place(1<<19, 1, new(int))
		}
	}
	i := 0
	for id := t.First(); id != fragment.None; id = t.Next(id) {
		if t.At(id).Class != fragment.Gap {
			row(i, t.At(id))
			t.Update(id)
			i++
		}
	}
	return t
}

// uneven fills a table with n fragments of 256 to 768 KiB, hardly two of them of the same size.
func uneven(n int, row func(i int, f *fragment.Fragment[*int])) *fragment.Table[*int] {
	rng := rand.New(rand.NewPCG(5, 6))
	t := fragment.New[*int](int64(n) << 20)
	for i := range n {
		id, _ := t.Place((1<<12+rng.Int64N(1<<13))<<6, 64, new(int))
		row(i, t.At(id))
		t.Update(id)
		if i == n-1 {
			t.Resize(t.At(id).Offset + t.At(id).Size)
		}
	}
	return t
}

func BenchmarkDecision(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	mixed := func(i int, f *fragment.Fragment[*int]) {
		switch rng.IntN(8) {
		case 0:
			f.Class = fragment.Promised
		case 1:
			f.Class, f.ETA = fragment.Flushing, 1e9+rng.Int64N(1e6)
		case 2, 3:
			f.Class = fragment.Dirty
		default:
			f.Class = fragment.Free
		}
		f.Lane = int32(rng.IntN(4))
		f.Expected, f.Touched, f.Born = fragment.Unexpected, rng.Int64N(1e6), rng.Uint32N(1e6)
		if rng.IntN(2) == 0 {
			f.Expected = rng.Int64N(10_000)
		}
	}
	free := func(i int, f *fragment.Fragment[*int]) {
		f.Class, f.Expected, f.Touched = fragment.Free, rng.Int64N(10_000), rng.Int64N(1e6)
	}
	all := func(classes ...fragment.Class) func(int, *fragment.Fragment[*int]) {
		return func(i int, f *fragment.Fragment[*int]) {
			mixed(i, f)
			f.Class, f.ETA = classes[rng.IntN(len(classes))], 1e9+rng.Int64N(1e6)
		}
	}
	dirty, flushing, promised := all(fragment.Dirty), all(fragment.Flushing), all(fragment.Promised)
	waiting := all(fragment.Dirty, fragment.Flushing, fragment.Promised)
	held := func(i int, f *fragment.Fragment[*int]) { f.Class = fragment.Held }
	for _, c := range []struct {
		name  string
		row   func(int, *fragment.Fragment[*int])
		size  int64
		align int64
	}{
		{"free one", free, 1 << 19, 1}, {"free four", free, 2 << 20, 1}, {"mixed one", mixed, 1 << 19, 64}, {"mixed four", mixed, 2 << 20, 64}, {"held", held, 1 << 19, 64},
		{"dirty one", dirty, 1 << 19, 64}, {"dirty four", dirty, 2 << 20, 64}, {"flushing one", flushing, 1 << 19, 64}, {"flushing four", flushing, 2 << 20, 64},
		{"promised one", promised, 1 << 19, 64}, {"promised four", promised, 2 << 20, 64}, {"waiting one", waiting, 1 << 19, 64}, {"waiting four", waiting, 2 << 20, 64},
		{"dirty uneven", dirty, 2 << 20, 64}, {"promised uneven", promised, 2 << 20, 64},
	} {
		for _, k := range []Kind{Score, LRU} {
			b.Run(fmt.Sprintf("%s/%s", c.name, k), func(b *testing.B) {
				t := aged(4096, func() int64 { return 1 << 19 }, c.row)
				if strings.HasSuffix(c.name, "uneven") {
					t = uneven(4096, c.row)
				}
				breaks := strings.HasPrefix(c.name, "promised") || strings.HasPrefix(c.name, "waiting")
				r := Request{Size: c.size, Align: c.align, Now: 1e9, Count: 1e6, Heads: make([]int64, 4), Intervals: []int64{1, 1, 1, 1}, FlushRate: 1, Floor: -1, Start: fragment.None, Break: breaks}
				for b.Loop() {
					Choose(k, t, &r)
				}
			})
		}
	}
}
