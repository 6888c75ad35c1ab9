// Package object writes the checkpoints of a lineage as objects and reads them (docs/deduplication-format.md, section Object).
//
// An object has the first occurrences of a checkpoint, in containers of package codec, and metadata directly behind them. The metadata says where each byte of
// the checkpoint lies: in the object, or in the first occurrences of earlier objects of the lineage. A model.Difference describes an object from outside.
//
// The package has no disk and no clock: bytes come and go through functions of the caller. What it writes depends on its inputs alone, not on the number of
// goroutines.
package object

import (
	"errors"
	"fmt"
)

// The errors of this package; the text of a wrapping error says more.
var (
	ErrFormat  = errors.New("malformed object")                  // the metadata breaks a rule of the format
	ErrOther   = errors.New("not the object that was described") // another lineage, number or length, or other regions
	ErrOptions = errors.New("invalid option of a lineage")
	ErrSources = errors.New("not the sources of the checkpoint") // Write got others than Sources gave
	ErrWanted  = errors.New("not a part of the regions")         // a caller wants bytes that no region has
)

// Damage is an error about bytes of an object that are not those which were written.
type Damage struct {
	Region int // of the checkpoint that is read; -1: the damage is in metadata
	Source int // index of the object in model.Difference.Sources; -1: the checkpoint's own object
	Err    error
}

func (d *Damage) Error() string {
	where, which := "its own object", "metadata"
	if d.Source >= 0 {
		where = fmt.Sprintf("source %d", d.Source)
	}
	if d.Region >= 0 {
		which = fmt.Sprintf("bytes of region %d", d.Region)
	}
	return fmt.Sprintf("%s in %s: %v", which, where, d.Err)
}

func (d *Damage) Unwrap() error { return d.Err }
