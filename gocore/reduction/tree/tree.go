// Package tree holds the digests of one region in levels, as a Merkle tree (Tan et al., ICPP'23, section 2.2).
//
// Level 0 has one leaf per chunk: N = ceil(bytes / chunk). Level k has ceil(N / 2^k) nodes; the highest level has one. Node (level, i) covers the chunks
// from i<<level up to min((i+1)<<level, N). A node with a single child has the child's digest. So a node keeps its place and its digest when the region
// grows or shrinks behind its chunks.
package tree

import (
	"math/bits"

	"velocpy/gocore/reduction/digest"
)

// Tree is immutable; versions of a region that are equal share one.
type Tree struct {
	levels [][]digest.Digest
	size   uint64 // bytes of the region
}

// Chunks returns the number of chunks of a region.
func Chunks(size uint64, chunk int) int {
	if size == 0 {
		return 0
	}
	return int((size-1)/uint64(chunk) + 1)
}

// Levels returns the number of levels above n leaves, theirs included.
func Levels(n int) int {
	if n == 0 {
		return 0
	}
	return bits.Len(uint(n-1)) + 1
}

// Count returns the number of nodes of a level above n leaves.
func Count(n, level int) int { return (n + 1<<level - 1) >> level }

// Bytes returns the memory of the digests of a tree with n leaves, with or without inner nodes: less than 2n + 64 digests.
func Bytes(n int, inner bool) int64 {
	total := int64(n)
	if inner {
		for level := 1; level < Levels(n); level++ {
			total += int64(Count(n, level))
		}
	}
	return total * digest.Bytes
}

// Leaves is the number of leaves; a nil tree has none.
func (t *Tree) Leaves() int { return len(t.Level(0)) }

// Size is the number of bytes of the region.
func (t *Tree) Size() uint64 {
	if t == nil {
		return 0
	}
	return t.size
}

// Level returns the digests of a level, which the caller must not change; none where the tree has no such level.
func (t *Tree) Level(level int) []digest.Digest {
	if t == nil || level >= len(t.levels) {
		return nil
	}
	return t.levels[level]
}

// Root is the digest of the whole region; false for an empty region, and for a tree of several leaves without inner nodes.
func (t *Tree) Root() (digest.Digest, bool) {
	if t == nil || len(t.levels) == 0 {
		return digest.Digest{}, false
	}
	top := t.levels[len(t.levels)-1]
	if len(top) != 1 {
		return digest.Digest{}, false
	}
	return top[0], true
}

// Change is a new digest of a leaf.
type Change struct {
	Leaf   int
	Digest digest.Digest
}

// Next returns the tree of the region's next version, of a size and n leaves. The changes, in ascending order, contain each leaf that t lacks or that
// differs from t's. t may be nil, and is not changed. With a nil function the tree gets no inner nodes.
//
// If t has inner nodes it only hashes the ancestors of changed leaves, and those of the last leaf if n changed.
func (t *Tree) Next(size uint64, n int, changes []Change, f *digest.Function) *Tree {
	if t != nil && len(changes) == 0 && size == t.size {
		return t
	}
	next := &Tree{size: size, levels: make([][]digest.Digest, 0, 1)}
	if n == 0 {
		return next
	}
	leaves := make([]digest.Digest, n)
	copy(leaves, t.Level(0))
	dirty := make([]int, 0, len(changes)+1)
	for _, c := range changes {
		leaves[c.Leaf] = c.Digest
		dirty = append(dirty, c.Leaf)
	}
	next.levels = append(next.levels, leaves)
	if f == nil {
		return next
	}
	if n != t.Leaves() && (len(dirty) == 0 || dirty[len(dirty)-1] != n-1) {
		dirty = append(dirty, n-1) // a node above the last leaf may have lost a child
	}
	for level := 1; level < Levels(n); level++ {
		dirty = next.raise(t, n, level, dirty, f)
	}
	return next
}

// raise makes a level from the one below, whose dirty nodes are given, and returns its own dirty nodes in the same memory.
func (t *Tree) raise(old *Tree, n, level int, dirty []int, f *digest.Function) []int {
	below := t.levels[level-1]
	nodes := make([]digest.Digest, Count(n, level))
	copy(nodes, old.Level(level))
	t.levels = append(t.levels, nodes)
	up := dirty[:0]
	for _, child := range dirty {
		i := child >> 1
		if len(up) > 0 && up[len(up)-1] == i {
			continue
		}
		up = append(up, i)
		if 2*i+1 < len(below) {
			nodes[i] = f.Node(below[2*i], below[2*i+1])
		} else {
			nodes[i] = below[2*i]
		}
	}
	return up
}
