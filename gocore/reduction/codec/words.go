package codec

import "encoding/binary"

// word is an element as an integer.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// view is the words of a chunk, and the words of the reference. Both slices have whole groups. Behind the last word those to encode, and the reference, have
// zeros.
type view struct {
	plain, reference []byte // reference is nil if there is none
	words            int
	size             int // bytes of a word
}

// groups is the number of groups that hold some words.
func groups(words int) int { return (words + groupWords - 1) / groupWords }

// group is the part of a slice of whole groups.
func (v *view) group(p []byte, g int) []byte {
	if p == nil {
		return nil
	}
	n := groupWords * v.size
	return p[g*n : (g+1)*n : (g+1)*n]
}

// valid is the number of words in a group.
func (v *view) valid(g int) int { return min(groupWords, v.words-g*groupWords) }

// wordAt reads a word of 1, 2, 4 or 8 bytes.
func wordAt(p []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

// roundUp rounds up to a multiple of a power of two.
func roundUp(n, to int) int { return (n + to - 1) &^ (to - 1) }
