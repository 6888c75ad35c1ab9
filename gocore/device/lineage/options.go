// Package lineage is the host's side of a lineage of checkpoints that a device de-duplicates (Tan et al., ICPP'23, algorithm 1). The digests and the record of the
// lineage are in device memory that the caller gives. The differences are those of package dedup, byte for byte.
package lineage

import (
	"errors"
	"fmt"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/difference"
)

// The errors of this package; the text of a wrapping error says more.
var (
	ErrOptions    = errors.New("invalid option of de-duplication on a device")
	ErrOrder      = errors.New("checkpoints of a lineage must have ascending numbers")
	ErrRegion     = errors.New("invalid regions")
	ErrBusy       = errors.New("a checkpoint of the lineage is neither finished nor dropped")
	ErrChanged    = errors.New("the state of the lineage on the device is that of no checkpoint: it must be rebased")
	ErrReferences = errors.New("the difference refers to too many checkpoints: the lineage must be rebased, and the checkpoint de-duplicated again")
	ErrMetadata   = errors.New("not the metadata of this checkpoint")
)

// Options are those of a lineage; all of its checkpoints share them.
type Options struct {
	Method difference.Method // Basic, List or Tree
	Chunk  int               // a power of two from 32 to 4096
	Seed   uint64            // as that of package dedup
	// Entries is the most that the record may have. First occurrences that do not fit are not recorded, which costs ratio only. Basic uses no record.
	Entries int
	// MaxAge bounds how old a place in the record may be: a checkpoint uses none of a checkpoint whose number is smaller by more. 0: no bound.
	MaxAge uint32
	// MaxReferences bounds how many other checkpoints a difference may refer to. 0: the limit of the format.
	MaxReferences int
	// Blocks compares one digest per 4 KiB first, and hashes the chunks of changed blocks only. It changes no result, and has no effect on chunks longer than
	// device.MostBlocksChunk.
	Blocks bool
}

func (o *Options) complete() error {
	if o.MaxReferences == 0 {
		o.MaxReferences = difference.MaxReferences
	}
	if o.Method == difference.Basic {
		o.Entries = 0
	}
	o.Blocks = o.Blocks && o.Chunk <= device.MostBlocksChunk
	switch {
	case o.Method != difference.Basic && o.Method != difference.List && o.Method != difference.Tree:
		return fmt.Errorf("%w: method %v", ErrOptions, o.Method)
	case !difference.ValidChunk(o.Chunk):
		return fmt.Errorf("%w: chunks of %d B", ErrOptions, o.Chunk)
	case o.Entries < 0 || o.Entries > device.MostDedupChunks:
		return fmt.Errorf("%w: a record of %d entries", ErrOptions, o.Entries)
	case o.MaxReferences < 0 || o.MaxReferences > difference.MaxReferences:
		return fmt.Errorf("%w: at most %d references", ErrOptions, o.MaxReferences)
	}
	return nil
}

// RecordBytes is how many bytes of device memory the record needs: for as long as the lineage lives.
func (o Options) RecordBytes() int64 {
	if o.Method == difference.Basic {
		return 0
	}
	return device.RecordBytes(o.Entries)
}

// digestAlign is the unit in which the digests of a region begin, as slots of device.Lane do.
const digestAlign = 64

func aligned(n int64) int64 { return (n + digestAlign - 1) &^ (digestAlign - 1) }

// DigestBytes is how many bytes of device memory the digests of regions of these sizes need between two checkpoints.
func (o Options) DigestBytes(sizes []int64) int64 {
	total := int64(0)
	for _, n := range sizes {
		total += aligned(device.LeafBytes(n, o.Chunk)) + o.blockBytes(n)
	}
	return total
}

func (o *Options) blockBytes(bytes int64) int64 {
	if !o.Blocks || o.Chunk > device.MostBlocksChunk {
		return 0
	}
	return aligned(device.BlockBytes(bytes))
}
