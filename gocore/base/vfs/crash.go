package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is the unit that a disk writes atomically.
const sector = 512

// Crash returns a disk as a power loss at this moment may leave it. It has everything that was synced. Of the rest, each block, name and size is kept
// with the probability keep, independently of each other; blocks may be torn. The disk itself continues unchanged.
func (m *Mem) Crash(r *rand.Rand, keep float64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := NewMem(m.capacity)
	c := &crash{r: r, keep: keep, disk: left, nodes: map[*memNode]*memNode{}}
	left.root = c.dir(m.root)
	return left
}

type crash struct {
	r     *rand.Rand
	keep  float64
	disk  *Mem
	nodes map[*memNode]*memNode
}

func (c *crash) kept() bool { return c.r.Float64() < c.keep }

func (c *crash) dir(from *memDir) *memDir {
	names := map[string]any{}
	for name, to := range from.stable {
		names[name] = to
	}
	for _, x := range from.unsynced {
		switch {
		case !c.kept():
		case x.to == nil:
			delete(names, x.name)
		default:
			names[x.name] = x.to
		}
	}
	to := newMemDir()
	for _, name := range slices.Sorted(maps.Keys(names)) { // the same seed is the same crash
		switch at := names[name].(type) {
		case *memDir:
			to.live[name] = c.dir(at)
		case *memNode:
			to.live[name] = c.node(at)
		}
		to.stable[name] = to.live[name]
	}
	return to
}

func (c *crash) node(from *memNode) *memNode {
	to := newMemNode(c.disk)
	to.links, to.named = 1, true
	size := c.size(from)
	blocks := map[int64]struct{}{}
	for b := range from.stable {
		blocks[b] = struct{}{}
	}
	for b := range from.dirty {
		blocks[b] = struct{}{}
	}
	for b := range from.astray {
		blocks[b] = struct{}{}
	}
	for _, b := range slices.Sorted(maps.Keys(blocks)) {
		if at := b * memBlock; at < size {
			block := c.block(from, b)
			_, _ = to.write(block[:min(memBlock, size-at)], at) // it fits, as it did on the original
		}
	}
	to.size = size
	to.sync()
	return to
}

// size is the old size, the new one, or one between.
func (c *crash) size(n *memNode) int64 {
	low, high := min(n.size, n.stableSize), max(n.size, n.stableSize)
	switch {
	case c.kept():
		return n.size
	case c.keep > 0 && high > low && c.kept():
		return low + c.r.Int64N(high-low)
	}
	return n.stableSize
}

// block is the old block, the new one, or sectors of both.
func (c *crash) block(n *memNode, b int64) *[memBlock]byte {
	var found, now [memBlock]byte
	if old := n.stable[b]; old != nil {
		found = *old
	}
	_, dirty := n.dirty[b]
	_, astray := n.astray[b]
	if !dirty && !astray {
		return &found
	}
	n.read(now[:], b*memBlock)
	if torn := c.keep > 0 && c.keep < 1 && c.r.IntN(4) == 0; !torn {
		if c.kept() {
			return &now
		}
		return &found
	}
	for at := 0; at < memBlock; at += sector {
		if c.kept() {
			copy(found[at:at+sector], now[at:])
		}
	}
	return &found
}
