// Package aggregation decides which file of an archive takes the checkpoints of which rank (Gossman et al., "Scalable I/O aggregation for asynchronous multi-level
// checkpointing", section 4).
//
// The paper gives each file as many neighbouring nodes as any other, and leaves files of different sizes to chance; it names groups that are balanced by prefix sums as
// a possible extension. Here they are the rule: the ranks of a file are neighbours, and the largest file is as small as neighbours allow.
package aggregation

import "sort"

// Groups cuts ranks, with so many bytes each, into groups of neighbours, one for each file: at most as many as there are files, and exactly as many if there are
// enough ranks. It returns the end of each group: group i has the ranks from ends[i-1] on, below ends[i]. The largest group has as few bytes as any such cut allows.
func Groups(bytes []int64, files int) (ends []int) {
	files = min(files, len(bytes))
	if files < 1 {
		return nil
	}
	before := prefixSums(bytes)
	largest := int64(0)
	for _, n := range bytes {
		largest = max(largest, n)
	}
	// The least limit that so many groups can keep. A sum of more than 2^63 bytes does not exist on any file system.
	least := sort.Search(int(before[len(bytes)]-largest)+1, func(more int) bool { return needed(before, largest+int64(more)) <= files })
	return cut(before, largest+int64(least), files)
}

// prefixSums returns the bytes of the ranks before each rank, and of all.
func prefixSums(bytes []int64) []int64 {
	before := make([]int64, len(bytes)+1)
	for i, n := range bytes {
		before[i+1] = before[i] + n
	}
	return before
}

// reach returns the end of the longest group from a rank on that keeps a limit. Ranks without bytes behind it belong to it.
func reach(before []int64, from int, limit int64) int {
	return from + sort.Search(len(before)-1-from, func(n int) bool { return before[from+n+1]-before[from] > limit })
}

// needed is the number of groups that a limit needs. No rank has more bytes than that.
func needed(before []int64, limit int64) (groups int) {
	for from := 0; from < len(before)-1; groups++ {
		from = reach(before, from, limit)
	}
	return groups
}

// cut cuts groups that keep a limit, and leaves a rank at least to each of those that follow.
func cut(before []int64, limit int64, files int) (ends []int) {
	ranks, from := len(before)-1, 0
	for len(ends) < files {
		from = min(reach(before, from, limit), ranks-(files-len(ends)-1))
		ends = append(ends, from)
	}
	return ends
}
