// Package catalog is what a durable store knows of its checkpoints: items to and from bytes, and the State that they add up to.
//
// The package is pure: no I/O, no goroutines, no locks. Its caller serialises the calls. docs/format.md describes the bytes.
//
//   - A record is a row of items. It is applied as a whole or not at all.
//   - A State holds what has been applied: what is durable. Rows are kept as their bytes, so that a million of them take about 100 MB and the garbage
//     collector has nothing to follow.
//   - A Writer makes the records, and gives the ids by which they refer to histories and layouts.
package catalog

import (
	"errors"
	"fmt"

	"velocpy/gocore/model"
)

// ErrMalformed: the record contradicts itself, or what came before it.
var ErrMalformed = errors.New("the record is malformed")

// ErrVersion: the record says more than this version understands.
var ErrVersion = errors.New("the record is of a later version")

// ErrExhausted: all ids have been given.
var ErrExhausted = errors.New("no id is left in the catalog")

// Limits of what one item says, so that a reader knows what it is in for. A writer is refused what is beyond them.
const (
	MostName = 64 << 10 // bytes of a history's name, of a text that is a key, and of the names that lead to a number of a meta
	MostText = 16 << 20 // bytes of a layout's text, and of a checkpoint's meta
	MostPath = 1000     // names that lead to a number of a meta: no meta is nested deeper
	MostSlot = 1 << 60  // bytes of a checkpoint: sums of a few of them stay in 64 bits
	Block    = 4096     // extents consist of whole ones
)

// Content says what a checkpoint's extents hold.
type Content uint8

// Raw: the bytes of the slot as they are. Other contents are of later versions.
const Raw Content = 0

// Extent is a piece of a data file. Files are numbered from 1 on.
type Extent struct {
	File          uint64
	Offset, Bytes int64
}

// Layout is what checkpoints of one shape have in common. Whoever is given one must not change it.
type Layout struct {
	ID uint32 // of a Writer's choice
	model.Layout
}

// Row is a checkpoint. Sums and Leaves are nil when nothing is known of them.
type Row struct {
	History uint32 // of a Writer's choice
	Key     model.Key
	Serial  uint64 // larger than that of what it replaces
	Layout  *Layout
	Content Content
	Time    int64 // when it was captured, in ns since 1970 (UTC); 0: not known
	Align   int64 // of the slot in memory
	Extents []Extent
	Sums    []uint64 // by region
	Leaves  []uint64 // hashes of the leaves of the regions with more than one, in order
	Meta    string   // opaque
}

// Readable tells whether this version knows what the row says behind its content. Of others only History, Key, Serial, Layout and Content are given.
func (r *Row) Readable() bool { return r.Content == Raw }

// Retention says which checkpoints of a history stay; the zero value is no policy.
type Retention struct {
	Named       bool   // those with a text for a key
	Last, Every uint64 // 0: not asked for
	Keys        []model.Key
	Best        Best
}

// Best says which checkpoints stay for a number of their meta. Those without it are never among the best; of equal ones that which was written first is better.
type Best struct {
	Count   uint64   // 0: not asked for
	By      []string // the names that lead to the number: each is that of a member, in the object of the one before
	Largest bool     // the largest numbers are the best, else the smallest
}

// Score turns a number of a checkpoint's meta into one that is the smaller the better it is.
func (b *Best) Score(n float64) float64 {
	if b.Largest {
		return -n
	}
	return n
}

// Exempts gives what tells whether a rule other than that for the latest ones speaks for a key.
func (r *Retention) Exempts() func(k model.Key) bool {
	named := map[model.Key]bool{}
	for _, k := range r.Keys {
		named[k] = true
	}
	return func(k model.Key) bool {
		return named[k] || k.IsText && r.Named || !k.IsText && r.Every > 0 && multiple(k.Number, r.Every)
	}
}

// multiple tells whether every divides a number.
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

// HistoryInfo is what a listing shows of a history.
type HistoryInfo struct {
	ID        uint32
	Name      string
	Rows      int
	Bytes     int64      // of all extents that can be read; at most the largest int64
	Last      uint64     // the largest serial of a row; 0: none
	Time      int64      // of that row
	Retention *Retention // nil: none; not to be changed
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrMalformed)
}

func later(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrVersion)
}
