package fragment

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"velocpy/gocore/policy/lifecycle"
)

// buffer is the state that the table represents: an owner for every byte, 0 for none.
type buffer []int

// runs lists the offset and length of every maximal run of free bytes.
func (b buffer) runs() (list [][2]int64) {
	for i := 0; i < len(b); i++ {
		if b[i] != 0 {
			continue
		}
		j := i
		for j < len(b) && b[j] == 0 {
			j++
		}
		list = append(list, [2]int64{int64(i), int64(j - i)})
		i = j
	}
	return list
}

// mustPlace tells whether the table must be able to place a request: a gap is in a larger size class than the request with its worst padding.
func (b buffer) mustPlace(size, align int64) bool {
	for _, r := range b.runs() {
		if binOf(r[1]) > binOf(size+align-1) {
			return true
		}
	}
	return false
}

func (b buffer) take(owner int, f *Fragment[int]) error {
	if f.Offset < 0 || f.Offset+f.Size > int64(len(b)) {
		return fmt.Errorf("[%d,+%d) lies outside", f.Offset, f.Size)
	}
	for i := f.Offset; i < f.Offset+f.Size; i++ {
		if b[i] != 0 {
			return fmt.Errorf("byte %d belongs to %d already", i, b[i])
		}
		b[i] = owner
	}
	return nil
}

func TestTableAgreesWithAMapOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.OneOf(rapid.Int64Range(0, 40), rapid.Int64Range(0, 4000)).Draw(t, "capacity")
		tab, buf := New[int](capacity), make(buffer, capacity)
		live := map[int]ID{}
		var order []int
		next := 1
		request := func(t *rapid.T) (size, align int64) {
			size = rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, capacity/4+1), rapid.Int64Range(1, capacity+10)).Draw(t, "size")
			return size, rapid.SampledFrom([]int64{1, 1, 2, 3, 8, 16, 64, 100}).Draw(t, "align")
		}
		placed := func(t *rapid.T, id ID, size, align int64) {
			f := tab.At(id)
			if f.Size != size || f.Offset%align != 0 || f.Owner != next || f.Class != Held || f.State != lifecycle.Init ||
				f.Expected != Unexpected || f.Pins != 0 || f.Transfers != 0 || f.Verified || f.ETA != 0 {
				t.Fatalf("placed %d bytes aligned to %d for %d: %+v", size, align, next, *f)
			}
			if err := buf.take(next, f); err != nil {
				t.Fatal(err)
			}
			f.Pins, f.Transfers, f.ETA, f.Verified, f.State = 1, 2, 3, true, lifecycle.Flushed // the next owner must not see any of these
			f.Expected, f.Touched, f.Born, f.Lane, f.Class = 9, 9, 9, 9, Free
			tab.Update(id)
			live[next] = id
			order = append(order, next)
			next++
		}
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				size, align := request(t)
				id, ok := tab.Place(size, align, next)
				switch {
				case ok:
					placed(t, id, size, align)
				case buf.mustPlace(size, align):
					t.Fatalf("no place for %d bytes aligned to %d among gaps %v", size, align, buf.runs())
				}
			},
			"place in": func(t *rapid.T) {
				size, align := request(t)
				var ids []ID
				for id := tab.First(); id != None; id = tab.Next(id) {
					ids = append(ids, id)
				}
				if len(ids) == 0 {
					t.Skip("an empty buffer")
				}
				in := rapid.SampledFrom(ids).Draw(t, "gap")
				f := *tab.At(in)
				want := f.Class == Gap && f.Offset < tab.Capacity() && f.Size-Padding(f.Offset, align) >= size
				id, ok := tab.PlaceIn(in, size, align, next)
				if ok != want {
					t.Fatalf("%d bytes aligned to %d in %+v: %v", size, align, f, ok)
				}
				if ok {
					if at := tab.At(id).Offset; at != f.Offset+Padding(f.Offset, align) {
						t.Fatalf("placed at %d in %+v", at, f)
					}
					placed(t, id, size, align)
				}
			},
			"place from": func(t *rapid.T) {
				var gaps []ID
				for id := tab.First(); id != None; id = tab.Next(id) {
					if f := tab.At(id); f.Class == Gap && f.Offset < tab.Capacity() {
						gaps = append(gaps, id)
					}
				}
				if len(gaps) == 0 {
					t.Skip("no gap")
				}
				in := rapid.SampledFrom(gaps).Draw(t, "gap")
				f := *tab.At(in)
				from := rapid.Int64Range(0, f.Size-1).Draw(t, "from")
				size := rapid.Int64Range(1, f.Size-from).Draw(t, "size")
				rest := f.Size - from - size
				id, behind := tab.PlaceFrom(in, f.Offset+from, size, next)
				if tab.At(id).Offset != f.Offset+from || (behind == None) != (rest == 0) {
					t.Fatalf("%d bytes from %d in %+v: %+v, and %d behind", size, from, f, *tab.At(id), behind)
				}
				if behind != None && (tab.Next(id) != behind || tab.At(behind).Class != Gap || tab.At(behind).Size != rest) {
					t.Fatalf("behind %d bytes from %d in %+v there is %+v", size, from, f, *tab.At(behind))
				}
				placed(t, id, size, 1)
			},
			"cut": func(t *rapid.T) {
				if len(order) == 0 {
					t.Skip("nothing lives")
				}
				owner := rapid.SampledFrom(order).Draw(t, "which")
				whole := *tab.At(live[owner])
				from := rapid.Int64Range(0, whole.Size-1).Draw(t, "from")
				size := rapid.Int64Range(1, whole.Size-from).Draw(t, "size")
				part, behind := tab.Cut(live[owner], whole.Offset+from, size)
				if (part == live[owner]) != (from == 0) || (behind == None) != (from+size == whole.Size) {
					t.Fatalf("[%d,+%d) of %+v is %d, with %d behind", from, size, whole, part, behind)
				}
				owns := func(id ID, offset, size int64) { // the row must equal the whole's except for the place
					want := whole
					want.Offset, want.Size = offset, size
					if f := tab.At(id); *f != want {
						t.Fatalf("a part is %+v, not %+v", *f, want)
					}
					if live[owner] == id {
						return
					}
					for i := offset; i < offset+size; i++ {
						buf[i] = next
					}
					tab.At(id).Owner, live[next] = next, id
					order = append(order, next)
					next++
				}
				if from > 0 {
					owns(live[owner], whole.Offset, from)
				}
				owns(part, whole.Offset+from, size)
				if behind != None {
					owns(behind, whole.Offset+from+size, whole.Size-from-size)
				}
			},
			"rank": func(t *rapid.T) {
				tab.RankBy(rapid.SampledFrom([]Rank{ByRestore, ByUse, ByStay}).Draw(t, "rank"))
			},
			"free": func(t *rapid.T) {
				if len(order) == 0 {
					t.Skip("nothing lives")
				}
				i := rapid.IntRange(0, len(order)-1).Draw(t, "which")
				owner := order[i]
				order = append(order[:i], order[i+1:]...)
				was := *tab.At(live[owner])
				for j := range buf {
					if buf[j] == owner && int64(j) < tab.Capacity() {
						buf[j] = 0
					} else if buf[j] == owner {
						buf[j] = barred
					}
				}
				left := tab.Free(live[owner])
				delete(live, owner)
				if (left == None) != (was.Offset >= tab.Capacity()) {
					t.Fatalf("freeing %+v in %d bytes left %d", was, tab.Capacity(), left)
				}
				if left == None {
					return
				}
				gap := tab.At(left)
				was.Size = min(was.Size, tab.Capacity()-was.Offset)
				if gap.Class != Gap || gap.Offset > was.Offset || gap.Offset+gap.Size < was.Offset+was.Size || gap.Owner != 0 || gap.Pins != 0 || gap.Transfers != 0 {
					t.Fatalf("freeing %+v made %+v", was, *gap)
				}
			},
			"grow": func(t *rapid.T) {
				if tab.Capacity() > 10000 {
					t.Skip("large enough")
				}
				resize(t, tab, &buf, tab.Capacity()+rapid.Int64Range(0, 200).Draw(t, "more"))
			},
			"shrink": func(t *rapid.T) {
				resize(t, tab, &buf, tab.Capacity()-rapid.Int64Range(0, 200).Draw(t, "less"))
			},
			"resize": func(t *rapid.T) {
				resize(t, tab, &buf, rapid.Int64Range(0, capacity+100).Draw(t, "to"))
			},
			"": func(t *rapid.T) {
				if err := tab.Check(); err != nil {
					t.Fatal(err)
				}
				compare(t, tab, buf, live)
			},
		})
	})
}

// resize changes the size of the table. The buffer of bytes keeps the part behind its end, with barred bytes between.
func resize(t *rapid.T, tab *Table[int], buf *buffer, to int64) {
	before := buf.free()
	gaps := tab.Resize(to)
	to = max(to, 0)
	for int64(len(*buf)) < to {
		*buf = append(*buf, barred)
	}
	for i := range *buf {
		switch b := &(*buf)[i]; {
		case int64(i) < to && *b == barred:
			*b = 0
		case int64(i) >= to && *b == 0:
			*b = barred
		}
	}
	if tab.Capacity() != to || gaps != buf.free()-before {
		t.Fatalf("a buffer of %d bytes has %d; %d more bytes are free, it says %d", to, tab.Capacity(), buf.free()-before, gaps)
	}
}

// barred is the owner of bytes behind the end of the buffer.
const barred = -1

func (b buffer) free() (n int64) {
	for _, owner := range b {
		if owner == 0 {
			n++
		}
	}
	return n
}

// reach is the end of the last owned byte, or of the buffer.
func (b buffer) reach(capacity int64) int64 {
	for i := len(b) - 1; int64(i) >= capacity; i-- {
		if b[i] > 0 {
			return int64(i) + 1
		}
	}
	return capacity
}

func (b buffer) owned(owner int, size int64) bool {
	for _, o := range b[:size] {
		if o != owner {
			return false
		}
	}
	return true
}

// compare walks the table and the bytes side by side.
func compare(t *rapid.T, tab *Table[int], buf buffer, live map[int]ID) {
	at, owners := int64(0), 0
	for id := tab.First(); id != None; id = tab.Next(id) {
		f := tab.At(id)
		want := f.Owner
		if f.Class == Gap && f.Offset >= tab.Capacity() {
			want = barred
		} else if f.Class == Gap {
			want = 0
		} else if owners++; live[f.Owner] != id {
			t.Fatalf("%d lies in %d, not %d", f.Owner, live[f.Owner], id)
		}
		if !buf[at:].owned(want, f.Size) {
			t.Fatalf("[%d,+%d) is not all %d's", at, f.Size, want)
		}
		at += f.Size
	}
	if owners != len(live) || tab.Count() != len(live) || tab.Reach() != buf.reach(tab.Capacity()) || at != tab.Reach() {
		t.Fatalf("%d fragments of %d owners, says %d; up to %d, says %d", owners, len(live), tab.Count(), buf.reach(tab.Capacity()), tab.Reach())
	}
}

// Thousands of fragments are placed and freed, and the end of the buffer moves. Leaves are divided, merged and reused. From any fragment on, the
// leaves list the fragments in order.
func TestOrderOfManyFragments(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 0))
		const n = 3_000
		tab := New[int](n * 32)
		var ids []ID
		for turn := range 8 * n {
			fill := turn/n%2 == 0 // phases of growing and shrinking
			if rng.IntN(4) == 0 {
				fill = !fill
			}
			if fill {
				if id, ok := tab.Place(1+rng.Int64N(48), 1, 1); ok {
					ids = append(ids, id)
				}
				if i := rng.IntN(len(ids) + 1); i < len(ids) && rng.IntN(4) == 0 {
					ids = append(ids, cutSomewhere(tab, ids[i], rng)...)
				}
			} else if len(ids) > 0 {
				i := rng.IntN(len(ids))
				gap := tab.Free(ids[i])
				ids[i] = ids[len(ids)-1]
				ids = ids[:len(ids)-1]
				if gap != None && rng.IntN(4) == 0 {
					f := *tab.At(gap)
					from := rng.Int64N(f.Size)
					id, _ := tab.PlaceFrom(gap, f.Offset+from, 1+rng.Int64N(min(f.Size-from, 48)), 1)
					ids = append(ids, id)
				}
			}
			if turn%211 == 0 {
				tab.Resize(n * (8 + rng.Int64N(24)))
			}
			if turn%97 == 0 {
				if err := tab.Check(); err != nil {
					t.Fatal(err)
				}
				checkLeaves(t, tab, rng)
			}
		}
	}
}

// cutSomewhere cuts a fragment into up to three and returns the new ones.
func cutSomewhere(tab *Table[int], id ID, rng *rand.Rand) (more []ID) {
	f := *tab.At(id)
	from := rng.Int64N(f.Size)
	part, behind := tab.Cut(id, f.Offset+from, 1+rng.Int64N(f.Size-from))
	if part != id {
		more = append(more, part)
	}
	if behind != None {
		more = append(more, behind)
	}
	return more
}

// A buffer may shrink to nothing, with and without fragments in it, and grow again.
func TestResizeToNothing(t *testing.T) {
	tab := New[int](100)
	a, _ := tab.Place(30, 1, 1)
	b, _ := tab.Place(30, 1, 2)
	for _, c := range []struct {
		do    func() int64
		gaps  int64
		reach int64
	}{
		{func() int64 { return tab.Resize(0) }, -40, 60},
		{func() int64 { tab.Free(a); return 0 }, 0, 60},
		{func() int64 { return tab.Resize(10) }, 10, 60},
		{func() int64 { return tab.Resize(-1) }, -10, 60},
		{func() int64 { tab.Free(b); return 0 }, 0, 0},
		{func() int64 { return tab.Resize(50) }, 50, 50},
	} {
		if gaps := c.do(); gaps != c.gaps || tab.Reach() != c.reach {
			t.Fatalf("%d bytes of gaps more, up to %d; want %d, %d", gaps, tab.Reach(), c.gaps, c.reach)
		}
		if err := tab.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := tab.Place(50, 1, 3); !ok {
		t.Fatal("no room in an empty buffer")
	}
}

func checkLeaves(t *testing.T, tab *Table[int], rng *rand.Rand) {
	t.Helper()
	var all, got []ID
	for id := tab.First(); id != None; id = tab.Next(id) {
		all = append(all, id)
	}
	first := rng.IntN(len(all))
	for at, i := tab.LeafOf(all[first]); at != None; i = 0 {
		ids, entries, next := tab.Leaf(at)
		if len(entries) != len(ids)+1 {
			t.Fatalf("%d fragments and %d entries", len(ids), len(entries))
		}
		for k, id := range ids {
			if f := tab.At(id); entries[k].Offset != f.Offset || entries[k+1].Offset != f.Offset+f.Size {
				t.Fatalf("%+v, then %+v, for %+v", entries[k], entries[k+1], *f)
			}
		}
		got = append(got, ids[i:]...)
		at = next
	}
	if !slices.Equal(got, all[first:]) {
		t.Fatalf("the leaves say %v, not %v", got, all[first:])
	}
}

// Requests without alignment that a gap list can serve: any gap in a larger class will do, and the first few of the request's own class are tried.
func TestPlaceTriesItsOwnSizeClass(t *testing.T) {
	tab := New[int](10_000)
	ids := make([]ID, 0, 100)
	for i := range 100 {
		id, ok := tab.Place(100, 1, i)
		if !ok {
			t.Fatal("a full buffer before its time")
		}
		ids = append(ids, id)
	}
	tab.Free(ids[40])
	for range 3 {
		id, ok := tab.Place(100, 1, 1)
		if !ok || tab.At(id).Offset != 4000 {
			t.Fatal("the only gap fits exactly and was not found")
		}
		tab.Free(id)
	}
	if _, ok := tab.Place(101, 1, 1); ok {
		t.Fatal("101 bytes in a gap of 100")
	}
	if err := tab.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestManyRows(t *testing.T) {
	const n = 50_000
	tab := New[int](n * 10)
	ids := make([]ID, n)
	for i := range ids {
		id, ok := tab.Place(10, 1, i)
		if !ok {
			t.Fatalf("no room for number %d", i)
		}
		ids[i] = id
	}
	if tab.Used() != n*10 || tab.Count() != n {
		t.Fatalf("%d bytes in %d fragments", tab.Used(), tab.Count())
	}
	for i := 0; i < n; i += 2 {
		tab.Free(ids[i])
	}
	if err := tab.Check(); err != nil {
		t.Fatal(err)
	}
	rows := len(tab.rows)
	for i := 0; i < n; i += 2 {
		if _, ok := tab.Place(10, 1, i); !ok {
			t.Fatalf("no room for number %d again", i)
		}
	}
	if len(tab.rows) != rows {
		t.Fatalf("rows are not used again: %d after %d", len(tab.rows), rows)
	}
	for id := tab.First(); id != None; id = tab.Next(id) {
		if tab.At(id).Class != Gap {
			id = tab.Free(id)
		}
	}
	if tab.Used() != 0 || tab.Count() != 0 || tab.At(tab.First()).Size != n*10 {
		t.Fatal("an empty table is not one gap")
	}
	if err := tab.Check(); err != nil {
		t.Fatal(err)
	}
}

// The lists partition the sizes, and their lower bounds grow with their index.
func TestBinsAreOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "a")
		b := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		if binOf(a) > binOf(b) || binOf(a) < 0 || binOf(b) >= nBins {
			t.Fatalf("lists %d and %d for %d and %d", binOf(a), binOf(b), a, b)
		}
		if from, end := binFrom(binOf(a)), binFrom(binOf(a)+1); a < from || a >= end && end > from {
			t.Fatalf("%d is in list %d, from %d up to %d", a, binOf(a), from, end)
		}
		if a >= 16 && binOf(a) == binOf(b) && bits.Len64(uint64(b-a)) > bits.Len64(uint64(a))-subBits {
			t.Fatalf("%d and %d share list %d", a, b, binOf(a))
		}
	})
}

func TestRowFillsOneCacheLine(t *testing.T) {
	if n := unsafe.Sizeof(Fragment[*int]{}); n != 64 {
		t.Errorf("a row takes %d bytes", n)
	}
}

func TestPadding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at, align := rapid.Int64Range(0, 1<<50).Draw(t, "at"), rapid.Int64Range(0, 1<<22).Draw(t, "align")
		pad := Padding(at, align)
		if pad < 0 || pad >= max(align, 1) || (at+pad)%max(align, 1) != 0 {
			t.Fatalf("%d at %d aligned to %d", pad, at, align)
		}
	})
}

func BenchmarkPlaceFree(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab := New[int](int64(n) * 64)
			ids := make([]ID, n)
			for i := range ids {
				ids[i], _ = tab.Place(64, 64, i)
			}
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				tab.Free(ids[i])
				ids[i], _ = tab.Place(64, 64, i)
			}
		})
	}
}

// BenchmarkChurn frees arbitrary fragments and places others of other sizes: gaps are split and merged all the time.
func BenchmarkChurn(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			tab := New[int](int64(n) * 48)
			ids := make([]ID, n)
			for i := range ids {
				ids[i], _ = tab.Place(16+rng.Int64N(32), 1, i)
			}
			turn := func() {
				i := rng.IntN(n)
				if ids[i] != None {
					tab.Free(ids[i])
				}
				ids[i] = None
				if id, ok := tab.Place(16+rng.Int64N(48), 1, i); ok {
					ids[i] = id
				}
			}
			for range 4 * n {
				turn()
			}
			for b.Loop() {
				turn()
			}
		})
	}
}

// If very many gaps are about as large as the largest, not all of them are examined.
func TestNoGapIsOverWhatIsSaid(t *testing.T) {
	tab := New[*int](1 << 20)
	var ids []ID
	for range 4 * counted {
		for _, size := range []int64{1000, 24} {
			id, ok := tab.Place(size, 1, new(int))
			if !ok {
				t.Fatal("no room")
			}
			if size == 1000 {
				ids = append(ids, id)
			}
		}
	}
	if _, ok := tab.Place(1<<20-4*counted*1024, 1, new(int)); !ok || tab.NoGapOver() != 0 {
		t.Fatalf("full, and no gap is over %d", tab.NoGapOver())
	}
	for i, id := range ids {
		tab.Free(id)
		if over := tab.NoGapOver(); i < counted && over != 1000 || over < 1000 || over > 1023 {
			t.Fatalf("%d gaps of 1000 bytes: none is over %d", i+1, over)
		}
	}
}
