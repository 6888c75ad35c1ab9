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

// Raw: the unchanged bytes of the slot. Later versions have other contents.
const Raw Content = 0

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
	Sums    []uint64 // by region
	Leaves  []uint64 // hashes of the leaves of all regions with more than one leaf, in order
	Meta    string   // opaque
}

// Readable tells whether this version understands the row's content. Otherwise only History, Key, Serial, Layout and Content are set.
func (r *Row) Readable() bool { return r.Content == Raw }

// Retention selects the checkpoints of a history that stay; the zero value is no policy.
type Retention struct {
	Named       bool   // those with a text key
	Last, Every uint64 // 0: no such rule
	Keys        []model.Key
	Best        Best
}

// Best selects checkpoints that stay by a number in their meta. Checkpoints without it are never among the best; of equal ones, the earlier is better.
type Best struct {
	Count   uint64   // 0: no such rule
	By      []string // path to the number: each name is that of a member, in the object of the name before
	Largest bool     // true: the largest numbers are the best; false: the smallest
}

// Score maps a number in a checkpoint's meta to a score: smaller is better.
func (b *Best) Score(n float64) float64 {
	if b.Largest {
		return -n
	}
	return n
}

// Exempts returns a predicate that tells whether a rule other than Last and Best keeps a key.
func (r *Retention) Exempts() func(k model.Key) bool {
	named := map[model.Key]bool{}
	for _, k := range r.Keys {
		named[k] = true
	}
	return func(k model.Key) bool {
		return named[k] || k.IsText && r.Named || !k.IsText && r.Every > 0 && multiple(k.Number, r.Every)
	}
}

// multiple tells whether n is a multiple of every.
func multiple(n int64, every uint64) bool {
	if n < 0 {
		return -uint64(n)%every == 0
	}
	return uint64(n)%every == 0
}

// None tells whether there is no rule.
func (r *Retention) None() bool {
	return !r.Named && r.Last == 0 && r.Every == 0 && len(r.Keys) == 0 && r.Best.Count == 0
}

// HistoryInfo describes a history in a listing.
type HistoryInfo struct {
	ID        uint32
	Name      string
	Rows      int
	Bytes     int64      // of the extents of all readable rows; capped at the largest int64
	Last      uint64     // largest serial of a row; 0: no rows
	Time      int64      // of that row
	Retention *Retention // nil: none; read-only
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrMalformed)
}

func later(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrVersion)
}
