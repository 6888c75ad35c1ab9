package checkpoint

import (
	"sort"

	"go.uber.org/atomic"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

// Verification verifies regions whose bytes arrive in a slot in pieces and in any order. Large regions are verified while they arrive: the
// goroutine that brings the last byte of a leaf hashes the leaf, while others are read. Hashing all leaves afterwards would cost a tenth of the time
// of the read.
type Verification struct {
	Slot    []byte
	Version *Version
	Regions []int32 // indices of the regions that are verified
	parts   bool    // parts of regions are wanted: checks tells what is verified
	checks  []Check // in the order of their bytes

	unread atomic.Int64
	read   func()        // called when all bytes have arrived, before the last of them are hashed
	leaves []pendingLeaf // of all regions, in the order of their bytes; nil: the regions are hashed at the end
	sums   []uint64
}

type pendingLeaf struct {
	from, end int64 // offsets in the slot
	missing   atomic.Int64
}

// incrementalFrom is the size from which on the bookkeeping pays. Smaller reads arrive in one piece.
const incrementalFrom = 1 << 20

// Expect prepares for bytes that arrive in these spans.
func (a *Verification) Expect(spans []model.Span, verifies bool, read func()) {
	bytes := int64(0)
	for _, span := range spans {
		bytes += span.Bytes
	}
	a.unread.Store(bytes)
	a.read = read
	if verifies && (a.parts || bytes >= incrementalFrom) && a.Version.Sums != nil {
		a.expectLeaves()
	}
}

func (a *Verification) expectLeaves() {
	if !a.parts {
		a.checks = a.Version.wholeChecks(a.Regions)
	}
	n := 0
	for j := range a.checks {
		n += checksum.Leaves(a.checks[j].Bytes)
	}
	a.leaves, a.sums = make([]pendingLeaf, n), make([]uint64, n)
	next := a.leaves
	for j := range a.checks {
		span := a.checks[j].Span
		for from, end := span.Offset, span.Offset+span.Bytes; from < end; from += checksum.LeafBytes {
			leaf := &next[0]
			leaf.from, leaf.end = from, min(from+checksum.LeafBytes, end)
			leaf.missing.Store(leaf.end - leaf.from)
			next = next[1:]
		}
	}
}

// wholeChecks are those of whole regions. The version has checksums.
func (v *Version) wholeChecks(regions []int32) []Check {
	checks := make([]Check, len(regions))
	for j, i := range regions {
		checks[j] = Check{Span: v.Layout.Spans[i], Region: i, Sum: v.Sums[i]}
	}
	return checks
}

// Received records that bytes of the slot have arrived. Several goroutines may call it at once, once for each byte.
func (a *Verification) Received(from, n int64) {
	if a.unread.Sub(n) == 0 {
		a.read()
	}
	end := from + n
	first := sort.Search(len(a.leaves), func(i int) bool { return a.leaves[i].end > from })
	for i := first; i < len(a.leaves) && a.leaves[i].from < end; i++ {
		leaf := &a.leaves[i]
		if leaf.missing.Sub(min(end, leaf.end)-max(from, leaf.from)) == 0 {
			a.sums[i] = checksum.Leaf(a.Slot[leaf.from:leaf.end])
		}
	}
}

// Mismatch returns the first region whose bytes are not those captured, or -1. All bytes have arrived.
func (a *Verification) Mismatch() int {
	if a.leaves == nil {
		return a.Version.Mismatch(a.Slot, a.Regions)
	}
	return a.Version.compare(a.checks, a.sums, a.parts)
}

// compare returns the first region of which a check fails, or -1, by the hashes of the leaves of all checks. note takes over those of whole regions.
func (v *Version) compare(checks []Check, rest []uint64, note bool) int {
	var hashes [][]uint64
	for j := range checks {
		c := &checks[j]
		n := checksum.Leaves(c.Bytes)
		//mutation:part-from-below-unverified
		if checksum.Combine(rest[:n]) != c.Sum {
			return int(c.Region)
		}
		if note {
			hashes = append(hashes, rest[:n])
		}
		rest = rest[n:]
	}
	if note {
		v.note(checks, func(j int) []uint64 { return hashes[j] })
	}
	return -1
}
