package device

import (
	"errors"
	"fmt"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
)

// ErrDedup marks a device that has no kernels of de-duplication. The text says why and what to do. Everything else works: the caller de-duplicates on
// the host, or not at all.
var ErrDedup = errors.New("the accelerator cannot de-duplicate")

// ErrDeduplication marks a Deduplication that no device takes: an error of the caller.
var ErrDeduplication = errors.New("not a de-duplication for a device")

// Limits of a Deduplication.
const (
	MostDedupChunks = 1<<31 - 1 // of all regions together
	MostDedupBytes  = 1 << 40   // of all regions together
	// MostBlocksChunk is the longest chunk with which a device compares digests of blocks.
	MostBlocksChunk = 512
	// DedupBlockBytes is the length of a block with a digest of its own.
	DedupBlockBytes = 4 << 10
)

// dedupAlign is the unit of all addresses of a Deduplication, scratchAlign that of DedupScratch.
const dedupAlign = 16

// Deduplication is a checkpoint of a lineage in device memory, and the state of the lineage there: the digests of the checkpoint before by region, and the
// record of first occurrences. Package lineage makes it. All addresses are multiples of 16, of memory on the device. No two ranges overlap.
type Deduplication struct {
	Method difference.Method // Basic, List or Tree
	Chunk  int
	Seed   uint64
	Blocks bool   // compares digests of blocks first; for chunks of at most MostBlocksChunk
	Number uint32 // of the checkpoint
	// Oldest is the first checkpoint whose places in the record may be used. The record loses those of checkpoints before it.
	Oldest uint32
	// Forgotten are checkpoints, ascending, whose places the record loses before it is used.
	Forgotten []uint32
	// Sweeps tells that the record may have places of checkpoints before Oldest.
	Sweeps bool

	Regions []DedupRegion

	// Record has RecordBytes(Entries). It is made empty first if Fresh is set. Basic has no record: Entries is 0.
	Record  Address
	Entries int
	Fresh   bool

	Scratch Address // DedupScratch bytes, in use until an event behind the call has passed
	Result  Address // DedupResult bytes: see DedupCounts
	// Apart leaves the first occurrences out of the result, which has the metadata at the same place: GatherFirsts writes them, or the caller copies them.
	Apart bool
	// OverLink tells that the result is pinned host memory. The link is slower than the device's memory, so few blocks of threads gather: other kernels have the rest of
	// the device meanwhile.
	OverLink bool
}

// DedupRegion is one region of a checkpoint. It has a digest for each chunk at Leaves and, with Blocks, one for each block of 4 KiB at Blocks: those of the
// checkpoint before, which the device replaces. So a Deduplication that fails leaves them changed.
type DedupRegion struct {
	At    Address
	Bytes int64

	Leaves     Address
	Comparable int64 // leading chunks whose digests are there and were made from as many bytes as they have now
	Blocks     Address
	OldBlocks  int64 // leading blocks whose digests are there

	// Void are ascending ranges of chunks whose bytes in the checkpoint before are gone: they count as changed.
	Void []ChunkRange
}

// ChunkRange are chunks of a region, from First up to End.
type ChunkRange struct{ First, End int64 }

// DedupCounts are what a Dedup has found. In its result the first occurrences come first, in the order of positions, and then the metadata at
// Metadata(Bytes): the hashes of all blocks of 16 KiB of the regions, in order, as digest.Function.Combine takes them; of Basic the bitmap of changed chunks, in
// whole words of 64 bits; the entries of first occurrences; those of shifted duplicates.
type DedupCounts struct {
	Changed  int64 // chunks that are no fixed duplicates
	Bytes    int64 // of the first occurrences
	First    int64 // entries of first occurrences, of FirstBytes each: position << 24 | extent
	Shifted  int64 // … of shifted duplicates, of ShiftBytes each: position << 24 | extent, checkpoint, offset
	Recorded int64 // entries of the record
}

// Sizes of entries in a result.
const (
	FirstBytes = 8
	ShiftBytes = 24
)

// Found are the counts of a Dedup, once an event behind it has passed. Either Take or Discard is called then, once; both free their memory.
type Found interface {
	Take() DedupCounts
	Discard()
}

// Metadata is where the metadata begins in a result with so many bytes of first occurrences.
func Metadata(firsts int64) int64 { return roundUp(firsts, 8) }

// MetadataBytes is the length of the metadata of a result.
func (c *Deduplication) MetadataBytes(n DedupCounts) int64 {
	return 8*c.SumBlocks() + c.bitmapBytes() + FirstBytes*n.First + ShiftBytes*n.Shifted
}

// ResultBytes is the length of a result, which is at most DedupResult.
func (c *Deduplication) ResultBytes(n DedupCounts) int64 {
	return Metadata(n.Bytes) + c.MetadataBytes(n)
}

// DedupResult is how many bytes of device memory the result of a Dedup needs at most: a multiple of 256. A full chunk costs the most as a first occurrence, and a
// shorter one at most 24 bytes.
func DedupResult(c *Deduplication) int64 {
	total, regions := int64(0), int64(0)
	for i := range c.Regions {
		if c.Regions[i].Bytes > 0 {
			total, regions = total+c.Regions[i].Bytes, regions+1
		}
	}
	entries := int64(0)
	if c.Method != difference.Basic {
		entries = FirstBytes*c.Chunks() + (ShiftBytes-FirstBytes)*regions
	}
	return roundUp(roundUp(total, 8)+8*c.SumBlocks()+c.bitmapBytes()+entries, scratchAlign)
}

// Chunks is the number of chunks of all regions.
func (c *Deduplication) Chunks() (n int64) {
	for i := range c.Regions {
		n += parts(c.Regions[i].Bytes, int64(c.Chunk))
	}
	return n
}

// SumBlocks is the number of blocks of the checksums of all regions.
func (c *Deduplication) SumBlocks() (n int64) {
	for i := range c.Regions {
		n += parts(c.Regions[i].Bytes, digest.SumBytes)
	}
	return n
}

// bitmapBytes is the length of the bitmap in a result.
func (c *Deduplication) bitmapBytes() int64 {
	if c.Method != difference.Basic {
		return 0
	}
	return 8 * parts(c.Chunks(), 64)
}

// RecordHead is the length of what is before the slots of a record: the number of its entries.
const RecordHead = 64

// recordSlot is the length of a slot.
const recordSlot = 32

// RecordBytes is how many bytes of device memory a record of at most so many entries needs.
func RecordBytes(entries int) int64 {
	if entries <= 0 {
		return 0
	}
	return RecordHead + recordSlot*RecordSlots(entries)
}

// RecordSlots is the number of slots of such a record. Half of them stay empty, so that searches are short.
func RecordSlots(entries int) int64 { return 2 * int64(entries) }

// LeafBytes is the length of the digests of the chunks of a region.
func LeafBytes(bytes int64, chunk int) int64 { return digest.Bytes * parts(bytes, int64(chunk)) }

// BlockBytes is the length of the digests of its blocks of 4 KiB.
func BlockBytes(bytes int64) int64 { return digest.Bytes * parts(bytes, DedupBlockBytes) }

// CheckDedup returns ErrDeduplication unless a device takes it. Implementations of Lane call it.
func CheckDedup(c *Deduplication) error {
	switch {
	case c.Method != difference.Basic && c.Method != difference.List && c.Method != difference.Tree:
		return fmt.Errorf("%w: method %v", ErrDeduplication, c.Method)
	case !difference.ValidChunk(c.Chunk):
		return fmt.Errorf("%w: chunks of %d B", ErrDeduplication, c.Chunk)
	case c.Blocks && c.Chunk > MostBlocksChunk:
		return fmt.Errorf("%w: digests of blocks with chunks of %d B", ErrDeduplication, c.Chunk)
	case c.Number > difference.MaxCheckpoint || c.Oldest > c.Number:
		return fmt.Errorf("%w: checkpoint %d, the oldest that may be used is %d", ErrDeduplication, c.Number, c.Oldest)
	case c.Entries < 0 || c.Entries > MostDedupChunks || c.Entries > 0 && (c.Method == difference.Basic || wrong(c.Record)):
		return fmt.Errorf("%w: a record of %d entries at %#x", ErrDeduplication, c.Entries, c.Record)
	case wrong(c.Scratch) || wrong(c.Result):
		return fmt.Errorf("%w: scratch memory at %#x, the result at %#x", ErrDeduplication, c.Scratch, c.Result)
	}
	for i, n := range c.Forgotten {
		if i > 0 && n <= c.Forgotten[i-1] {
			return fmt.Errorf("%w: the forgotten checkpoints are not ascending", ErrDeduplication)
		}
	}
	if err := c.CheckSizes(); err != nil {
		return err
	}
	return c.checkRegions()
}

// CheckSizes is CheckDedup of the lengths of the regions alone.
func (c *Deduplication) CheckSizes() error {
	total, chunks := int64(0), int64(0)
	for i := range c.Regions {
		r := &c.Regions[i]
		if r.Bytes < 0 || r.Bytes > MostDedupBytes {
			return fmt.Errorf("%w: region %d of %d B", ErrDeduplication, i, r.Bytes)
		}
		own := parts(r.Bytes, int64(c.Chunk))
		if total, chunks = total+r.Bytes, chunks+own; total > MostDedupBytes || chunks > MostDedupChunks {
			return fmt.Errorf("%w: the regions are too large together", ErrDeduplication)
		}
	}
	return nil
}

// checkRegions checks the memory of the regions, and what is known of the checkpoint before.
func (c *Deduplication) checkRegions() error {
	for i := range c.Regions {
		r := &c.Regions[i]
		if r.Bytes == 0 {
			continue
		}
		own := parts(r.Bytes, int64(c.Chunk))
		if wrong(r.At) || wrong(r.Leaves) || c.Blocks && wrong(r.Blocks) {
			return fmt.Errorf("%w: region %d at %#x, its digests at %#x and %#x", ErrDeduplication, i, r.At, r.Leaves, r.Blocks)
		}
		if r.Comparable < 0 || r.Comparable > own || r.OldBlocks < 0 {
			return fmt.Errorf("%w: of region %d, %d chunks of %d are comparable", ErrDeduplication, i, r.Comparable, own)
		}
		if err := checkVoid(r.Void, own); err != nil {
			return fmt.Errorf("region %d: %w", i, err)
		}
	}
	return nil
}

func checkVoid(void []ChunkRange, chunks int64) error {
	end := int64(0)
	for _, v := range void {
		if v.First < end || v.End <= v.First || v.End > chunks {
			return fmt.Errorf("%w: chunks from %d to %d are void, of %d", ErrDeduplication, v.First, v.End, chunks)
		}
		end = v.End
	}
	return nil
}

// wrong tells whether there is nothing at an address, or it is not aligned.
func wrong(a Address) bool { return a == 0 || a%dedupAlign != 0 }

// parts is how many parts of a length there are in n.
func parts(n, length int64) int64 { return (n + length - 1) / length }

func roundUp(n, unit int64) int64 { return parts(n, unit) * unit }
