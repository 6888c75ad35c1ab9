package tree

import "velocpy/gocore/reduction/digest"

// Range is a range of chunks, from First up to End.
type Range struct{ First, End int }

// Compare returns the chunks in which two versions of a region differ, as ascending ranges that do not touch, and how many pairs of digests it compared.
// Chunks of the longer version that the other lacks are different. Both trees must have the same chunk length and function.
//
// It descends from the roots into nodes that differ: equal regions cost one comparison. Trees without inner nodes cost one per leaf.
func Compare(a, b *Tree) ([]Range, int) {
	c := comparison{a: a, b: b, shared: min(a.Leaves(), b.Leaves())}
	n := max(a.Leaves(), b.Leaves())
	if a != b && n > 0 {
		if inner(a) && inner(b) {
			c.descend(Levels(n)-1, 0)
		} else {
			c.walk()
		}
		c.add(c.shared, n)
	}
	return c.ranges, c.compared
}

func inner(t *Tree) bool {
	_, ok := t.Root()
	return ok
}

type comparison struct {
	a, b     *Tree
	shared   int // leaves that both have
	ranges   []Range
	compared int
}

func (c *comparison) descend(level, i int) {
	if i<<level >= c.shared {
		return
	}
	c.compared++
	if node(c.a, level, i) == node(c.b, level, i) && min((i+1)<<level, c.a.Leaves()) == min((i+1)<<level, c.b.Leaves()) {
		return
	}
	if level == 0 {
		c.add(i, i+1)
		return
	}
	c.descend(level-1, 2*i)
	c.descend(level-1, 2*i+1)
}

func (c *comparison) walk() {
	a, b := c.a.Level(0), c.b.Level(0)
	for i := range c.shared {
		if c.compared++; a[i] != b[i] {
			c.add(i, i+1)
		}
	}
}

func (c *comparison) add(first, end int) {
	if first >= end {
		return
	}
	if last := len(c.ranges) - 1; last >= 0 && c.ranges[last].End == first {
		c.ranges[last].End = end
		return
	}
	c.ranges = append(c.ranges, Range{first, end})
}

// node returns the digest of a node that exists; above the highest level it is the root's.
func node(t *Tree, level, i int) digest.Digest { return t.levels[min(level, len(t.levels)-1)][i] }
