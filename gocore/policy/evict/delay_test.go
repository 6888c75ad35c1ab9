package evict

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/policy/fragment"
)

// parts fills a table without gaps, over several leaves. Each part of it has its own classes, sizes and values. Where these are few, windows are equal in
// their promises and waits, and only some of them in their scores.
func parts(t *rapid.T, rng *rand.Rand, grain int64) (*fragment.Table[*int], []row) {
	tab := fragment.New[*int](500 * 25 * grain)
	end := int64(0)
	for range rapid.IntRange(1, 5).Draw(t, "parts") {
		classes := rapid.SampledFrom([][]fragment.Class{
			{fragment.Flushing}, {fragment.Flushing}, {fragment.Dirty}, {fragment.Promised}, {fragment.Dirty, fragment.Flushing}, {fragment.Dirty, fragment.Promised},
			{fragment.Dirty, fragment.Flushing, fragment.Promised}, {fragment.Flushing, fragment.Flushing, fragment.Held}, {fragment.Free, fragment.Dirty, fragment.Flushing, fragment.Promised, fragment.Held},
		}).Draw(t, "classes")
		least := rapid.Int64Range(1, 5).Draw(t, "least size")
		sizes := rapid.SampledFrom([]int64{1, 2, 20}).Draw(t, "sizes")
		values := rapid.SampledFrom([]int64{1, 3, 90}).Draw(t, "values")
		for range rapid.IntRange(1, 100).Draw(t, "fragments") {
			id, _ := tab.Place(grain*(least+rng.Int64N(sizes)), grain, new(int))
			f := tab.At(id)
			f.Class, f.ETA = classes[rng.IntN(len(classes))], 99+rng.Int64N(values)
			f.Touched, f.Born, f.Lane = rng.Int64N(values), uint32(rng.Int64N(values)), rng.Int32N(3)
			if rng.IntN(2) == 0 {
				f.Expected = rng.Int64N(values)
			}
			tab.Update(id)
			end = f.Offset + f.Size
		}
	}
	tab.Resize(end)
	return tab, rowsOf(tab)
}

// Where windows differ in promises and waits, the scan weighs few fragments: those of windows that may be better than the best so far. The choice is the
// best of all windows all the same.
func TestChoiceIsTheBestAmongFragmentsThatWait(t *testing.T) {
	for _, k := range []Kind{Score, LRU, FIFO} {
		t.Run(k.String(), rapid.MakeCheck(func(t *rapid.T) {
			grain := rapid.SampledFrom([]int64{1, 4, 16, 64}).Draw(t, "grain")
			tab, rows := parts(t, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), grain)
			r := request(t, rows, grain)
			if rapid.IntRange(0, 3).Draw(t, "plain") > 0 {
				r.Floor, r.Barred = -1, nil
				r.Align, r.NoWait, r.FlushRate = min(r.Align, grain), false, 0.5
			}
			r.Size = grain * rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, 3000)).Draw(t, "room")
			want := best(k, r, within(tab, rows))
			if w, ok := Choose(k, tab, r); ok != (want.First != fragment.None) || ok && w != want {
				t.Fatalf("%v %+v, by brute force %+v", ok, w, want)
			}
		}))
	}
}

// Behind a streak of fragments that are being flushed, a smaller fragment that needs no waiting does not make the room with one fragment less.
func TestAWindowBehindAStreakHoldsTheRoom(t *testing.T) {
	const size = 64
	for n := 61; n < 130; n++ {
		tab := fragment.New[*int](int64(n)*size + 1)
		for i := range n + 1 {
			bytes := int64(size)
			if i == n {
				bytes = 1
			}
			id, _ := tab.Place(bytes, 1, new(int))
			f := tab.At(id)
			f.Class, f.ETA = fragment.Flushing, 1000+int64(i)
			if i == n {
				f.Class = fragment.Free
			}
			tab.Update(id)
		}
		for need := range int64(6) {
			r := &Request{Size: (need + 1) * size, Now: 100, Floor: -1, Heads: []int64{0}, Intervals: []int64{1}, Start: fragment.None}
			if w, ok := Choose(Score, tab, r); !ok || w != best(Score, r, rowsOf(tab)) {
				t.Fatalf("room for %d of %d: %+v, by brute force %+v", need+1, n, w, best(Score, r, rowsOf(tab)))
			}
		}
	}
}
