package aggregation

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTheNodeWithTheMostBytesLeads(t *testing.T) {
	for name, c := range map[string]struct {
		bytes        []int64
		nodes, leads []int
		want         int
	}{
		"one node":                    {[]int64{1, 2, 3}, []int{0, 0, 0}, []int{0, 0, 0}, 0},
		"the larger node":             {[]int64{5, 2, 2, 2}, []int{0, 1, 1, 1}, []int{0, 0, 0, 0}, 1},
		"the first of equal nodes":    {[]int64{4, 2, 2}, []int{7, 3, 3}, []int{0, 0, 0}, 0},
		"a rank without bytes":        {[]int64{0, 4, 3}, []int{0, 0, 1}, []int{0, 0, 0}, 1},
		"no bytes":                    {[]int64{0, 0}, []int{0, 1}, []int{0, 0}, -1},
		"a rank that leads already":   {[]int64{1, 1, 1}, []int{0, 0, 0}, []int{1, 0, 0}, 1},
		"a node that is not together": {[]int64{3, 5, 3}, []int{0, 1, 0}, []int{1, 0, 0}, 2},
		"no ranks":                    {nil, nil, nil, -1},
	} {
		if got := Leader(c.bytes, c.nodes, c.leads); got != c.want {
			t.Errorf("%s: rank %d leads, wanted %d", name, got, c.want)
		}
	}
}

// A leader has bytes for the file, no node has more than its node, and no rank of its node that has some leads fewer files.
func TestNoNodeHasMoreThanTheLeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 20).Draw(t, "ranks")
		bytes := rapid.SliceOfN(rapid.Int64Range(0, 5), count, count).Draw(t, "bytes")
		nodes := rapid.SliceOfN(rapid.IntRange(0, 4), count, count).Draw(t, "nodes")
		leads := rapid.SliceOfN(rapid.IntRange(0, 2), count, count).Draw(t, "leads")
		sums := map[int]int64{}
		most := int64(0)
		for rank, n := range bytes {
			sums[nodes[rank]] += n
			most = max(most, sums[nodes[rank]])
		}
		leader := Leader(bytes, nodes, leads)
		if most == 0 && leader == -1 {
			return
		}
		if leader < 0 || bytes[leader] == 0 || sums[nodes[leader]] != most {
			t.Fatalf("rank %d leads", leader)
		}
		for rank, n := range bytes {
			if n > 0 && nodes[rank] == nodes[leader] && leads[rank] < leads[leader] {
				t.Fatalf("rank %d leads, and rank %d leads fewer files", leader, rank)
			}
		}
	})
}
