package regions

import (
	"fmt"

	"velocpy/gocore/base/memory"
)

// Room is memory for one call of Encode or Decode at a time. It keeps what it has mapped for the next one. The zero value has none.
type Room struct{ mapping *memory.Mapping }

// Cut returns slices of at least these lengths, each at the beginning of a page. What they hold is not defined.
func (r *Room) Cut(lengths ...int64) ([][]byte, error) {
	all := int64(0)
	for _, n := range lengths {
		all += wholeBlocks(n)
	}
	if r.mapping == nil || r.mapping.Size() < all {
		r.Free()
		m, err := memory.Map("encoding", all)
		if err != nil {
			return nil, fmt.Errorf("no memory beside the checkpoint: %w", err)
		}
		r.mapping = m
	}
	slices, at := make([][]byte, len(lengths)), int64(0)
	for i, n := range lengths {
		slices[i] = r.mapping.Bytes(at, wholeBlocks(n))
		at += wholeBlocks(n)
	}
	return slices, nil
}

// BlockBytes is the unit in which a sink takes bytes, and the alignment of the memory that they lie in: a disk can be written from there without another copy.
const BlockBytes = 4096

func wholeBlocks(n int64) int64 { return (n + BlockBytes - 1) / BlockBytes * BlockBytes }

// Free gives the memory back. It must not be in use.
func (r *Room) Free() {
	if r.mapping != nil {
		_ = r.mapping.Unmap() // no other goroutine uses it
		r.mapping = nil
	}
}
