package aggregation

import (
	"cmp"
	"slices"
)

// Leaders elects the ranks that write a file, at most so many, each on another node: the nodes with the most bytes for it, since what lies on a leader's node need not be
// sent (section 4.2 of the paper, which has one leader for each file, and names several as future work). Of nodes with as many bytes, it is the one that comes first. Of a
// node's ranks with bytes for the file, it is the lowest. Slow nodes come behind all others.
//
// bytes are those of each rank for the file, nodes the number of each rank's node. slow is that of Paces; nil: no node is slow.
func Leaders(bytes []int64, nodes []int, most int, slow map[int]float64) (leaders []int) {
	left, behind := map[int]int64{}, map[int]int64{} // by node, without those that have a leader
	for rank, n := range bytes {
		if slow[nodes[rank]] > 1 {
			behind[nodes[rank]] += n
		} else {
			left[nodes[rank]] += n
		}
	}
	for _, some := range []map[int]int64{left, behind} {
		for len(leaders) < most {
			node, found := heaviest(some, nodes)
			if !found {
				break
			}
			delete(some, node)
			leaders = append(leaders, leaderOf(node, bytes, nodes))
		}
	}
	return leaders
}

// heaviest is the node with the most bytes; of equal ones the first. None with bytes is found when all have a leader.
func heaviest(left map[int]int64, nodes []int) (node int, found bool) {
	most := int64(0)
	for _, n := range nodes {
		if left[n] > most {
			node, found, most = n, true, left[n]
		}
	}
	return node, found
}

// Node is the ranks of a node, ascending, and the one that acts for them.
type Node struct {
	Ranks  []int
	Leader int
}

// Representatives are the nodes in the order of their lowest ranks, each with the rank that has the most bytes there; of equal ones the lowest. Section 4.2 of the paper
// elects the leaders of files so.
func Representatives(bytes []int64, nodes []int) (all []Node) {
	at := map[int]int{}
	for rank, node := range nodes {
		k, known := at[node]
		if !known {
			k, at[node] = len(all), len(all)
			all = append(all, Node{Leader: rank})
		}
		n := &all[k]
		if n.Ranks = append(n.Ranks, rank); bytes[rank] > bytes[n.Leader] {
			n.Leader = rank
		}
	}
	return all
}

// leaderOf is the lowest rank of a node with bytes; -1: there is none.
func leaderOf(node int, bytes []int64, nodes []int) (leader int) {
	for rank, n := range bytes {
		if n > 0 && nodes[rank] == node {
			return rank
		}
	}
	return -1
}

// Assign says which of a file's leaders writes what each rank has for it: the one on the rank's own node, or else the one that has the least to write so far. Ranks
// with the most bytes choose first.
func Assign(bytes []int64, nodes, leaders []int) (writers []int) {
	loads := map[int]int64{}
	writers = make([]int, len(bytes))
	var away []int
	for rank, n := range bytes {
		writers[rank] = -1
		for _, leader := range leaders {
			if nodes[leader] == nodes[rank] {
				writers[rank] = leader
				loads[leader] += n
			}
		}
		if writers[rank] < 0 {
			away = append(away, rank)
		}
	}
	slices.SortStableFunc(away, func(a, b int) int { return cmp.Compare(bytes[b], bytes[a]) })
	for _, rank := range away {
		for _, leader := range leaders {
			if w := writers[rank]; w < 0 || loads[leader] < loads[w] {
				writers[rank] = leader
			}
		}
		if w := writers[rank]; w >= 0 {
			loads[w] += bytes[rank]
		}
	}
	return writers
}

// Elect elects the leaders of a file among ranks, at most so many, and says which of them writes what each rank has: -1 where none does.
func Elect(bytes []int64, nodes []int, most int, slow map[int]float64) (leaders, writers []int) {
	leaders = Leaders(bytes, nodes, most, slow)
	return leaders, Assign(bytes, nodes, leaders)
}

// Group is the ranks of a file, which are neighbours, and the bytes that each has for it.
type Group struct {
	First int // rank
	Bytes []int64
}

// Add adds bytes of a rank. An election among all ranks for each file would take the square of their number, so a group has those from its first rank to its last alone.
func (g *Group) Add(rank int, bytes int64) {
	for len(g.Bytes) <= rank-g.First {
		g.Bytes = append(g.Bytes, 0)
	}
	g.Bytes[rank-g.First] += bytes
}

// Lead is a rank that writes into a file.
type Lead struct{ File, Rank int }

// Writers elects the leaders of all files, and says by files and ranks which rank writes what each rank has. What slow nodes would write is
// rerouted. At most so many ranks lead a file; unless whole is set, rerouting may add others.
func Writers(files []Group, nodes []int, most int, slow map[int]float64, whole bool) (writers [][]int, leads []Lead) {
	var parts []Part
	for file, g := range files {
		_, of := Elect(g.Bytes, nodes[g.First:g.First+len(g.Bytes)], most, slow)
		for i, writer := range of {
			parts = append(parts, Part{file, g.First + i, g.Bytes[i], g.First + max(writer, 0)})
		}
	}
	Reroute(parts, nodes, slow, whole)
	writers = make([][]int, len(files))
	led := map[Lead]bool{}
	for _, x := range parts {
		writers[x.File] = append(writers[x.File], x.Writer)
		if lead := (Lead{x.File, x.Writer}); x.Bytes > 0 && !led[lead] {
			led[lead] = true
			leads = append(leads, lead)
		}
	}
	return writers, leads
}

// DefaultLeaders is the default number of leaders of a file: as many as let every node lead. Fewer files than nodes would else be slower than as many. The ranks of a
// file are neighbours, which may begin and end within a node whose other ranks go to another file: so there is one leader more than nodes for each file. Without it such
// a node might lead no file and send everything, or lead two and write for another node.
func DefaultLeaders(nodes []int, files int) int {
	different := map[int]bool{}
	for _, node := range nodes {
		different[node] = true
	}
	return (len(different)+files-1)/files + 1
}

// Reader is the rank that reads what a rank has for a file: the one that writes it, if it is on the rank's node; else the rank itself, which sends it.
func Reader(rank, writer int, nodes []int) int {
	if nodes[rank] == nodes[writer] {
		return writer
	}
	return rank
}
