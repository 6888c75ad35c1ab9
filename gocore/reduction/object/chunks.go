package object

import (
	"math/bits"

	"velocpy/gocore/reduction/codec"
)

// chunkSet is a set of the chunks of a container, one bit each. Methods look at the words alone that have these chunks: one word, of parts of model.PartGrain.
type chunkSet [MostPart / codec.ChunkBytes / wordBits]uint64

const wordBits = 64

// add adds the chunks from first to behind-1.
func (s *chunkSet) add(first, behind int) {
	for first < behind {
		bit := first % wordBits
		n := min(wordBits-bit, behind-first)
		s[first/wordBits] |= (1<<uint(n) - 1) << uint(bit)
		first += n
	}
}

// next returns the first chunk from one on that is in the set, or, if in is false, that is not; end if there is none before end.
func (s *chunkSet) next(from, end int, in bool) int {
	for from < end {
		bit := from % wordBits
		word := s[from/wordBits]
		if !in {
			word = ^word
		}
		if word >>= uint(bit); word != 0 {
			return min(from+bits.TrailingZeros64(word), end)
		}
		from += wordBits - bit
	}
	return end
}

// has tells whether the chunks from first to behind-1 are in the set.
func (s *chunkSet) has(first, behind int) bool { return s.next(first, behind, false) == behind }

// hull returns the first chunk of the set, and the one behind its last. Both are 0 if the set has none of the first n chunks.
func (s *chunkSet) hull(n int) (first, behind int) {
	for i := (n - 1) / wordBits; i >= 0; i-- {
		if s[i] != 0 {
			return s.next(0, n, true), min(i*wordBits+bits.Len64(s[i]), n)
		}
	}
	return 0, 0
}

// complete adds the chunks that can only be decoded together with those of the set, which is not empty.
func (s *chunkSet) complete(c *codec.Container) {
	if c.Together() > 1 {
		s.add(0, c.Chunks())
	}
}

// decode decodes the chunks of the set that are not done. before is the reference, if there is one.
func (s *chunkSet) decode(c *codec.Container, plain, before []byte, done *chunkSet) error {
	n := c.Chunks()
	missing := *s
	for i := range (n + wordBits - 1) / wordBits {
		missing[i] &^= done[i]
	}
	for first := missing.next(0, n, true); first < n; {
		behind := missing.next(first, n, false)
		if err := c.DecodeChunks(ofChunks(plain, first, behind), ofChunks(before, first, behind), first, behind, 1); err != nil {
			return err
		}
		done.add(first, behind)
		first = missing.next(behind, n, true)
	}
	return nil
}

// ofChunks are the bytes of chunks first to behind-1 of a container's plain bytes, or of its reference; nil if there is none.
func ofChunks(plain []byte, first, behind int) []byte {
	if plain == nil {
		return nil
	}
	return plain[first*codec.ChunkBytes : min(behind*codec.ChunkBytes, len(plain))]
}
