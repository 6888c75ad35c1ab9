package checkpoint

import (
	"maps"

	"velocpy/gocore/base/checksum"
)

// leafHashes are the hashes of leaves that are known of a version: of all its regions with more than one leaf, in order, or of some of them. They are
// immutable. The hash of a single leaf is the checksum of its region.
type leafHashes struct {
	all  []uint64
	some map[int32][]uint64 // by region
}

// KeepLeaves takes over the hashes of the leaves of all regions with more than one, in order. They are those of the captured bytes.
func (v *Version) KeepLeaves(all []uint64) {
	if len(all) > 0 {
		v.leaves.Store(&leafHashes{all: all})
	}
}

// AdoptLeaves is KeepLeaves for hashes from a catalog. It takes over none unless the checksums follow from them.
func (v *Version) AdoptLeaves(all []uint64) {
	rest := all
	for i, span := range v.Layout.Spans {
		n := multiple(span.Bytes)
		if n == 0 {
			continue
		}
		//mutation:wrong-leaves-adopted
		if i >= len(v.Sums) || n > len(rest) || checksum.Combine(rest[:n]) != v.Sums[i] {
			return
		}
		rest = rest[n:]
	}
	if len(rest) == 0 {
		v.KeepLeaves(all)
	}
}

// NoteLeaves takes over the hashes of the leaves of some regions with more than one: of each, all of its leaves.
func (v *Version) NoteLeaves(found map[int32][]uint64) {
	for len(found) > 0 {
		before, now := v.leaves.Load(), &leafHashes{some: found}
		if before != nil {
			if before.all != nil {
				return
			}
			now.some = maps.Clone(before.some)
			maps.Copy(now.some, found)
		}
		if v.leaves.CompareAndSwap(before, now) {
			return
		}
	}
}

// knowsLeaves tells whether the hashes of the leaves of a region are known.
func (v *Version) knowsLeaves(region int32) bool {
	known := v.leaves.Load()
	return known != nil && (known.all != nil || known.some[region] != nil)
}

// AllLeaves returns the hashes of the leaves of all regions with more than one, in order; nil if not all are known.
func (v *Version) AllLeaves() []uint64 {
	if known := v.leaves.Load(); known != nil {
		return known.all
	}
	return nil
}

// LeavesByRegion returns the hashes of the leaves of each region with more than one; nil for other regions, and where they are not known.
func (v *Version) LeavesByRegion() [][]uint64 {
	if v.Sums == nil {
		return nil
	}
	found := v.knownLeaves(v.Layout.All())
	for i, leaves := range found {
		if len(leaves) < 2 {
			found[i] = nil
		}
	}
	return found
}

// multiple is the number of leaves of a region; 0 if there is at most one.
func multiple(bytes int64) int {
	if n := checksum.Leaves(bytes); n > 1 {
		return n
	}
	return 0
}

// knownLeaves returns the hashes of the leaves of regions, in ascending order; nil for those of which they are not known. The version has checksums.
func (v *Version) knownLeaves(regions []int32) [][]uint64 {
	known := v.leaves.Load()
	found := make([][]uint64, len(regions))
	next, before := int32(0), 0 // leaves of the regions before next
	for j, i := range regions {
		switch n := multiple(v.Layout.Spans[i].Bytes); {
		case n == 0:
			found[j] = v.Sums[i : i+1]
		case known == nil:
		case known.all != nil:
			for ; next < i; next++ {
				before += multiple(v.Layout.Spans[next].Bytes)
			}
			found[j] = known.all[before : before+n]
		default:
			found[j] = known.some[i]
		}
	}
	return found
}
