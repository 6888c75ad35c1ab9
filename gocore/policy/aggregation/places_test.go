package aggregation

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLay(t *testing.T) {
	const stripe = 1000
	for _, c := range []struct {
		free      int64
		bytes     []int64
		nodes     []int
		want      []int64
		end       int64
		describes string
	}{
		{0, []int64{5000}, nil, []int64{0}, 5000, "at the beginning"},
		{40, []int64{40}, nil, []int64{40}, 80, "shorter than a stripe"},
		{40, []int64{999}, nil, []int64{40}, 1039, "nearly a stripe"},
		{40, []int64{1000}, nil, []int64{1000}, 2000, "a stripe"},
		{1001, []int64{600, 600}, nil, []int64{2000, 2600}, 3200, "two ranks together"},
		{40, []int64{600, 600}, []int{1, 2}, []int64{40, 640}, 1240, "two nodes, each with less"},
		{40, []int64{700, 700, 1100, 0, 5}, []int{1, 1, 2, 2, 3}, []int64{1000, 1700, 3000, 4100, 4100}, 4105, "three nodes"},
		{7, nil, nil, nil, 7, "nothing"},
	} {
		got, end := Lay(c.free, c.bytes, c.nodes, stripe)
		if !slices.Equal(got, c.want) || end != c.end {
			t.Errorf("%s: %v up to %d, wanted %v up to %d", c.describes, got, end, c.want, c.end)
		}
	}
}

// No two nodes share a stripe if each has as many bytes, ranks lie in their order, and nothing overlaps.
func TestNodesShareNoStripe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks, stripe := rapid.IntRange(0, 12).Draw(t, "ranks"), rapid.Int64Range(1, 50).Draw(t, "stripe")
		bytes := rapid.SliceOfN(rapid.Int64Range(0, 200), ranks, ranks).Draw(t, "bytes")
		nodes := rapid.SliceOfN(rapid.IntRange(0, 2), ranks, ranks).Draw(t, "nodes")
		free := rapid.Int64Range(0, 99).Draw(t, "free")
		begins, end := Lay(free, bytes, nodes, stripe)
		at := free
		for i, begin := range begins {
			first := i == 0 || nodes[i] != nodes[i-1]
			sum := int64(0)
			for k := i; first && k < ranks && nodes[k] == nodes[i]; k++ {
				sum += bytes[k]
			}
			if begin < at || begin-at >= stripe || begin > at && !first || first && sum >= stripe && begin%stripe != 0 {
				t.Fatalf("rank %d of %v begins at %d, behind %d", i, bytes, begin, at)
			}
			at = begin + bytes[i]
		}
		if at != end || len(begins) != ranks {
			t.Fatalf("the end is %d, and not %d", end, at)
		}
	})
}

func TestByTurns(t *testing.T) {
	got := ByTurns([][]int{{1, 4, 6, 7}, {2}, nil, {3, 5}})
	if want := []int{1, 2, 3, 4, 5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, wanted %v", got, want)
	}
}

func TestTakesMore(t *testing.T) {
	for _, c := range []struct {
		bytes        int64
		parts, files int
		want         bool
	}{
		{0, 0, 1, true}, {BatchBytes - 1, 1, 1, true}, {BatchBytes, 1, 1, false}, {BatchBytes, 1, 2, true}, {1, BatchParts - 1, 9, true}, {1, BatchParts, 9, false},
	} {
		if got := TakesMore(c.bytes, c.parts, c.files); got != c.want {
			t.Errorf("with %d bytes and %d parts for %d files: %t", c.bytes, c.parts, c.files, got)
		}
	}
}
