package aggregation

// Leader elects the rank that writes a file: one of the node that has the most bytes for it, since what lies on the leader's node need not be sent (section 4.2 of the
// paper). Of nodes with as many bytes, it is the one that comes first. Of the node's ranks with bytes for the file, it is the one that leads the fewest files, and of
// these the lowest. -1: no rank has bytes.
//
// bytes are those of each rank for the file, nodes the number of each rank's node, and leads how many files each rank leads already.
func Leader(bytes []int64, nodes, leads []int) (leader int) {
	leader = -1
	node := heaviest(bytes, nodes)
	for rank, n := range bytes {
		if n > 0 && nodes[rank] == node && (leader < 0 || leads[rank] < leads[leader]) {
			leader = rank
		}
	}
	return leader
}

// heaviest is the node with the most bytes; of equal ones the first.
func heaviest(bytes []int64, nodes []int) (node int) {
	sums := map[int]int64{}
	most := int64(0)
	for i, n := range bytes {
		sums[nodes[i]] += n
		most = max(most, sums[nodes[i]])
	}
	for _, node := range nodes {
		if sums[node] == most {
			return node
		}
	}
	return -1
}
