package evict

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// row is one fragment for the brute-force search.
type row struct {
	fragment.Fragment[*int]
	id fragment.ID
}

// table draws a small buffer with fragments in every class; sizes are multiples of grain.
func table(t *rapid.T, grain int64) (*fragment.Table[*int], []row) {
	n := rapid.IntRange(1, 14).Draw(t, "fragments")
	tab := fragment.New[*int](64 * int64(n))
	var ids []fragment.ID
	for range n {
		if id, ok := tab.Place(grain*rapid.Int64Range(1, max(96/grain, 1)).Draw(t, "bytes"), grain, new(int)); ok {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
			tab.Free(id)
			continue
		}
		f := tab.At(id)
		f.Class = rapid.SampledFrom([]fragment.Class{
			fragment.Free, fragment.Free, fragment.Free, fragment.Flushing, fragment.Dirty, fragment.Promised, fragment.Held,
		}).Draw(t, "class")
		f.State = lifecycle.Flushed
		f.ETA = rapid.Int64Range(0, 300).Draw(t, "eta")
		f.Touched, f.Born = rapid.Int64Range(0, 90).Draw(t, "touched"), rapid.Uint32Range(0, 90).Draw(t, "born")
		f.Lane = rapid.Int32Range(0, 2).Draw(t, "lane")
		if rapid.Bool().Draw(t, "expected") {
			f.Expected = rapid.OneOf(rapid.Int64Range(0, 40), rapid.Just(int64(1)<<40)).Draw(t, "expected at")
		}
		tab.Update(id)
	}
	if rapid.IntRange(0, 3).Draw(t, "shrunk") == 0 {
		tab.Resize(grain * rapid.Int64Range(0, tab.Capacity()/grain).Draw(t, "to"))
	}
	return tab, rowsOf(tab)
}

func rowsOf(tab *fragment.Table[*int]) (rows []row) {
	for id := tab.First(); id != fragment.None; id = tab.Next(id) {
		rows = append(rows, row{*tab.At(id), id})
	}
	return rows
}

// within are the rows that do not end behind the table's capacity.
func within(tab *fragment.Table[*int], rows []row) []row {
	for i := range rows {
		if rows[i].Offset+rows[i].Size > tab.Capacity() {
			return rows[:i]
		}
	}
	return rows
}

func request(t *rapid.T, rows []row, grain int64) *Request {
	r := &Request{
		Size: grain * rapid.Int64Range(1, max(300/grain, 1)).Draw(t, "size"), Align: rapid.SampledFrom([]int64{0, 1, grain, 12, 32, 64}).Draw(t, "align"),
		Now: 100, Count: 100, Heads: append([]int64{0, 10, 20}, make([]int64, rapid.SampledFrom([]int{0, 2 * fewLanes}).Draw(t, "more lanes"))...),
		Backlog:   rapid.Int64Range(0, 50).Draw(t, "backlog"),
		FlushRate: rapid.SampledFrom([]float64{-1, 0, 0.5, 2}).Draw(t, "rate"),
		Floor:     rapid.SampledFrom([]int64{-1, -1, 0, 5, 15}).Draw(t, "floor"),
		NoWait:    rapid.Bool().Draw(t, "nowait"), Break: rapid.Bool().Draw(t, "break"),
		Start: fragment.None,
	}
	for i := range r.Heads {
		r.Intervals = append(r.Intervals, rapid.SampledFrom([]int64{1, 1, 3, 40, LongestInterval}).Draw(t, "interval"))
		if i == 2 { // the orders behind these have no fragments
			r.Intervals = append(r.Intervals, make([]int64, len(r.Heads)-3)...)
			break
		}
	}
	if rapid.Bool().Draw(t, "barred") {
		r.Barred = func(id fragment.ID) bool { return id%3 == 0 }
	}
	if rapid.Bool().Draw(t, "limited") {
		r.Limit = rapid.IntRange(1, len(rows)+2).Draw(t, "limit")
	}
	if len(rows) > 0 && rapid.Bool().Draw(t, "started") {
		r.Start = rapid.SampledFrom(rows).Draw(t, "start").id
	}
	return r
}

// price is the documented cost of evicting one fragment.
func price(k Kind, r *Request, f *row) (wait, score int64, promises int, never bool) {
	switch f.Class {
	case fragment.Gap:
		return 0, gapWeight, 0, false
	case fragment.Free:
	case fragment.Flushing:
		if wait = f.ETA - r.Now; wait < 1 {
			wait = 1
		}
	case fragment.Dirty:
		wait = r.Backlog + int64(float64(f.Size)*r.FlushRate) + 1
		never = r.FlushRate <= 0 || r.Barred != nil && r.Barred(f.id)
	case fragment.Promised:
		promises, never = 1, !r.Break
	default:
		never = true
	}
	never = never || (r.NoWait && wait > 0)
	distance := f.Expected - r.Heads[f.Lane]
	if distance < 0 {
		distance = 0
	}
	distance *= r.Intervals[f.Lane]
	expected := f.Expected != fragment.Unexpected
	if expected && r.Floor >= 0 && distance <= r.Floor {
		never = true
	}
	switch {
	case k == LRU:
		score = r.Count - f.Touched
	case k == FIFO:
		score = r.Count - int64(f.Born)
	case expected:
		score = distance
	default:
		score = unexpectedWeight + r.Count - f.Touched
	}
	return wait, score, promises, never
}

// seen are the ranges of rows that a scan may look at: from Start on, then from the beginning.
func seen(r *Request, rows []row) [][]row {
	limit := r.Limit
	if limit <= 0 {
		limit = math.MaxInt
	}
	at := 0
	for i := range rows {
		if rows[i].id == r.Start {
			at = i
		}
	}
	tail, head := rows[at:], rows[:at]
	if len(tail) > limit {
		return [][]row{tail[:limit]}
	}
	return [][]row{tail, head[:min(len(head), limit-len(tail))]}
}

// enough tells whether evicting all the rows leaves an aligned range of the requested size.
func enough(r *Request, rows []row) bool {
	if len(rows) == 0 {
		return false
	}
	begin := rows[0].Offset
	for r.Align > 1 && begin%r.Align != 0 {
		begin++
	}
	last := rows[len(rows)-1]
	return last.Offset+last.Size-begin >= r.Size
}

// best looks at every run of fragments in the order of their ends.
func best(k Kind, r *Request, rows []row) Window {
	none := Window{First: fragment.None}
	found := none
	for _, part := range seen(r, rows) {
		sums, stays := []Window{{}}, []int{0} // of the rows before each
		for i := range part {
			wait, score, promises, never := price(k, r, &part[i])
			sums = append(sums, Window{Wait: sums[i].Wait + wait, Score: sums[i].Score + score, Promises: sums[i].Promises + promises})
			stays = append(stays, stays[i])
			if never {
				stays[i+1]++
			}
		}
		for j := range part {
			for i := 0; i <= j; i++ {
				possible := enough(r, part[i:j+1]) && !enough(r, part[i:j]) && fragment.Padding(part[i].Offset, r.Align) < part[i].Size
				if !possible || stays[i] != stays[j+1] {
					continue
				}
				a, b := &sums[i], &sums[j+1]
				w := Window{First: part[i].id, Last: part[j].id, Wait: b.Wait - a.Wait, Score: b.Score - a.Score, Promises: b.Promises - a.Promises}
				better := found == none || w.Promises < found.Promises
				if w.Promises == found.Promises {
					better = better || (k == Score && w.Wait < found.Wait) || ((k != Score || w.Wait == found.Wait) && w.Score > found.Score)
				}
				if better {
					found = w
				}
			}
		}
	}
	return found
}

func TestChoiceIsTheBestOfAllWindows(t *testing.T) {
	for _, k := range []Kind{Score, LRU, FIFO} {
		t.Run(k.String(), rapid.MakeCheck(func(t *rapid.T) {
			grain := rapid.SampledFrom([]int64{1, 4, 16}).Draw(t, "grain")
			tab, rows := table(t, grain)
			r := request(t, rows, grain)
			want := best(k, r, within(tab, rows))
			w, ok := Choose(k, tab, r)
			if ok != (want.First != fragment.None) {
				t.Fatalf("%v %+v, by brute force %+v", ok, w, want)
			}
			if ok && w != want {
				t.Fatalf("%+v, by brute force %+v\nrows %+v", w, want, rows)
			}
		}))
	}
}

// The same in tables that are listed in several batches, with some windows longer than the lists.
func TestChoiceIsTheBestAmongManyFragments(t *testing.T) {
	for _, k := range []Kind{Score, LRU, FIFO} {
		t.Run(k.String(), rapid.MakeCheck(func(t *rapid.T) {
			grain := rapid.SampledFrom([]int64{1, 4, 16}).Draw(t, "grain")
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			tab, rows := many(rng, rapid.IntRange(1, 500).Draw(t, "many"), rapid.IntRange(2, 1000).Draw(t, "one of so many stays"), grain)
			r := request(t, rows, grain)
			r.Size = rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(1, 20_000)).Draw(t, "room")
			want := best(k, r, within(tab, rows))
			if w, ok := Choose(k, tab, r); ok != (want.First != fragment.None) || ok && w != want {
				t.Fatalf("%v %+v, by brute force %+v", ok, w, want)
			}
		}))
	}
}

// many fills a table and makes the order of its rows in memory differ from that of the addresses.
func many(rng *rand.Rand, n, held int, grain int64) (*fragment.Table[*int], []row) {
	tab := fragment.New[*int](64 * int64(n))
	var ids []fragment.ID
	place := func() bool {
		id, ok := tab.Place(grain*rng.Int64N(max(96/grain, 1))+grain, grain, new(int))
		if ok {
			ids = append(ids, id)
		}
		return ok
	}
	for range 3 {
		for place() {
		}
		rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids[:len(ids)/2] {
			tab.Free(id)
		}
		ids = append([]fragment.ID(nil), ids[len(ids)/2:]...)
		for range n / 2 {
			place()
		}
	}
	classes := []fragment.Class{fragment.Free, fragment.Free, fragment.Flushing, fragment.Dirty, fragment.Promised}[:1+rng.IntN(5)]
	for _, id := range ids {
		f := tab.At(id)
		f.Class = classes[rng.IntN(len(classes))]
		if rng.IntN(held) == 0 {
			f.Class = fragment.Held
		}
		f.ETA, f.Touched, f.Born, f.Lane = rng.Int64N(300), rng.Int64N(90), rng.Uint32N(90), rng.Int32N(3)
		if rng.IntN(2) == 0 {
			f.Expected = rng.Int64N(40)
		}
		tab.Update(id)
	}
	if rng.IntN(4) == 0 {
		tab.Resize(rng.Int64N(tab.Capacity()/grain) * grain)
	}
	return tab, rowsOf(tab)
}

// If every fragment is scanned, there is a choice exactly if evictable neighbours make the room anywhere.
func TestChoiceExistsWhenRoomDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, rows := table(t, 1)
		r := request(t, rows, 1)
		r.Limit, r.Start = 0, fragment.None
		rows = within(tab, rows)
		want := false
		for i := range rows {
			for j := i; j < len(rows); j++ {
				if _, _, _, never := price(Score, r, &rows[j]); never {
					break
				}
				want = want || enough(r, rows[i:j+1])
			}
		}
		if _, ok := Choose(Score, tab, r); ok != want {
			t.Fatalf("%v, want %v", ok, want)
		}
	})
}

// Only the low half of the count is known at which a fragment was placed: the count may have wrapped since.
func TestTheLongestStayWhenItsCountHasWrapped(t *testing.T) {
	tab := fragment.New[*int](3)
	var ids []fragment.ID
	for _, born := range []uint32{3, math.MaxUint32 - 3, 1} {
		id, _ := tab.Place(1, 1, new(int))
		f := tab.At(id)
		f.Class, f.Born = fragment.Free, born
		tab.Update(id)
		ids = append(ids, id)
	}
	want := Window{First: ids[1], Last: ids[1], Score: 9}
	if w, ok := Choose(FIFO, tab, &Request{Size: 1, Count: 1<<32 + 5, Floor: -1, Start: fragment.None}); !ok || w != want {
		t.Fatalf("%v %+v, not %+v", ok, w, want)
	}
}

func TestEmptyBufferHasNoChoice(t *testing.T) {
	if w, ok := Choose(Score, fragment.New[*int](0), &Request{Size: 1, Start: fragment.None}); ok {
		t.Fatalf("%+v in nothing", w)
	}
}

func TestKindsHaveNames(t *testing.T) {
	for _, k := range []Kind{Score, LRU, FIFO} {
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("%v reads back as %v, %v", k, got, ok)
		}
	}
	if _, ok := ParseKind("random"); ok {
		t.Error("a policy called random")
	}
}
