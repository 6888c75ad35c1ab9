// Package difference holds the difference of a checkpoint from earlier ones: its serialised form (docs/deduplication-format.md), and the restore of the
// checkpoint from it.
//
// A difference consists of metadata and of first occurrences: the bytes that no earlier place holds. Sources name bytes by the checkpoint that stored them and
// by their offset in its first occurrences. So a shifted duplicate needs no other metadata to be found, and a fixed one only the Map of the base.
package difference

import (
	"errors"
	"math/bits"

	"velocpy/gocore/reduction/digest"
)

// Method says how the metadata describes the chunks. The numbers are part of the format.
type Method uint8

// The methods of Tan et al., ICPP'23, section 3.2, and Runs.
const (
	Full  Method = 1 // all bytes, no metadata
	Basic Method = 2 // a bitmap of the chunks that changed in place
	List  Method = 3 // one entry per first occurrence and per shifted duplicate
	Tree  Method = 4 // one entry per subtree of these
	Runs  Method = 5 // one entry per run of consecutive chunks of a label whose sources are consecutive
)

var methodNames = map[Method]string{Full: "full", Basic: "basic", List: "list", Tree: "tree", Runs: "runs"}

// Valid tells whether the method is one of the above.
func (m Method) Valid() bool { return methodNames[m] != "" }

func (m Method) String() string {
	if name := methodNames[m]; name != "" {
		return name
	}
	return "unknown"
}

// Bounds of the chunk length.
const (
	MinChunk = 32
	MaxChunk = 4096
)

// ValidChunk tells whether a chunk length is a power of two within the bounds.
func ValidChunk(chunk int) bool {
	return chunk >= MinChunk && chunk <= MaxChunk && bits.OnesCount(uint(chunk)) == 1
}

// Limits of the format.
const (
	MaxName       = 1<<16 - 1 // bytes of a region's name
	MaxChunks     = 1 << 40   // of all regions together; a position has 40 bits
	MaxBytes      = 1<<48 - 1 // of all regions together; an offset has 48 bits
	MaxReferences = 1<<15 - 1 // the index of a reference has 15 bits
	MaxCheckpoint = 1<<32 - 2
	MaxRun        = 1<<24 - 1 // chunks of an entry of Runs
)

// The errors of this package; the text of a wrapping error says more.
var (
	ErrFormat   = errors.New("malformed difference")             // the bytes break a rule of the format
	ErrBase     = errors.New("the base's map does not fit")      // missing, of another checkpoint, or without the bytes
	ErrChecksum = errors.New("a restored region is not right")   // its checksum differs
	ErrLimit    = errors.New("beyond a limit of a difference")   // more than the format can express
	ErrRead     = errors.New("cannot read a first occurrence")   // the caller's function failed
	ErrVoid     = errors.New("a first occurrence was forgotten") // the object that held it is gone
)

// Region describes one region of the checkpoint.
type Region struct {
	Name     string
	Size     uint64 // bytes
	Checksum uint64 // digest.Function.Sum of its bytes
}

// Entry covers consecutive chunks of one region. Position is that of the first: regions are numbered through, in their order. Extent is 0 with List, the
// level of the node with Tree, the number of chunks with Runs.
type Entry struct {
	Position uint64
	Extent   uint32
}

// Shift is an entry whose bytes lie at a source: in an earlier checkpoint or in this one.
type Shift struct {
	Entry
	Checkpoint uint32
	Offset     uint64 // in the checkpoint's first occurrences
	Repeat     bool   // Runs only: the source is one chunk, and each of the entry's chunks equals it; all are full, and there are two or more
}

// Difference is the difference of one checkpoint. Chunks that no entry covers are fixed duplicates: they equal the same bytes of the same region of Base.
type Difference struct {
	Checkpoint uint32
	Base       uint32 // the checkpoint before, if HasBase
	HasBase    bool   // some chunk is a fixed duplicate
	Method     Method
	Kind       digest.Kind
	Chunk      int
	Seed       uint64 // of the store: for digests and checksums
	Regions    []Region
	References []uint32 // the other checkpoints whose first occurrences a restore reads, ascending
	First      []Entry  // by position; List, Tree and Runs
	Shifted    []Shift  // by position; List, Tree and Runs
	Changed    []byte   // Basic: bit p%8 of byte p/8 is set if the chunk at position p is in the data
	Data       []byte   // the first occurrences, by position; nil after ParseMetadata

	dataBytes uint64 // length of the first occurrences if Data is nil
}

// LeaveOut makes the first occurrences, of so many bytes, no part of the difference: another place has them. AppendMetadata works then, Append does not.
func (d *Difference) LeaveOut(bytes uint64) { d.Data, d.dataBytes = nil, bytes }

// Stored is the length of the first occurrences in bytes, also if Data is left out.
func (d *Difference) Stored() uint64 { return d.lengthOfData() }

// Firsts visits the chunks that are first occurrences, in their order: as ranges of a region's bytes. Neighbours may be visited together or apart.
func (d *Difference) Firsts(visit func(region int, at, bytes uint64)) error {
	return d.walk(d.lengthOfData(), func(p piece) error {
		if p.label == first {
			visit(p.region, p.at, p.bytes)
		}
		return nil
	})
}

// lengthOfData is the length of the first occurrences.
func (d *Difference) lengthOfData() uint64 {
	if d.Data == nil {
		return d.dataBytes
	}
	return uint64(len(d.Data))
}

// chunks returns the number of chunks of a region.
func (d *Difference) chunks(r *Region) uint64 {
	if r.Size == 0 {
		return 0
	}
	return (r.Size-1)/uint64(d.Chunk) + 1
}

// Size is the sum of the regions' sizes.
func (d *Difference) Size() uint64 {
	var total uint64
	for i := range d.Regions {
		total += d.Regions[i].Size
	}
	return total
}
