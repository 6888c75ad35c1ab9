package aggregation

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// largestOf is the size of the largest group.
func largestOf(bytes []int64, ends []int) (most int64) {
	from := 0
	for _, end := range ends {
		sum := int64(0)
		for _, n := range bytes[from:end] {
			sum += n
		}
		most, from = max(most, sum), end
	}
	return most
}

// bestOf tries every cut into so many groups, none of them empty.
func bestOf(bytes []int64, files int) int64 {
	if files == 1 {
		return largestOf(bytes, []int{len(bytes)})
	}
	best := int64(-1)
	for first := 1; first <= len(bytes)-files+1; first++ {
		most := max(largestOf(bytes[:first], []int{first}), bestOf(bytes[first:], files-1))
		if best < 0 || most < best {
			best = most
		}
	}
	return best
}

// The groups are all ranks, in their order, as many as there are files if there are enough ranks; and no cut has a smaller largest group.
func TestGroupsAreBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 1<<40))
		bytes := rapid.SliceOfN(sizes, 0, 9).Draw(t, "bytes")
		files := rapid.IntRange(0, 11).Draw(t, "files")
		ends := Groups(bytes, files)
		want := min(files, len(bytes))
		if len(ends) != want {
			t.Fatalf("%v in %d files gives %v", bytes, files, ends)
		}
		if want == 0 {
			return
		}
		if ends[want-1] != len(bytes) || ends[0] < 1 || !slices.IsSorted(ends) || len(slices.Compact(slices.Clone(ends))) != want {
			t.Fatalf("%v in %d files gives %v", bytes, files, ends)
		}
		if got, best := largestOf(bytes, ends), bestOf(bytes, want); got != best {
			t.Fatalf("%v in %d files gives %v, the largest %d where %d would do", bytes, files, ends, got, best)
		}
	})
}

// Ranks of one size are divided as the paper divides them, where the number of files divides theirs.
func TestEqualRanks(t *testing.T) {
	bytes := make([]int64, 16384)
	for i := range bytes {
		bytes[i] = 1 << 30
	}
	for _, files := range []int{1, 64, 1024, 16384} {
		for i, end := range Groups(bytes, files) {
			if end != (i+1)*len(bytes)/files {
				t.Fatalf("group %d of %d ends at %d", i, files, end)
			}
		}
	}
}

func BenchmarkGroups(b *testing.B) {
	bytes := make([]int64, 16384)
	for i := range bytes {
		bytes[i] = int64(i*7919%1000) << 20
	}
	for b.Loop() {
		Groups(bytes, 1024)
	}
}
