package evict

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
	"velocpy/gocore/fragment"
)

// streaks fills a table with runs of neighbours of one class and one size, over several leaves, and now and then one of another kind among them.
// Some runs begin a few fragments before a leaf ends, so that their first window is complete in the next leaf.
func streaks(t *rapid.T, rng *rand.Rand, grain int64, early int) (*fragment.Table[*int], []row) {
	n := rapid.IntRange(1, 400).Draw(t, "fragments")
	length := rapid.SampledFrom([]int{1, 8, 70, 500}).Draw(t, "length")
	tab := fragment.New[*int](128 * int64(n))
	classes := rapid.SampledFrom([][]fragment.Class{
		{fragment.Dirty}, {fragment.Promised}, {fragment.Dirty, fragment.Promised}, {fragment.Dirty, fragment.Flushing, fragment.Held},
		{fragment.Free, fragment.Dirty, fragment.Promised, fragment.Flushing, fragment.Held},
	}).Draw(t, "classes")
	size, class := grain, classes[0]
	const leaf = 61
	varied := rapid.Bool().Draw(t, "sizes vary")
	for i := range n {
		turns := (i+early)%leaf == 0
		if small := (i+early+1)%leaf == 0; small && varied {
			size = grain
		} else if turns && varied {
			size = 2 * grain
		}
		if varied && rng.IntN(length) == 0 {
			size = grain * (1 + rng.Int64N(max(96/grain, 1)))
		}
		if turns || rng.IntN(length) == 0 {
			class = classes[rng.IntN(len(classes))]
		}
		id, ok := tab.Place(size, grain, new(int))
		if !ok {
			break
		}
		f := tab.At(id)
		f.Class, f.ETA, f.Touched, f.Born, f.Lane = class, rng.Int64N(300), rng.Int64N(90), rng.Uint32N(90), rng.Int32N(3)
		if rng.IntN(2) == 0 {
			f.Expected = rng.Int64N(40)
		}
		tab.Update(id)
		if rng.IntN(4*length) == 0 {
			tab.Free(id)
		}
	}
	if rapid.Bool().Draw(t, "full") { // or else the gap at the end is better than all that waits
		last := fragment.None
		for id := tab.First(); id != fragment.None; id = tab.Next(id) {
			last = id
		}
		if f := tab.At(last); f.Class == fragment.Gap {
			tab.Resize(f.Offset)
		}
	}
	return tab, rowsOf(tab)
}

// Among fragments that are alike, where the scan compares scores alone, the choice is the best of all windows, too.
func TestChoiceIsTheBestAmongAlikeFragments(t *testing.T) {
	for _, k := range []Kind{Score, LRU, FIFO} {
		t.Run(k.String(), rapid.MakeCheck(func(t *rapid.T) {
			grain := rapid.SampledFrom([]int64{1, 4, 16, 64}).Draw(t, "grain")
			early := rapid.IntRange(0, 9).Draw(t, "early")
			tab, rows := streaks(t, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), grain, early)
			r := request(t, rows, grain)
			if rapid.Bool().Draw(t, "plain") {
				r.Floor, r.Barred = -1, nil
				r.Align, r.NoWait = min(r.Align, grain), false
			}
			r.Size = grain * rapid.OneOf(rapid.Just(int64(early)+1), rapid.Just(2*int64(early)+2), rapid.Int64Range(1, 10), rapid.Int64Range(1, 300)).Draw(t, "room")
			want := best(k, r, within(tab, rows))
			if w, ok := Choose(k, tab, r); ok != (want.First != fragment.None) || ok && w != want {
				t.Fatalf("%v %+v, by brute force %+v", ok, w, want)
			}
		}))
	}
}
