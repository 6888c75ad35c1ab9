package aggregation

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTheNodesWithTheMostBytesLead(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []int64
		nodes []int
		most  int
		want  []int
	}{
		"one node":                    {[]int64{1, 2, 3}, []int{0, 0, 0}, 1, []int{0}},
		"the larger node":             {[]int64{5, 2, 2, 2}, []int{0, 1, 1, 1}, 1, []int{1}},
		"the first of equal nodes":    {[]int64{4, 2, 2}, []int{7, 3, 3}, 1, []int{0}},
		"a rank without bytes":        {[]int64{0, 4, 3}, []int{0, 0, 1}, 1, []int{1}},
		"no bytes":                    {[]int64{0, 0}, []int{0, 1}, 2, nil},
		"a node that is not together": {[]int64{3, 5, 3}, []int{0, 1, 0}, 1, []int{0}},
		"two of three nodes":          {[]int64{3, 5, 4}, []int{0, 1, 2}, 2, []int{1, 2}},
		"more than there are nodes":   {[]int64{3, 5, 0}, []int{0, 1, 2}, 9, []int{1, 0}},
		"no ranks":                    {nil, nil, 1, nil},
	} {
		if got := Leaders(c.bytes, c.nodes, c.most, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: the ranks %v lead, wanted %v", name, got, c.want)
		}
	}
}

func TestWhoWritesWhat(t *testing.T) {
	for name, c := range map[string]struct {
		bytes                []int64
		nodes, leaders, want []int
	}{
		"one leader":              {[]int64{1, 2, 3}, []int{0, 1, 2}, []int{1}, []int{1, 1, 1}},
		"each on its own node":    {[]int64{9, 1, 1, 1}, []int{0, 0, 1, 1}, []int{0, 2}, []int{0, 0, 2, 2}},
		"the one with less":       {[]int64{9, 2, 3, 1}, []int{0, 1, 2, 3}, []int{0, 1}, []int{0, 1, 1, 1}},
		"large ones choose first": {[]int64{0, 0, 1, 5, 5}, []int{0, 1, 2, 3, 4}, []int{0, 1}, []int{0, 1, 0, 0, 1}},
		"nobody":                  {[]int64{0}, []int{0}, nil, []int{-1}},
	} {
		if got := Assign(c.bytes, c.nodes, c.leaders); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v write, wanted %v", name, got, c.want)
		}
	}
}

// Leaders have bytes for the file, are on different nodes, and no node without one has more than one with. What lies on a leader's node, a leader of that node
// writes; of what else there is, no leader gets more than another while it has more to write already.
func TestLeadersOfAnyRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 20).Draw(t, "ranks")
		bytes := rapid.SliceOfN(rapid.Int64Range(0, 5), count, count).Draw(t, "bytes")
		nodes := rapid.SliceOfN(rapid.IntRange(0, 4), count, count).Draw(t, "nodes")
		most := rapid.IntRange(1, 4).Draw(t, "leaders")
		sums := map[int]int64{}
		for rank, n := range bytes {
			sums[nodes[rank]] += n
		}
		some := 0 // nodes with bytes
		for _, n := range sums {
			if n > 0 {
				some++
			}
		}
		leaders := Leaders(bytes, nodes, most, nil)
		if len(leaders) != min(most, some) {
			t.Fatalf("%d leaders on %d nodes", len(leaders), some)
		}
		least, led := int64(1<<62), map[int]bool{}
		for _, leader := range leaders {
			if bytes[leader] == 0 || led[nodes[leader]] {
				t.Fatalf("the ranks %v lead", leaders)
			}
			led[nodes[leader]] = true
			least = min(least, sums[nodes[leader]])
			for rank, n := range bytes {
				if n > 0 && nodes[rank] == nodes[leader] && rank < leader {
					t.Fatalf("rank %d leads, and rank %d is a lower one of its node", leader, rank)
				}
			}
		}
		for node, n := range sums {
			if !led[node] && n > least && len(leaders) > 0 {
				t.Fatalf("node %d has %d bytes and no leader, and one with a leader has %d", node, n, least)
			}
		}
		for rank, writer := range Assign(bytes, nodes, leaders) {
			if len(leaders) > 0 && (!slices.Contains(leaders, writer) || led[nodes[rank]] && nodes[writer] != nodes[rank]) {
				t.Fatalf("rank %d writes what rank %d of node %d has", writer, rank, nodes[rank])
			}
		}
	})
}

// By default, every rank's bytes are written on its own node where files have whole nodes, or the ranks of nodes of like size.
func TestEveryNodeLeadsByDefault(t *testing.T) {
	const ofNode = 8
	for _, count := range []int{1, 2, 8, 64} {
		for _, files := range []int{1, (count + 3) / 4, count} {
			bytes, nodes := make([]int64, ofNode*count), make([]int, ofNode*count)
			for rank := range bytes {
				bytes[rank], nodes[rank] = 800+int64(rank*7919%400), rank/ofNode
			}
			most, from := DefaultLeaders(nodes, files), 0
			for _, end := range Groups(bytes, files) {
				_, writers := Elect(bytes[from:end], nodes[from:end], most, nil)
				for i, writer := range writers {
					if nodes[from+i] != nodes[from+writer] {
						t.Errorf("%d nodes, %d files, %d leaders: rank %d sends to another node", count, files, most, from+i)
					}
				}
				from = end
			}
		}
	}
}

// The nodes of any ranks have each rank once, ascending, and no rank of a node has more bytes than the one that acts for it, nor a lower one as many.
func TestRepresentatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 12).Draw(t, "nodes")
		bytes := rapid.SliceOfN(rapid.Int64Range(0, 3), len(nodes), len(nodes)).Draw(t, "bytes")
		seen, before := map[int]bool{}, -1
		for _, n := range Representatives(bytes, nodes) {
			if n.Ranks[0] <= before || !slices.IsSorted(n.Ranks) || !slices.Contains(n.Ranks, n.Leader) {
				t.Fatalf("%+v behind the node of rank %d", n, before)
			}
			before = n.Ranks[0]
			for _, rank := range n.Ranks {
				if seen[rank] || nodes[rank] != nodes[n.Leader] || bytes[rank] > bytes[n.Leader] || bytes[rank] == bytes[n.Leader] && rank < n.Leader {
					t.Fatalf("rank %d of %+v", rank, n)
				}
				seen[rank] = true
			}
		}
		if len(seen) != len(nodes) {
			t.Fatalf("%d ranks of %d", len(seen), len(nodes))
		}
	})
}
