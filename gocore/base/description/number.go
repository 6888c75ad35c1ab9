package description

import (
	"math"
	"strconv"
	"strings"
)

// Number reads a number of a checkpoint's meta: the member at the path of names, each in the object of the previous one. text is that of the
// checkpoint's layout, since the meta of a tree is stored beside its values. Of members with one name the last counts, as in Python's JSON. ok is
// false if the meta is invalid or the path does not exist. It is also false if the value is not a number that is finite as a float64. Only that value
// is converted; the rest is skipped.
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

// isTree tells whether this is the text of a tree's layout.
func isTree(text string) bool {
	return strings.HasPrefix(text, string([]byte{magic, version, treeKind}))
}

// besideValues is member for the meta of a tree: the second item of a list of two.
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

// member consumes a value at a depth, and returns the number at the path of names in it. right: the value is valid JSON.
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

// finite reads a value as a number; one that rounds to an infinity is rejected.
func finite(literal string) (n float64, ok bool) {
	if strings.TrimLeft(literal, "-0123456789.eE+") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(literal, 64)
	return n, err == nil && !math.IsInf(n, 0)
}
