package durable

import (
	"fmt"
	"sort"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/reduction/codec"
)

// leafSource gives the bytes of a piece's leaves as they were captured: those of a raw row as they are on disk, those of other rows decoded. The caller asks for
// leaves in ascending order.
type leafSource interface {
	// lies returns the range of the space that a leaf's bytes are taken from.
	lies(leaf int) run
	// behind returns a later leaf. No leaf before it can be read if a range of the space is missing that the given leaf needs a part of.
	behind(leaf int, gone run) int
	// read returns the bytes of a leaf, which are valid until the next call, or the suspicion about this leaf and those that cannot be read for the same
	// reason.
	read(leaf int) ([]byte, *suspicion)
	// changed returns the suspicion that the bytes of leaves are not those that were captured.
	changed(from, end int) suspicion
}

// placedSource is a leafSource whose bytes lie in one range of the space.
type placedSource interface {
	leafSource
	// lacks returns the suspicion about a missing part of the piece.
	lacks(gone run, why string) suspicion
}

func (p *piece) source(w *window) placedSource {
	if p.row.Encoding == nil {
		return &rawSource{piece: p, window: w, place: p.lies.from - int64(p.from)*checksum.LeafBytes}
	}
	s := &encodedSource{piece: p, window: w, each: int(p.row.Encoding.Part / checksum.LeafBytes), opened: -1, starts: []int64{p.lies.from}}
	for end := p.lies.from; end < p.lies.end; {
		end += int64(p.row.Encoding.Lengths[p.container+len(s.starts)-1])
		s.starts = append(s.starts, end)
	}
	return s
}

// rawSource reads a piece of a raw row.
type rawSource struct {
	*piece
	window *window
	place  int64 // of the region in the space
}

func (s *rawSource) lies(leaf int) run {
	start := int64(leaf) * checksum.LeafBytes
	return run{s.place + start, s.place + min(start+checksum.LeafBytes, s.row.Layout.Spans[s.region].Bytes)}
}

func (s *rawSource) behind(leaf int, gone run) int { // a region may claim far more leaves than the files have
	return max(leaf+1, int((gone.end-s.place)/checksum.LeafBytes))
}

func (s *rawSource) read(leaf int) ([]byte, *suspicion) {
	r := s.lies(leaf)
	p, err := s.window.at(r.from, r.end-r.from)
	if err != nil {
		bad := s.suspect(leaf, leaf+1, r, Unreadable, err.Error())
		return nil, &bad
	}
	return p, nil
}

func (s *rawSource) lacks(gone run, why string) suspicion {
	return suspicion{*s.piece, Missing, gone.from - s.place, gone.end - gone.from, gone, why}
}

func (s *rawSource) changed(from, end int) suspicion {
	return s.suspect(from, end, run{s.lies(from).from, s.lies(end - 1).end}, Changed, mismatch)
}

// encodedSource reads and decodes a piece of an encoded row, container by container. It holds one container, and the plain bytes of one leaf.
type encodedSource struct {
	*piece
	window *window
	each   int              // leaves of a container
	starts []int64          // of the piece's containers in the space, and the end of the last one
	opened int              // the container that is held; -1: none
	held   *codec.Container // its bytes are in the window
}

// holder returns the container of a leaf, counted from the first one of the piece on.
func (s *encodedSource) holder(leaf int) int { return (leaf - s.from) / s.each }

// leaves returns the leaves of a container.
func (s *encodedSource) leaves(container int) (from, end int) {
	from = s.from + container*s.each
	return from, min(from+s.each, s.end)
}

func (s *encodedSource) lies(leaf int) run {
	n := s.holder(leaf)
	return run{s.starts[n], s.starts[n+1]}
}

func (s *encodedSource) behind(leaf int, _ run) int {
	_, end := s.leaves(s.holder(leaf))
	return end
}

func (s *encodedSource) read(leaf int) ([]byte, *suspicion) {
	n := s.holder(leaf)
	first, end := s.leaves(n)
	refuse := func(from, end int, fault Kind, why string) ([]byte, *suspicion) {
		bad := s.about(from, end, s.lies(leaf), fault, why)
		return nil, &bad
	}
	if n != s.opened {
		s.opened = -1
		p, err := s.window.at(s.starts[n], s.starts[n+1]-s.starts[n])
		if err != nil {
			return refuse(leaf, end, Unreadable, err.Error())
		}
		if s.held, err = codec.Open(p, int(s.plain(first, end))); err == nil && s.held.NeedsReference() {
			err = codec.ErrReference
		}
		if err != nil {
			return refuse(leaf, end, Changed, err.Error())
		}
		s.opened = n
	}
	to := s.window.leafBuffer()[:s.plain(leaf, leaf+1)]
	chunk := (leaf - first) * chunksOfLeaf
	if err := s.held.DecodeChunks(to, nil, chunk, min(chunk+chunksOfLeaf, s.held.Chunks()), 1); err != nil {
		return refuse(leaf, leaf+1, Changed, err.Error())
	}
	return to, nil
}

// chunksOfLeaf is the number of the codec's chunks in a leaf.
const chunksOfLeaf = checksum.LeafBytes / codec.ChunkBytes

// plain is the length of leaves.
func (s *encodedSource) plain(from, end int) int64 {
	return min(int64(end)*checksum.LeafBytes, s.row.Layout.Spans[s.region].Bytes) - int64(from)*checksum.LeafBytes
}

func (s *encodedSource) lacks(gone run, why string) suspicion {
	first := sort.Search(len(s.starts)-2, func(n int) bool { return s.starts[n+1] > gone.from })
	last := first + sort.Search(len(s.starts)-2-first, func(n int) bool { return s.starts[first+n+1] >= gone.end })
	from, _ := s.leaves(first)
	_, end := s.leaves(last)
	return s.about(from, end, gone, Missing, why)
}

func (s *encodedSource) changed(from, end int) suspicion {
	return s.about(from, end, run{s.lies(from).from, s.lies(end - 1).end}, Changed, mismatch)
}

// about returns a suspicion whose reason begins with the numbers of its containers.
func (s *encodedSource) about(from, end int, lies run, fault Kind, why string) suspicion {
	first, last := s.container+s.holder(from), s.container+s.holder(end-1)
	if first == last {
		return s.suspect(from, end, lies, fault, fmt.Sprintf("container %d: %s", first, why))
	}
	return s.suspect(from, end, lies, fault, fmt.Sprintf("containers %d to %d: %s", first, last, why))
}
