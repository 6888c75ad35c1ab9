package checkpoint

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

// Selection names what a restore wants of a checkpoint.
type Selection struct {
	Regions []int32      // ascending
	Parts   []model.Part // of each region, in their order; nil: whole regions
}

// Check is a range of the slot that is verified: leaves of a region, and the checksum of their hashes.
type Check struct {
	model.Span
	Region int32
	Sum    uint64
	whole  bool // all leaves of the region
}

// Reading is what a restore reads of a version: at least what it wants, and all that the verification of that needs.
//
// A part of a region is verified by the leaves that it touches, if their hashes are known. If they are not, or if the part touches all of them, the whole
// region is read and verified. A version without checksums is read as it is wanted, in blocks of the disk.
type Reading struct {
	Version *Version
	Wanted  Selection
	Spans   []model.Span // of the slot: ascending, disjoint
	Checks  []Check      // by region, ascending; only with parts, and only if the version is verified
}

// Reading returns what a restore reads of the version.
func (v *Version) Reading(wanted Selection, verifies bool) *Reading {
	r := &Reading{Version: v, Wanted: wanted}
	if wanted.Parts == nil {
		r.Spans = v.Layout.Runs(wanted.Regions)
		return r
	}
	verifies = verifies && v.Sums != nil
	var known [][]uint64
	if verifies {
		known = v.knownLeaves(wanted.Regions)
	}
	for j, i := range wanted.Regions {
		region, part := v.Layout.Spans[i], &wanted.Parts[j]
		switch {
		case !verifies:
			r.read(region, part.Cover(region.Bytes, page, closeBy))
		case part.IsWhole(region.Bytes) || known[j] == nil:
			if bytes, _ := part.Check(region.Bytes); bytes > 0 || part.IsWhole(region.Bytes) {
				r.verify(i, region, []model.Span{{Bytes: region.Bytes}}, nil)
			}
		default:
			r.verify(i, region, part.Cover(region.Bytes, checksum.LeafBytes, checksum.LeafBytes-1), known[j])
		}
	}
	return r
}

// verify adds spans of a region, in whole leaves, that are read and verified.
func (r *Reading) verify(i int32, region model.Span, spans []model.Span, leaves []uint64) {
	for _, s := range spans {
		c := Check{Span: model.Span{Offset: region.Offset + s.Offset, Bytes: s.Bytes}, Region: i, Sum: r.Version.Sums[i], whole: s.Bytes == region.Bytes}
		if !c.whole {
			first := int(s.Offset / checksum.LeafBytes)
			c.Sum = checksum.Combine(leaves[first : first+checksum.Leaves(s.Bytes)])
		}
		r.Checks = append(r.Checks, c)
	}
	r.read(region, spans)
}

// read adds spans of a region. Spans that lie close together are read at once, as Layout.Run reads regions.
func (r *Reading) read(region model.Span, spans []model.Span) {
	for _, s := range spans {
		s.Offset += region.Offset
		last := len(r.Spans) - 1
		switch {
		case s.Bytes == 0:
		case last >= 0 && s.Offset-r.Spans[last].End() <= closeBy:
			r.Spans[last].Bytes = s.End() - r.Spans[last].Offset
		default:
			r.Spans = append(r.Spans, s)
		}
	}
}

// Bytes returns the bytes of all spans.
func (r *Reading) Bytes() (n int64) {
	for _, s := range r.Spans {
		n += s.Bytes
	}
	return n
}

// Verification returns the verification of what is read, whose bytes arrive in slot.
func (r *Reading) Verification(slot []byte) *Verification {
	return &Verification{Slot: slot, Version: r.Version, Regions: r.Wanted.Regions, parts: r.Wanted.Parts != nil, checks: r.Checks}
}

// NoteLeaves takes over the hashes of the leaves of all checks, which have passed. Those of whole regions are kept, if they were not known.
func (r *Reading) NoteLeaves(hashes func(check int) []uint64) { r.Version.note(r.Checks, hashes) }

func (v *Version) note(checks []Check, hashes func(check int) []uint64) {
	var found map[int32][]uint64
	for j := range checks {
		c := &checks[j]
		if !c.whole || multiple(c.Bytes) == 0 || v.knowsLeaves(c.Region) {
			continue
		}
		if found == nil {
			found = map[int32][]uint64{}
		}
		found[c.Region] = append([]uint64(nil), hashes(j)...)
	}
	v.NoteLeaves(found)
}
