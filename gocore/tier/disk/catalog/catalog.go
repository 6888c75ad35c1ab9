// Package catalog is the metadata of a durable store: it encodes items as bytes, and holds the State that the items add up to.
//
// The package is pure: no I/O, no goroutines, no locks. Its caller serializes the calls. docs/format.md describes the bytes.
//
//   - A record is a sequence of items. It is applied as a whole or not at all.
//   - A State is the result of all applied records: the durable content. It keeps rows in encoded form, so that a million of them take about 100 MB, without
//     pointers for the garbage collector.
//   - A Writer encodes records, and assigns the ids by which they refer to histories and layouts.
package catalog

import (
	"errors"
	"fmt"

	"velocpy/gocore/model"
)

// ErrMalformed: the record contradicts itself or earlier records.
var ErrMalformed = errors.New("the record is malformed")

// ErrVersion: the record has content that this version does not understand.
var ErrVersion = errors.New("the record is of a later version")

// ErrExhausted: all ids are in use.
var ErrExhausted = errors.New("no id is left in the catalog")

// Limits of an item, which bound the work of a reader. A Writer refuses larger items.
const (
	MostName = 64 << 10 // bytes of a history's name, of a text key, and of all names in a path to a number in a meta
	MostText = 16 << 20 // bytes of a layout's text, and of a checkpoint's meta
	MostPath = 1000     // names in a path to a number in a meta: no meta is nested deeper
	MostSlot = 1 << 60  // bytes of a checkpoint: sums of a few of them fit 64 bits
	Block    = 4096     // unit of extents
)

// Content is the form of the bytes in a checkpoint's extents.
type Content uint8

// Contents that this version understands. Later versions have others.
const (
	Raw     Content = 0 // the unchanged bytes of the slot
	Encoded Content = 1 // containers of package codec, which need no reference; see model.Encoding
	// Difference: an object with the bytes that no earlier checkpoint of a lineage has, which needs objects of earlier ones; see model.Difference.
	Difference Content = 2
	// The same with containers that have sections: a reader of the contents above does not know these.
	EncodedSections    Content = 3
	DifferenceSections Content = 4
	// A difference with containers that need those of its only source, its reference.
	Referring Content = 5
)

// Readable tells whether this version understands a content.
func (c Content) Readable() bool { return c <= Referring }

// ContentOf is the content of a row with an encoding, or with a difference, or with neither.
func ContentOf(e *model.Encoding, d *model.Difference) Content {
	switch {
	case d != nil && d.Refers:
		return Referring
	case d != nil && d.Sections:
		return DifferenceSections
	case d != nil:
		return Difference
	case e != nil && e.Sections:
		return EncodedSections
	case e != nil:
		return Encoded
	}
	return Raw
}

// isEncoded tells whether a row with this content has an encoding.
func (c Content) isEncoded() bool { return c == Encoded || c == EncodedSections }

// isDifference tells whether a row with this content has a difference.
func (c Content) isDifference() bool {
	return c == Difference || c == DifferenceSections || c == Referring
}

// String is the name of a content in listings.
func (c Content) String() string {
	switch {
	case c == Raw:
		return "raw"
	case c.isEncoded():
		return "encoded"
	case c.isDifference():
		return "difference"
	}
	return "unknown"
}

// Extent is a range of a data file. File numbers begin at 1.
type Extent struct {
	File          uint64
	Offset, Bytes int64
}

// Layout is the part that checkpoints of one shape have in common. Callers must not change it.
type Layout struct {
	ID uint32 // chosen by the Writer
	model.Layout
}

// Row is a checkpoint. Sums and Leaves are nil if they are unknown.
type Row struct {
	History uint32 // chosen by the Writer
	Key     model.Key
	Serial  uint64 // larger than that of the version that it replaces
	Layout  *Layout
	Content Content
	Time    int64 // time of the capture, in ns since 1970 (UTC); 0: unknown
	Align   int64 // of the slot in memory
	Extents []Extent
	Sums    []uint64 // by region, of the plain bytes
	Leaves  []uint64 // hashes of the leaves of all regions with more than one leaf, in order, of the plain bytes
	Meta    string   // opaque
	// Encoding says where in the extents the containers lie; nil unless Content is Encoded or EncodedSections.
	Encoding *model.Encoding
	// Difference says of which objects the checkpoint consists; nil unless Content is Difference, DifferenceSections or Referring. Extents have its own object. The Offsets of its sources are not
	// in the catalog: Sources say where these lie, one list of extents for each. Rows may share the room of a source with each other, and with the row whose own
	// object it is.
	Difference *model.Difference
	Sources    [][]Extent
}

// Readable tells whether this version understands the row's content. Otherwise only History, Key, Serial, Layout and Content are set.
func (r *Row) Readable() bool { return r.Content.Readable() }

// Bytes is the length of the extents that a readable row needs, without those of its sources.
func (r *Row) Bytes() int64 { return int64(extentsBytes(r.Stored())) }

// Stored is the number of bytes in the extents of a readable row: those of the slot, of the containers, or of its own object.
func (r *Row) Stored() int64 {
	switch {
	case r.Encoding != nil:
		return r.Encoding.Bytes()
	case r.Difference != nil:
		return r.Difference.Bytes()
	}
	return r.Layout.Slot
}

// HistoryInfo describes a history in a listing.
type HistoryInfo struct {
	ID        uint32
	Name      string
	Rows      int
	Bytes     int64            // of the extents of all readable rows, without those of sources; capped at the largest int64
	Last      uint64           // largest serial of a row; 0: no rows
	Time      int64            // of that row
	Retention *model.Retention // nil: none; read-only
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrMalformed)
}

func later(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrVersion)
}
