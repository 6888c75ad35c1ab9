package dedup

import (
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/tree"
)

// Memory bounds the bytes that a lineage keeps between two checkpoints for regions of the given sizes, with options that New accepts: record, trees and
// digests of blocks. The map of the last checkpoint is apart, since it depends on the contents: 24 bytes per run. While Dedup runs it needs as much again
// for the trees, and about 200 bytes per chunk that is no fixed duplicate, beside the difference.
func (o Options) Memory(sizes []uint64) int64 {
	total := int64(0)
	if o.Method >= difference.List {
		total = max(o.Record, 0)
	}
	for _, size := range sizes {
		if o.Method != difference.Full {
			total += tree.Bytes(tree.Chunks(size, o.Chunk), o.Method == difference.Tree)
		}
		if o.Method != difference.Full && o.Blocks && o.Chunk < blockBytes {
			total += int64(tree.Chunks(size, blockBytes)) * digest.Bytes
		}
	}
	return total
}
