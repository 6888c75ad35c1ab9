package evict

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/policy/fragment"
)

// streaks fills a table with runs of neighbours of one class and one size, over several leaves, with a different one among them now and then. Some
// runs begin a few fragments before a leaf ends, so that their first window is complete in the next leaf.
func streaks(t *rapid.T, rng *rand.Rand, grain int64, early int) (*fragment.Table[*int], []row) {
	n := rapid.IntRange(1, 400).Draw(t, "fragments")
	length := rapid.SampledFrom([]int{1, 8, 70, 500}).Draw(t, "length")
	tab := fragment.New[*int](128 * int64(n))
	classes := rapid.SampledFrom([][]fragment.Class{
		{fragment.Dirty}, {fragment.Promised}, {fragment.Flushing}, {fragment.Flushing, fragment.Promised}, {fragment.Dirty, fragment.Promised}, {fragment.Dirty, fragment.Flushing, fragment.Held},
		{fragment.Free, fragment.Dirty, fragment.Promised, fragment.Flushing, fragment.Held},
	}).Draw(t, "classes")
	size, class := grain, classes[0]
	const leaf = 61
	few := rapid.SampledFrom([]int64{2, 90}).Draw(t, "ages and ends")
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
		f.Class, f.ETA, f.Touched, f.Born, f.Lane = class, 100+rng.Int64N(few), rng.Int64N(few), rng.Uint32N(90), rng.Int32N(3)
		if rng.IntN(2) == 0 {
			f.Expected = rng.Int64N(40)
		}
		tab.Update(id)
		if rng.IntN(4*length) == 0 {
			tab.Free(id)
		}
	}
	if rapid.Bool().Draw(t, "full") { // otherwise the gap at the end is better than every window that waits
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

// The first window of a streak may be complete only in the leaf after the one where the streak began. It must be compared correctly with all windows
// before it.
func TestChoiceIsTheBestWhereverAStreakBegins(t *testing.T) {
	const n, size = 130, int64(64)
	classes := []fragment.Class{fragment.Free, fragment.Flushing, fragment.Dirty, fragment.Promised}
	for _, early := range classes {
		for _, late := range classes {
			for begin := 50; begin < 70; begin++ {
				tab := fragment.New[*int](n * size)
				for i := range n {
					id, _ := tab.Place(size, size, new(int))
					f := tab.At(id)
					f.Class, f.ETA, f.Touched = early, 1000, int64(i%7)
					if i >= begin {
						f.Class, f.ETA = late, 1000+int64(i%5)
					}
					tab.Update(id)
				}
				for need := range int64(6) {
					for _, k := range []Kind{Score, LRU} {
						r := &Request{Size: (need + 1) * size, Now: 100, Count: 100, FlushRate: 2, Floor: -1, Break: true, Heads: []int64{0}, Intervals: []int64{1}, Start: fragment.None}
						if w, ok := Choose(k, tab, r); !ok || w != best(k, r, rowsOf(tab)) {
							t.Fatalf("%v, %v before %v from %d on, room for %d: %+v, by brute force %+v", k, early, late, begin, need+1, w, best(k, r, rowsOf(tab)))
						}
					}
				}
			}
		}
	}
}
