package schedule

import "slices"

// ranked is a state's place in a sorted list.
type ranked struct {
	first, second int64
	index         int32
}

func (a *ranked) before(b *ranked) bool {
	switch {
	case a.first != b.first:
		return a.first < b.first
	case a.second != b.second:
		return a.second < b.second
	}
	return a.index < b.index
}

func compareRanked(a, b ranked) int {
	if a.before(&b) {
		return -1
	}
	return 1 // no two have the same index
}

// fewRanked bounds the lists that are sorted by insertion. It is faster there than slices.SortFunc, which calls a function for each comparison.
const fewRanked = 40

func sortRanked(list []ranked) {
	if len(list) > fewRanked {
		slices.SortFunc(list, compareRanked)
		return
	}
	for k := 1; k < len(list); k++ {
		x, to := list[k], k
		for to > 0 && x.before(&list[to-1]) {
			list[to] = list[to-1]
			to--
		}
		list[to] = x
	}
}
