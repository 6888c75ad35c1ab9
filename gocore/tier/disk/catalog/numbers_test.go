package catalog

import (
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The table behaves as a map for any numbers.
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
			if s := &table.scattered; table.taken() != len(want) || s.taken > len(s.slots)/8*5+1 {
				t.Fatalf("%d in a row, %d of %d slots are taken, where there are %d rows", table.sequence.taken, s.taken, len(s.slots), len(want))
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
		table.each(func(n int64, row ref) bool { // removes rows of one kind during the iteration
			if row%2 == 0 {
				table.remove(n)
				delete(want, n)
			}
			return true
		})
		for n := range got {
			if table.find(n) != want[n] || table.taken() != len(want) {
				t.Fatalf("%d is %v, not %v", n, table.find(n), want[n])
			}
		}
	})
}

// Neighbouring numbers are near each other in the table.
func TestNeighboursLieTogether(t *testing.T) {
	var table scattered
	for n := range int64(10000) {
		table.set(n-1000, 1)
	}
	near := 0
	for n := range int64(8999) {
		if table.home(n+1)-table.home(n) == 1 {
			near++
		}
	}
	if near < 7500 {
		t.Errorf("%d of 8999 have their neighbour beside them", near)
	}
}

// Consecutive numbers take little memory; numbers far from them take no more than scattered ones, in any order.
func TestSequencesStayDense(t *testing.T) {
	for name, c := range map[string]struct {
		number func(i int64) int64
		dense  bool
	}{
		"up":                          {func(i int64) int64 { return i }, true},
		"down by seven":               {func(i int64) int64 { return 5 - 7*i }, true},
		"the very first ones":         {func(i int64) int64 { return math.MinInt64 + i }, true},
		"the very last ones":          {func(i int64) int64 { return math.MaxInt64 - i }, true},
		"a large stride":              {func(i int64) int64 { return i << 45 }, true},
		"every fourth is left":        {func(i int64) int64 { return i + i/3 }, true},
		"two by two exchanged":        {func(i int64) int64 { return i ^ 1 }, true},
		"any order":                   {func(i int64) int64 { return i * 1657 % (1 << 12) * 3 }, true},
		"two shots beside each other": {func(i int64) int64 { return i/2 + i&1*5000 }, true},
		"ever wider":                  {func(i int64) int64 { return i * i }, false},
		"one far away":                {func(i int64) int64 { return (i-1)>>62&1<<60 + i }, false},
	} {
		var table numbers
		const most = 1 << 12
		for i := range int64(most) {
			table.set(c.number(i), ref(i+1))
		}
		for i := range int64(most) {
			if row := table.find(c.number(i)); row != ref(i+1) {
				t.Fatalf("%s: %d is %d", name, c.number(i), row)
			}
		}
		if table.taken() != most {
			t.Errorf("%s: %d are there", name, table.taken())
		}
		if bytes := 8*cap(table.sequence.rows) + 16*len(table.scattered.slots); c.dense && bytes > 24*most || bytes > 64*most {
			t.Errorf("%s: %d bytes", name, bytes)
		}
		if c.dense != (table.scattered.taken < most/100) {
			t.Errorf("%s: %d are scattered", name, table.scattered.taken)
		}
	}
}
