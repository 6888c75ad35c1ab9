package store

import (
	"sort"

	"go.uber.org/atomic"

	"velocpy/gocore/checksum"
)

// arrivals compares regions with what was captured while their bytes are still coming, in pieces and in any order: each leaf is hashed, by whoever brought the last
// of its bytes, while others are read. Hashed in one go afterwards they would cost what a tenth of the reading takes.
type arrivals struct {
	slot    []byte
	body    *body
	regions []int32
	leaves  []arriving // of all regions, in the order of their bytes
	sums    []uint64
}

// arriving is a leaf.
type arriving struct {
	from, end int64 // in the slot
	missing   atomic.Int64
}

// arriveFrom is the size from which on the bookkeeping pays; what is smaller is read in one piece.
const arriveFrom = 1 << 20

// newArrivals expects the regions of a slot; nil when they are not worth it, or have nothing to be compared with.
func newArrivals(slot []byte, b *body, regions []int32) *arrivals {
	leaves, bytes := 0, int64(0)
	for _, i := range regions {
		leaves += checksum.Leaves(b.layout.spans[i].Bytes)
		bytes += b.layout.spans[i].Bytes
	}
	if b.sums == nil || bytes < arriveFrom {
		return nil
	}
	a := &arrivals{slot: slot, body: b, regions: regions, leaves: make([]arriving, leaves), sums: make([]uint64, leaves)}
	next := a.leaves
	for _, i := range regions {
		span := b.layout.spans[i]
		for from, end := span.Offset, span.Offset+span.Bytes; from < end; from += checksum.LeafBytes {
			leaf := &next[0]
			leaf.from, leaf.end = from, min(from+checksum.LeafBytes, end)
			leaf.missing.Store(leaf.end - leaf.from)
			next = next[1:]
		}
	}
	return a
}

// arrived is told of bytes of the slot that have come. It may be called by several at once, for each byte once.
func (a *arrivals) arrived(from, n int64) {
	end := from + n
	first := sort.Search(len(a.leaves), func(i int) bool { return a.leaves[i].end > from })
	for i := first; i < len(a.leaves) && a.leaves[i].from < end; i++ {
		leaf := &a.leaves[i]
		if leaf.missing.Sub(min(end, leaf.end)-max(from, leaf.from)) == 0 {
			a.sums[i] = checksum.Leaf(a.slot[leaf.from:leaf.end])
		}
	}
}

// mismatch returns the first region, all of which has come, whose bytes are not those that were captured, or -1.
func (a *arrivals) mismatch() int {
	rest := a.sums
	for _, i := range a.regions {
		n := checksum.Leaves(a.body.layout.spans[i].Bytes)
		if checksum.Combine(rest[:n]) != a.body.sums[i] {
			return int(i)
		}
		rest = rest[n:]
	}
	return -1
}
