package catalog

import (
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The table is a map, whatever the numbers.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table numbers
		want := map[int64]ref{}
		first := rapid.SampledFrom([]int64{0, -50, math.MinInt64, math.MaxInt64 - 100}).Draw(t, "first")
		stride := rapid.SampledFrom([]int64{1, 2, 50, -7, 1 << 40, 1 << 62}).Draw(t, "stride")
		key := rapid.OneOf(rapid.Map(rapid.Int64Range(0, 60), func(n int64) int64 { return first + n*stride }), rapid.Int64Range(-3, 3))
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			switch n := key.Draw(t, "key"); rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				table.remove(n)
				delete(want, n)
			default:
				row := ref(rapid.Uint64Range(1, 9).Draw(t, "row"))
				table.set(n, row)
				want[n] = row
			}
			if table.taken != len(want) || table.taken > len(table.slots)/8*5+1 {
				t.Fatalf("%d of %d slots are taken, where there are %d rows", table.taken, len(table.slots), len(want))
			}
		}
		got := map[int64]ref{}
		table.each(func(n int64, row ref) bool {
			got[n] = row
			return true
		})
		if !maps.Equal(got, want) {
			t.Fatalf("%v, not %v", got, want)
		}
		for n := range want {
			if table.find(n) != want[n] {
				t.Fatalf("%d is not found", n)
			}
		}
		table.each(func(n int64, row ref) bool { // those of one kind go while they are looked at
			if row%2 == 0 {
				table.remove(n)
				delete(want, n)
			}
			return true
		})
		for n := range got {
			if table.find(n) != want[n] || table.taken != len(want) {
				t.Fatalf("%d is %v, not %v", n, table.find(n), want[n])
			}
		}
	})
}

// Numbers in a row are found on the way on which their neighbours were.
func TestNeighboursLieTogether(t *testing.T) {
	for _, stride := range []int64{1, 50, 1 << 33} {
		var table numbers
		for n := range int64(10000) {
			table.set(-1000*stride+n*stride, 1)
		}
		near := 0
		for n := range int64(9999) {
			d := table.home(n*stride) - table.home((n+1)*stride)
			if d == -1 {
				near++
			}
		}
		if near < 8000 {
			t.Errorf("stride %d: %d of 9999 have their neighbour beside them", stride, near)
		}
	}
}
