package segment

import (
	"iter"
	"sync"

	"go.uber.org/atomic"
)

// segments divide a space: each has a file.
type segments struct {
	each     int64        // length of each segment
	capacity atomic.Int64 // bytes of the space

	mu       sync.Mutex         // guards byNumber
	byNumber map[int64]*segment // created on first use: a large capacity costs nothing until it is used
}

// Capacity returns the number of bytes of the space.
func (s *segments) Capacity() int64 { return s.capacity.Load() }

// Grow enlarges the space; it never shrinks it.
func (s *segments) Grow(capacity int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacity.Store(max(s.capacity.Load(), Blocks(capacity)))
}

// SegmentBytes is the length of a segment.
func (s *segments) SegmentBytes() int64 { return s.each }

// Segments returns the numbers of the segments that a range overlaps: from first on, below end.
func (s *segments) Segments(off, n int64) (first, end int64) {
	return off / s.each, (off+max(n, 1)-1)/s.each + 1
}

// Range returns the range of a segment in the space.
func (s *segments) Range(number int64) (from, end int64) {
	from = number * s.each
	return from, from + s.each
}

// segment returns the segment with the byte at off.
func (s *segments) segment(off int64) *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbered(off / s.each)
}

// lookUp returns a segment by its number.
func (s *segments) lookUp(number int64) *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbered(number)
}

// numbered returns a segment by its number. The caller holds mu.
func (s *segments) numbered(number int64) *segment {
	g := s.byNumber[number]
	if g == nil {
		g = &segment{number: number, start: number * s.each}
		g.limit.Store(s.each)
		s.byNumber[number] = g
	}
	return g
}

// occupy records the end of the used part of each segment.
func (s *segments) occupy(ranges iter.Seq2[int64, int64]) {
	for from, end := range ranges {
		for number := from / s.each; number*s.each < end; number++ {
			g := s.numbered(number)
			g.had = max(g.had, min(end-g.start, s.each))
		}
	}
}

// length is the final length of the segment's file.
func (s *segments) length(g *segment) int64 { return min(g.limit.Load(), s.Capacity()-g.start) }

// Limit stops a segment's file from allocating room beyond an offset; there is no limit at first. Room that is already allocated stays.
func (s *segments) Limit(number, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbered(number).limit.Store(bytes)
}

// IndexEnds sets the end of the written part of each half of an index, in whole pieces, as found by a caller that has read it.
func (s *segments) IndexEnds(number int64, ends [2]int64) {
	g := s.lookUp(number)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.index = indexUse{ends: ends, known: true}
}

// Discards counts how often a segment's file was discarded: knowledge about the index of an earlier file does not apply to the next one.
func (s *segments) Discards(number int64) int64 {
	g := s.lookUp(number)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.discards
}
