// Package dedup makes the differences of the checkpoints of a lineage (Tan et al., ICPP'23, algorithm 1).
//
// The result depends on the inputs alone. Each step is a wave over independent chunks or nodes, or a prefix sum, so that a GPU can write the same bytes:
//
//  1. Digests: a chunk that has the digest of the same chunk of the same region in the checkpoint before, and its length, is a fixed duplicate.
//  2. Labels: of the others, a chunk whose digest the record has is a shifted duplicate of the record's place. Of the chunks that are left and equal,
//     the lowest position is the first occurrence; the others are shifted duplicates of it.
//  3. Offsets: the prefix sum of the lengths of first occurrences gives their places.
//  4. First occurrences consolidate level by level: a node whose two children are first occurrences is one.
//  5. Shifted duplicates consolidate level by level: a node whose two children are shifted duplicates is one if the record has its digest, or a node of
//     step 4. A node with one child is that child, in both steps.
//  6. Nodes that have no such parent are entries. The digests of step 4 are offered to the record level by level, and by position.
package dedup

import (
	"errors"
	"fmt"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
)

// The errors of this package; the text of a wrapping error says more.
var (
	ErrChunk   = errors.New("the chunk length must be a power of two from 32 to 4096")
	ErrOptions = errors.New("invalid option of de-duplication")
	ErrOrder   = errors.New("checkpoints of a lineage must have ascending numbers")
	ErrRegion  = errors.New("invalid regions")
	ErrVerify  = errors.New("cannot read the bytes of a source") // Options.Read failed
)

// Options are those of a lineage; all of its checkpoints share them.
type Options struct {
	// Method is the form of the metadata. Full and Basic use no record.
	Method difference.Method
	// Chunk is the chunk length, a power of two from 32 to 4096.
	Chunk int
	// Kind is the hash function. Default: XXH3.
	Kind digest.Kind
	// Seed is the store's seed. It should be random, so that no input collides on purpose.
	Seed uint64
	// Record is the memory of the record in bytes. What does not fit is not recorded, which costs ratio only.
	Record int64
	// MaxAge bounds how old a place in the record may be: a checkpoint uses none of a checkpoint whose number is smaller by more. 0: no bound.
	MaxAge uint32
	// MaxReferences bounds how many other checkpoints a difference may refer to. One that would refer to more becomes a base: it refers to none, and
	// the lineage begins anew with it. 0: the limit of the format.
	MaxReferences int
	// Read makes the lineage exact: it compares the bytes of every duplicate with those of its source, and stores those anew that differ. Without it
	// only duplicates within one checkpoint are compared. It must give the first occurrences of every earlier checkpoint that was not forgotten.
	Read difference.Reader
	// Apart leaves the first occurrences out of the differences: the caller gathers them from the regions (difference.Firsts), so that they need no memory.
	Apart bool
	// Blocks compares one digest per 4 KiB with that of the checkpoint before, and hashes the chunks of changed blocks only. It needs 16 bytes per 4 KiB
	// more memory, and changes no result as long as digests do not collide. Without effect on chunks of 4 KiB.
	Blocks bool
	// Parallel runs work(0) to work(n-1), in any order and by several goroutines if it likes, and returns when all have returned. Dedup hashes pieces of
	// 256 KiB with it. It changes no result. nil: one after the other.
	Parallel func(n int, work func(i int))

	cut    int    // tests: bits of a digest; 0: all
	maxRun uint32 // tests: chunks of an entry of Runs; 0: MaxRun
}

func (o *Options) longestRun() uint32 {
	if o.maxRun > 0 {
		return o.maxRun
	}
	return difference.MaxRun
}

func (o *Options) complete() error {
	if !difference.ValidChunk(o.Chunk) {
		return fmt.Errorf("%w, not %d", ErrChunk, o.Chunk)
	}
	if o.Kind == 0 {
		o.Kind = digest.XXH3
	}
	if o.MaxReferences == 0 {
		o.MaxReferences = difference.MaxReferences
	}
	switch {
	case !o.Method.Valid():
		return fmt.Errorf("%w: method %d", ErrOptions, o.Method)
	case !o.Kind.Valid():
		return fmt.Errorf("%w: hash function %d", ErrOptions, o.Kind)
	case o.Record < 0:
		return fmt.Errorf("%w: the record's memory is negative", ErrOptions)
	case o.MaxReferences < 0 || o.MaxReferences > difference.MaxReferences:
		return fmt.Errorf("%w: at most %d references", ErrOptions, o.MaxReferences)
	}
	return nil
}
