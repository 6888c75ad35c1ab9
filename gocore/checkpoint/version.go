package checkpoint

import (
	"slices"

	"go.uber.org/atomic"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
)

// Version is one write of a checkpoint: what its bytes are, and how far they are on their way. A single region's checksum lies on the same cache line.
type Version struct {
	Layout  *Layout
	Sums    []uint64 // per region; nil without checksums
	only    [1]uint64
	Meta    string
	Time    int64 // time of capture, ns since 1970 (UTC); 0: the catalog does not tell
	Pending any   // how the bytes are taken; nil once they have been. A *pending.Capture, of a package that imports this one

	Encoding *model.Encoding // of the copies that are encoded, if they are no objects of a lineage; nil: they have the plain bytes
	// Difference says where the bytes of the copy on the disk are, if that is an object of a lineage; nil: it is none.
	Difference *model.Difference
	Anchor     bool // a device has encoded others with it, or may
	// Deduplicated describes the copy on the host, if a device has de-duplicated it; nil: that copy has the plain bytes, or is encoded.
	Deduplicated *Deduplicated

	Place  int64       // in the schedules of its history, from 1; 0: it has none
	Waited bool        // its flush was put aside once for the sake of a schedule; it is not again
	Serial uint64      // of this version in the catalog; 0: not yet assigned
	Redone uint8       // how often its bytes were rewritten because a sync had failed
	Gone   atomic.Bool // the version was dropped, replaced or consumed: transfers that copy it may stop

	leaves atomic.Pointer[leafHashes] // nil: not known
}

// Deduplicated describes a copy that has the first occurrences of a checkpoint alone. The rest of its bytes lies in copies of other checkpoints. It is immutable.
type Deduplicated struct {
	Lineage uint64          // random, so that no other lineage has it
	Number  uint32          // of the checkpoint in its lineage
	Bytes   int64           // of the first occurrences
	Map     *difference.Map // where all bytes lie, by the numbers of checkpoints
}

// Keep copies the checksums into the version.
func (v *Version) Keep(sums []uint64) {
	if len(sums) > 0 {
		v.Sums = append(v.only[:0:1], sums...)
	}
}

// Mismatch returns the first region of want whose bytes at slot do not have the recorded checksum, or -1.
func (v *Version) Mismatch(slot []byte, want []int32) int {
	if v.Sums == nil {
		return -1
	}
	for _, i := range want {
		s := v.Layout.Spans[i]
		if checksum.Sum(slot[s.Offset:s.Offset+s.Bytes]) != v.Sums[i] {
			return int(i)
		}
	}
	return -1
}

// HasLeaves tells whether a region has more than one leaf.
func (v *Version) HasLeaves() bool {
	return v.Sums != nil && slices.ContainsFunc(v.Layout.Spans, func(s model.Span) bool { return s.Bytes > checksum.LeafBytes })
}

// Leaves returns the hashes of the leaves of all regions with more than one. It fails if the bytes of such a region are not those captured.
func (v *Version) Leaves(slot []byte) (leaves []uint64, err error) {
	for i, span := range v.Layout.Spans {
		if span.Bytes <= checksum.LeafBytes {
			continue
		}
		first := len(leaves)
		for p := slot[span.Offset : span.Offset+span.Bytes]; len(p) > 0; {
			n := min(len(p), checksum.LeafBytes)
			leaves = append(leaves, checksum.Leaf(p[:n]))
			p = p[n:]
		}
		if checksum.Combine(leaves[first:]) != v.Sums[i] {
			return nil, Damaged(i, status.TierHost)
		}
	}
	return leaves, nil
}

// Damaged is the error of a region whose bytes from a tier differ from the captured bytes; nil for -1.
func Damaged(region, tier int) error {
	if region < 0 {
		return nil
	}
	return status.New(status.Corrupt, "the bytes read are not those that were captured (checksum mismatch)").AtTier(tier).AtRegion(region)
}

// Differing returns the indices of the regions whose checksums differ.
func Differing(sums, other []uint64) (bad []int32) {
	for i, sum := range sums {
		if sum != other[i] {
			bad = append(bad, int32(i))
		}
	}
	return bad
}
