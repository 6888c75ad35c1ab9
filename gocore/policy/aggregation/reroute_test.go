package aggregation

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ends are when each node has written its parts, in bytes of a node that is not slow.
func ends(parts []Part, nodes []int, slow map[int]float64) map[int]float64 {
	all := map[int]float64{}
	for _, x := range parts {
		all[nodes[x.Writer]] += float64(x.Bytes) * max(slow[nodes[x.Writer]], 1)
	}
	return all
}

// elected are the parts of a push in which so many ranks at most lead each file.
func elected(bytes []int64, nodes []int, files, most int, slow map[int]float64) (parts []Part) {
	from := 0
	for file, end := range Groups(bytes, files) {
		_, writers := Elect(bytes[from:end], nodes[from:end], most, slow)
		for i, writer := range writers {
			if writer >= 0 && bytes[from+i] > 0 {
				parts = append(parts, Part{file, from + i, bytes[from+i], from + writer})
			}
		}
		from = end
	}
	return parts
}

// Slow nodes lead behind all others. What they would write goes to others only if everything is written no later, and nothing else changes.
func TestSlowNodesWriteLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 20).Draw(t, "ranks")
		bytes := rapid.SliceOfN(rapid.Int64Range(0, 9), count, count).Draw(t, "bytes")
		nodes := rapid.SliceOfN(rapid.IntRange(0, 5), count, count).Draw(t, "nodes")
		slow := rapid.MapOfN(rapid.IntRange(0, 5), rapid.Float64Range(2, 10), 0, 3).Draw(t, "slow")
		most, files, alone := rapid.IntRange(1, 6).Draw(t, "leaders"), rapid.IntRange(1, 4).Draw(t, "files"), rapid.Bool().Draw(t, "alone")
		leaders := Leaders(bytes, nodes, most, slow)
		if !slices.IsSortedFunc(leaders, func(a, b int) int { return int(min(slow[nodes[a]], 1)) - int(min(slow[nodes[b]], 1)) }) {
			t.Fatalf("the ranks %v lead, of nodes %v", leaders, nodes)
		}
		if even := Leaders(bytes, nodes, most, nil); len(even) != len(leaders) {
			t.Fatalf("%d leaders, and %d where no node is slow", len(leaders), len(even))
		}
		before := elected(bytes, nodes, files, most, slow)
		after := slices.Clone(before)
		Reroute(after, nodes, slow, alone)
		writers, writersBefore := map[int]map[int]bool{}, map[int]map[int]bool{}
		of := map[writerOf]int{}
		for i, x := range after {
			was := before[i]
			note(writers, x.File, x.Writer)
			note(writersBefore, x.File, was.Writer)
			if x.Writer != was.Writer && (slow[nodes[was.Writer]] == 0 || slow[nodes[x.Writer]] > 0) {
				t.Fatalf("%+v goes to rank %d", was, x.Writer)
			}
			if was.Writer = x.Writer; was != x {
				t.Fatalf("%+v became %+v", before[i], x)
			}
			at := writerOf{x.File, nodes[x.Writer]}
			if other, some := of[at]; some && other != x.Writer {
				t.Fatalf("the ranks %d and %d of a node write file %d", other, x.Writer, x.File)
			}
			of[at] = x.Writer
		}
		for file, all := range writers {
			if alone && len(all) > len(writersBefore[file]) {
				t.Fatalf("file %d has the writers %v, and had %v", file, all, writersBefore[file])
			}
		}
		if got, was := latest(after, nodes, slow), latest(before, nodes, slow); got > was {
			t.Fatalf("the last node ends at %v, and before at %v", got, was)
		}
	})
}

func note(all map[int]map[int]bool, file, writer int) {
	if all[file] == nil {
		all[file] = map[int]bool{}
	}
	all[file][writer] = true
}

// latest is when everything is written.
func latest(parts []Part, nodes []int, slow map[int]float64) (most float64) {
	for end := range maps.Values(ends(parts, nodes, slow)) {
		most = max(most, end)
	}
	return most
}

// Nodes end together, as far as ranks can be divided, when one of them is slow, in one file and in one for each node.
func TestASlowNodeGivesRanksAway(t *testing.T) {
	const ofNode, count = 8, 4
	bytes, nodes := make([]int64, ofNode*count), make([]int, ofNode*count)
	for rank := range bytes {
		bytes[rank], nodes[rank] = 100, rank/ofNode
	}
	for _, factor := range []float64{2, 4, 8, 100} {
		for _, files := range []int{1, 2, count} {
			slow := map[int]float64{1: factor}
			parts := elected(bytes, nodes, files, count, slow)
			Reroute(parts, nodes, slow, false)
			best := 100 * float64(ofNode*count) / (count - 1 + 1/factor)
			if got := latest(parts, nodes, slow); got > best+100*max(1, factor/2) {
				t.Errorf("%d files, a node that is slow by %v: the last one ends at %v, where %v is the best", files, factor, got, best)
			}
		}
		for _, files := range []int{1, count} { // one writer of each file
			slow := map[int]float64{1: factor}
			parts := elected(bytes, nodes, files, 1, slow)
			Reroute(parts, nodes, slow, true)
			moved := slices.ContainsFunc(parts, func(x Part) bool { return nodes[x.Writer] == 1 })
			if want := files == count && factor <= 2; moved != want {
				t.Errorf("%d files with one leader, a node that is slow by %v: it writes: %t", files, factor, moved)
			}
		}
	}
	parts := elected(bytes, nodes, 1, count, nil)
	Reroute(parts, nodes, map[int]float64{0: 9, 1: 9, 2: 9, 3: 9}, false) // no node could take anything
}

func BenchmarkReroute(b *testing.B) {
	const ofNode, count = 8, 2048
	bytes, nodes := make([]int64, ofNode*count), make([]int, ofNode*count)
	for rank := range bytes {
		bytes[rank], nodes[rank] = int64(rank*7919%1000)<<20, rank/ofNode
	}
	slow := map[int]float64{}
	for node := 0; node < count; node += 10 {
		slow[node] = 5
	}
	parts := elected(bytes, nodes, count/4, 5, slow)
	for b.Loop() {
		Reroute(slices.Clone(parts), nodes, slow, false)
	}
}
