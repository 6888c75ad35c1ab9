package aggregation

import (
	"slices"
	"testing"
)

func TestBegin(t *testing.T) {
	for _, c := range []struct{ free, bytes, want int64 }{
		{0, 5 << 20, 0},
		{4096, 4096, 4096},
		{4096, Align - 1, 4096},
		{4096, Align, Align},
		{Align, Align, Align},
		{Align + 1, 7 * Align, 2 * Align},
	} {
		if got := Begin(c.free, c.bytes); got != c.want {
			t.Errorf("%d bytes behind %d begin at %d, wanted %d", c.bytes, c.free, got, c.want)
		}
	}
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
