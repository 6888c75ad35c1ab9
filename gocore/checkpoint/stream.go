package checkpoint

import (
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

// Stream is a reading whose bytes come in chunks to memory that is used again, so that no slot ever has all of them. It verifies by the hashes of leaves:
// every chunk has whole leaves. Parts of regions are contiguous.
type Stream struct {
	Chunks []Chunk

	reading  *Reading
	checks   []Check // what the chunks have, in the order of their bytes
	verifies bool
	sums     []uint64 // by leaf
}

// Chunk is what is read at once.
type Chunk struct {
	model.Span // of the slot
	Runs       []Run
}

// Run is whole leaves of one region in a chunk.
type Run struct {
	model.Span // of the slot
	// Wanted is the region's index in Selection.Regions. Bytes are those of the run that are wanted, by their offsets in what is wanted of the region, and
	// From is the offset of the first of them in the slot.
	Wanted int
	To     model.Span
	From   int64
	leaf   int // number of its first leaf
}

// Stream divides a reading into chunks of at most so many bytes, at least a leaf.
func (r *Reading) Stream(most int64, verifies bool) *Stream {
	s := &Stream{reading: r, verifies: verifies && r.Version.Sums != nil}
	if s.checks = r.Checks; !s.verifies {
		s.checks = r.unchecked()
	} else if r.Wanted.Parts == nil {
		s.checks = r.Version.wholeChecks(r.Wanted.Regions)
	}
	leaves := 0
	for i := range s.checks {
		s.add(&s.checks[i], most, leaves)
		leaves += checksum.Leaves(s.checks[i].Bytes)
	}
	s.sums = make([]uint64, leaves)
	return s
}

// unchecked are the ranges that are wanted, as checks that are not made.
func (r *Reading) unchecked() []Check {
	checks := make([]Check, 0, len(r.Wanted.Regions))
	for j, i := range r.Wanted.Regions {
		c := Check{Span: r.Version.Layout.Spans[i], Region: i}
		if r.Wanted.Parts != nil {
			part := &r.Wanted.Parts[j]
			c.Span = model.Span{Offset: c.Offset + part.Offset, Bytes: part.Item}
		}
		checks = append(checks, c)
	}
	return checks
}

// add adds the leaves of a check, the first of which has a number.
func (s *Stream) add(c *Check, most int64, leaf int) {
	wanted, _ := slices.BinarySearch(s.reading.Wanted.Regions, c.Region)
	for at := c.Offset; at < c.End(); {
		last := len(s.Chunks) - 1
		n := int64(0) // of this check, what the last chunk has room for
		if last >= 0 && at-s.Chunks[last].End() <= closeBy {
			n = s.Chunks[last].Offset + most - at
		}
		if n < c.End()-at {
			n = n / checksum.LeafBytes * checksum.LeafBytes
		}
		if n <= 0 {
			s.Chunks = append(s.Chunks, Chunk{Span: model.Span{Offset: at}})
			last++
			n = most / checksum.LeafBytes * checksum.LeafBytes
		}
		n = min(n, c.End()-at)
		chunk := &s.Chunks[last]
		chunk.Bytes = at + n - chunk.Offset
		chunk.Runs = append(chunk.Runs, s.run(model.Span{Offset: at, Bytes: n}, wanted, leaf))
		at += n
		leaf += checksum.Leaves(n)
	}
}

func (s *Stream) run(span model.Span, wanted, leaf int) Run {
	region := s.reading.Version.Layout.Spans[s.reading.Wanted.Regions[wanted]]
	part := region
	if s.reading.Wanted.Parts != nil {
		p := &s.reading.Wanted.Parts[wanted]
		part = model.Span{Offset: region.Offset + p.Offset, Bytes: p.Item}
	}
	from, end := max(span.Offset, part.Offset), min(span.End(), part.End())
	return Run{Span: span, Wanted: wanted, From: from, To: model.Span{Offset: from - part.Offset, Bytes: max(end-from, 0)}, leaf: leaf}
}

// Verifies tells whether the bytes are verified.
func (s *Stream) Verifies() bool { return s.verifies }

// Note takes over the hash of a leaf of a run. Several goroutines may call it at once, for different leaves.
func (s *Stream) Note(r *Run, leaf int, hash uint64) { s.sums[r.leaf+leaf] = hash }

// Mismatch returns the first region whose bytes are not those captured, or -1. All leaves have been noted.
func (s *Stream) Mismatch() int {
	if !s.verifies {
		return -1
	}
	return s.reading.Version.compare(s.checks, s.sums, s.reading.Wanted.Parts != nil)
}
