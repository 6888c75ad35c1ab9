package description

import (
	"math"
	"strconv"
	"strings"
)

// Number reads a number of a checkpoint's meta: the member that the names lead to, each in the object of the one before. text is that of the checkpoint's
// layout, as the meta proper of a tree stands beside its values. Of members with one name the last counts, as in Python's JSON. ok is false where the meta is no
// JSON, a name leads nowhere, or to something else than a number that is finite as a float64. Only what is named is converted; the rest is skipped.
func Number(text, meta string, names []string) (n float64, ok bool) {
	j := json{p: meta}
	var right bool
	if isTree(text) {
		n, ok, right = j.besideValues(names)
	} else {
		n, ok, right = j.member(names, 0)
	}
	return n, ok && right && j.ends()
}

// isTree tells whether a layout with this text is that of a tree.
func isTree(text string) bool {
	return strings.HasPrefix(text, string([]byte{magic, version, treeKind}))
}

// besideValues is member for the meta proper of a tree: the second item of a list of two.
func (j *json) besideValues(names []string) (n float64, ok, right bool) {
	part := 0
	right = j.list(func() (right bool) {
		if part++; part == 2 {
			n, ok, right = j.member(names, 1)
			return right
		}
		return part < 2 && j.value(1)
	})
	return n, ok, right && part == 2
}

// member takes a value at a depth, and gives the number to which names lead from it. right: it is a value.
func (j *json) member(names []string, depth int) (n float64, ok, right bool) {
	j.space()
	before := j.p
	if len(names) == 0 {
		right = j.value(depth)
		n, ok = finite(before[:len(before)-len(j.p)])
		return n, ok, right
	}
	if !strings.HasPrefix(before, "{") || depth >= mostDepth {
		return 0, false, j.value(depth)
	}
	right = j.object(func(name string) (right bool) {
		if name != names[0] {
			return j.value(depth + 1)
		}
		n, ok, right = j.member(names[1:], depth+1)
		return right
	})
	return n, ok, right
}

// finite reads a value as a number; one that rounds to an infinity is none.
func finite(literal string) (n float64, ok bool) {
	if strings.TrimLeft(literal, "-0123456789.eE+") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(literal, 64)
	return n, err == nil && !math.IsInf(n, 0)
}
