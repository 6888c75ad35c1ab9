package device

import (
	"math/bits"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
)

// Numbers that the kernels of de-duplication share with the layout of their scratch memory.
const (
	DedupLaunchRegions = 64      // regions of one launch that scans
	DedupMarkWords     = 256     // words of marks that one block of threads lists
	DedupPart          = 1 << 10 // elements of a list that one block of threads reads
	// DedupFew is the number of nodes up to which one block of threads joins those of all levels above. For few nodes this takes less time than a launch
	// for each level.
	DedupFew = 4 * DedupPart

	DedupCountsBytes = 8 * (6 + 4*40) // what the kernels count
	DedupTotalBytes  = 24             // what a launch that lists changed chunks counts
	DedupEndsBytes   = 48             // what is counted up to the begin and up to the end of the checkpoint
	DedupTableBytes  = 32             // of a region in the table of regions
)

// DedupRoom says where the arrays of a Deduplication lie in its scratch memory, as offsets. The host writes those from 0 up to Upload before the first launch. Those from
// Zeros up to ZerosEnd are zero then, and those from Ones up to OnesEnd are all ones.
type DedupRoom struct {
	Table, Forgotten, Upload                    int64
	Zeros, Counts, Ends, Totals, States, Swept  int64
	Changed                                     int64 // a bitmap: uploaded if chunks are void, else zero
	ZerosEnd                                    int64
	Ones, ChunkTable, NodeTable, Slots, OnesEnd int64
	Sums, Marks, MarkList, Lost                 int64
	List, Firsts, Shifts, Waves, Sources        int64
	Flags, Extent, Joined, Nodes                int64
	FirstEntries, ShiftEntries                  int64
	Bytes                                       int64 // of all, a multiple of 256

	Tables int64 // slots of each of the tables of chunks and of nodes
}

// DedupScratch is how many bytes of device memory a Dedup needs besides: a multiple of 256.
func DedupScratch(c *Deduplication) int64 { return c.Room().Bytes }

// offsets gives arrays their places one behind the other.
type offsets int64

func (o *offsets) take(bytes int64) int64 {
	at := int64(*o)
	*o = offsets(roundUp(at+bytes, 16))
	return at
}

// Labels tells whether the changed chunks are listed by their positions, and get labels: always but with Basic, which does so only if chunks are void.
func (c *Deduplication) Labels() bool { return c.Method != difference.Basic || c.Voids() }

// Voids tells whether chunks are void.
func (c *Deduplication) Voids() bool {
	for i := range c.Regions {
		if len(c.Regions[i].Void) > 0 {
			return true
		}
	}
	return false
}

// Room lays the scratch memory out.
func (c *Deduplication) Room() DedupRoom {
	var r DedupRoom
	var at offsets
	chunks, labels, isTree := c.Chunks(), c.Labels(), c.Method == difference.Tree
	only := func(used bool, bytes int64) int64 {
		if !used {
			return 0
		}
		return bytes
	}
	bitmap := 8 * parts(chunks, 64)
	r.Table = at.take(only(labels, DedupTableBytes*int64(len(c.Regions))))
	r.Forgotten = at.take(4 * int64(len(c.Forgotten)))
	if c.Voids() {
		r.Changed = at.take(bitmap)
	}
	r.Upload = int64(at)

	r.Zeros = int64(at)
	if !c.Voids() {
		r.Changed = at.take(bitmap)
	}
	r.Counts, r.Ends = at.take(DedupCountsBytes), at.take(DedupEndsBytes)
	r.Totals = at.take(DedupTotalBytes * c.launches())
	r.States, r.Swept = at.take(c.stateBytes()), at.take(8)
	r.ZerosEnd = int64(at)

	if chunks > 0 && c.Method != difference.Basic {
		r.Tables = int64(1) << bits.Len64(uint64(2*chunks-1))
	}
	r.Ones = int64(at)
	r.ChunkTable, r.NodeTable = at.take(4*r.Tables), at.take(only(isTree, 4*r.Tables))
	r.Slots = at.take(only(c.sweeps(), recordSlot*RecordSlots(c.Entries)))
	r.OnesEnd = int64(at)

	r.Sums, r.Marks = at.take(8*c.SumBlocks()), at.take(4*c.markWords())
	r.MarkList, r.Lost = at.take(4*chunks), at.take(4*int64(len(c.Regions)))
	r.Firsts = r.MarkList // no launch of labels reads the list of marks
	r.List, r.Sources, r.Flags = at.take(only(labels, 4*chunks)), at.take(only(labels, 8*chunks)), at.take(only(labels, chunks))
	labels = labels && c.Method != difference.Basic
	r.Shifts, r.Extent, r.Joined = at.take(only(labels, 4*chunks)), at.take(only(labels, chunks)), at.take(only(labels, chunks))
	r.Waves = at.take(only(isTree, 8*chunks))
	r.Nodes = at.take(only(isTree, digest.Bytes*chunks))
	r.FirstEntries, r.ShiftEntries = at.take(only(labels, FirstBytes*chunks)), at.take(only(labels, ShiftBytes*chunks))
	r.Bytes = max(roundUp(int64(at), scratchAlign), scratchAlign)
	return r
}

// sweeps tells whether places are removed from the record.
func (c *Deduplication) sweeps() bool { return c.Entries > 0 && (c.Sweeps || len(c.Forgotten) > 0) }

// launches is the number of launches that scan.
func (c *Deduplication) launches() int64 {
	n := int64(0)
	for i := range c.Regions {
		if c.Regions[i].Bytes > 0 {
			n++
		}
	}
	return parts(n, DedupLaunchRegions)
}

// DedupTileWords is the number of words of marks of a tile, which is a block of a region's checksum.
func DedupTileWords(chunk int) int64 { return max(1, int64(digest.SumBytes/chunk/32)) }

func (c *Deduplication) markWords() int64 { return c.SumBlocks() * DedupTileWords(c.Chunk) }

// Waves returns how many nodes there may be in the levels from 0 on that have a launch of their own, for first occurrences and again for shifted duplicates.
func (c *Deduplication) Waves() (nodes []int64) {
	if c.Method != difference.Tree {
		return nil
	}
	chunks, largest := c.Chunks(), int64(0)
	for i := range c.Regions {
		largest = max(largest, parts(c.Regions[i].Bytes, int64(c.Chunk)))
	}
	for level := 0; largest>>level > 0; level++ {
		n := min(chunks, chunks>>level+int64(len(c.Regions))) // each region may have an only child
		if n <= DedupFew {
			break
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// stateBytes is the length of what the blocks of threads of all launches tell each other.
func (c *Deduplication) stateBytes() int64 {
	// The last block of a launch that lists marks may read few of them.
	words := parts(c.markWords(), DedupMarkWords) + c.launches()
	if c.Labels() {
		chunks := c.Chunks()
		words += 2 * (parts(parts(chunks, 32), DedupPart) + 3*parts(chunks, DedupPart))
		for _, n := range c.Waves() {
			words += 4 * parts(n, DedupPart)
		}
	}
	return 8 * words
}
