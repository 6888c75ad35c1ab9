package durable

import (
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// suspicion is a possible fault that has not been read a second time.
type suspicion struct {
	piece
	fault   Kind
	start   int64 // in the region
	bytes   int64
	suspect run // of the space: the part of lies that is concerned
	why     string
}

// suspect returns a suspicion about the leaves from, ..., end-1 of a piece.
func (p *piece) suspect(from, end int, lies run, fault Kind, why string) suspicion {
	return suspicion{*p, fault, int64(from) * checksum.LeafBytes, p.bytes(from, end), lies, why}
}

// bytes is the length of the leaves from, ..., end-1 of the piece's region.
func (p *piece) bytes(from, end int) int64 {
	return min(int64(end)*checksum.LeafBytes, p.row.Layout.Spans[p.region].Bytes) - int64(from)*checksum.LeafBytes
}

// mismatch is the reason of most suspicions.
const mismatch = "its bytes are not those that were written (checksum mismatch)"

// examine checks that the bytes of a piece exist and, if it is to be read, that they match their checksums. Bytes without checksums are only read, and
// decoded.
func (c *Check) examine(w *window, p piece) (found []suspicion) {
	if p.unsuitable {
		end := checksum.Leaves(p.row.Layout.Spans[p.region].Bytes)
		found = append(found, p.suspect(0, end, p.lies, Changed, "its checksum and the hashes of its leaves do not belong together"))
		if p.row.Content == catalog.Raw {
			found[0].suspect.end = p.lies.from + found[0].bytes
		}
	}
	if p.row.Difference != nil {
		return append(found, c.examineDifference(w, p)...)
	}
	source := p.source(w)
	gone := c.missing(p.lies.from, p.lies.end-p.lies.from)
	for _, r := range gone {
		found = append(found, source.lacks(r, c.gone(r)))
	}
	if !p.read {
		return found
	}
	return append(found, c.compare(p, source, gone)...)
}

// examineDifference is examine for a piece of a difference. A missing part of an object concerns the leaves that cannot be read without it, so these are
// read even if the others need not be.
func (c *Check) examineDifference(w *window, p piece) []suspicion {
	s := &differenceSource{piece: &p, differenceReader: c.difference(w, p.row), window: w}
	if !p.read && len(s.gone) == 0 || p.from == p.end && slices.ContainsFunc(p.row.Layout.Spans, func(s model.Span) bool { return s.Bytes > 0 }) {
		return nil // of an empty region there is something to say where no other region has bytes
	}
	if bad := s.open(); bad != nil {
		return []suspicion{s.about(p.from, p.end, bad)}
	}
	return c.compare(p, s, nil)
}

// compare reads the leaves of a piece that need none of the missing ranges, and compares them with their hashes.
func (c *Check) compare(p piece, source leafSource, gone []run) (found []suspicion) {
	var leaves []uint64
	whole := len(gone) == 0
	for leaf := p.from; leaf < p.end; {
		lies := source.lies(leaf)
		for len(gone) > 0 && gone[0].end <= lies.from {
			gone = gone[1:]
		}
		if len(gone) > 0 && gone[0].from < lies.end {
			leaf = source.behind(leaf, gone[0])
			continue
		}
		bytes, bad := source.read(leaf)
		if bad != nil {
			found = append(found, *bad)
			leaf, whole = int((bad.start+bad.bytes+checksum.LeafBytes-1)/checksum.LeafBytes), false
			continue
		}
		c.read.Add(int64(len(bytes)))
		if p.row.Sums != nil {
			sum := checksum.Leaf(bytes)
			switch want, known := p.leaf(leaf); {
			case !known:
				leaves = append(leaves, sum)
			case sum != want:
				found = append(found, source.changed(leaf, leaf+1))
			}
		}
		leaf++
	}
	if whole && len(leaves) > 0 && checksum.Combine(leaves) != p.row.Sums[p.region] {
		found = append(found, source.changed(p.from, p.end))
	}
	return found
}

// leaf returns the expected hash of a leaf, if the row has one for this leaf alone.
func (p *piece) leaf(leaf int) (sum uint64, known bool) {
	switch {
	case checksum.Leaves(p.row.Layout.Spans[p.region].Bytes) == 1:
		return p.row.Sums[p.region], true
	case p.row.Leaves == nil:
		return 0, false
	}
	return p.row.Leaves[p.first+leaf], true
}

// gone returns the reason why a range is missing.
func (c *Check) gone(r run) string {
	if c.foreign[r.from/c.v.identity.segment] {
		return "the data file belongs elsewhere"
	}
	return "the data file ends before"
}

// missing returns the parts of a range that no data file has, ascending.
func (c *Check) missing(off, n int64) (gone []run) {
	for end := off + n; off < end; {
		number := off / c.v.identity.segment
		start := number * c.v.identity.segment
		next := min(end, start+c.v.identity.segment)
		if there := start + c.files[number]; there < next {
			if n := len(gone); n > 0 && gone[n-1].end == max(off, there) && c.foreign[number-1] == c.foreign[number] {
				gone[n-1].end = next
			} else {
				gone = append(gone, run{max(off, there), next})
			}
		}
		off = next
	}
	return gone
}
