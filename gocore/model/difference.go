package model

import (
	"errors"
	"fmt"
)

// ErrDifference marks a difference that cannot be.
var ErrDifference = errors.New("impossible difference")

// Bounds of a difference.
const (
	// MostSources bounds the objects that a difference refers to, and with them the length of its row in a catalog.
	MostSources = 1024
	// MostMeta bounds the metadata of an object in bytes: a reader holds them in memory.
	MostMeta = 1 << 31
	// MostData bounds the containers of an object in bytes, so that sums of lengths fit.
	MostData = 1 << 60
)

// Difference says how a checkpoint of a lineage is stored: an object with the bytes that no earlier object has, and the objects that have the others. An object
// has containers of package codec with its first occurrences, one behind the other, and metadata behind them. A Difference is immutable.
type Difference struct {
	Lineage    uint64 // number of the lineage; random, so that no other lineage in the store has it
	Number     uint32 // of the checkpoint in its lineage
	Data, Meta int64  // bytes of the containers, a multiple of ContainerAlign, and of the metadata
	Sections   bool   // the containers of its objects are of the version that has sections
	Refers     bool   // some of the containers of its own object were encoded with those of its only source
	Sources    []Source
}

// Source is another object of the same lineage of which a restore may read bytes. It must be kept as long as the checkpoint that refers to it, also when its
// own checkpoint is gone.
type Source struct {
	Number     uint32 // of the checkpoint that wrote it; ascending in Difference.Sources, and less than the difference's own
	Data, Meta int64  // as in Difference
	Offset     int64  // of the object in the tier that has the difference
}

// Bytes is the length of the difference's own object.
func (d *Difference) Bytes() int64 { return d.Data + d.Meta }

// Bytes is the length of the object.
func (s *Source) Bytes() int64 { return s.Data + s.Meta }

// Check returns an error unless the lengths and the numbers of the objects are possible. It does not look at offsets.
func (d *Difference) Check() error {
	if len(d.Sources) > MostSources {
		return fmt.Errorf("%d sources: %w", len(d.Sources), ErrDifference)
	}
	before := int64(-1)
	for i := range d.Sources {
		s := &d.Sources[i]
		if int64(s.Number) <= before || s.Number >= d.Number {
			return fmt.Errorf("source %d is number %d of a lineage, behind %d and for number %d: %w", i, s.Number, before, d.Number, ErrDifference)
		}
		before = int64(s.Number)
		if err := checkObject(s.Data, s.Meta); err != nil {
			return err
		}
	}
	if d.Refers && (d.Sections || len(d.Sources) != 1) {
		return fmt.Errorf("a reference, %d sources, sections %v: %w", len(d.Sources), d.Sections, ErrDifference)
	}
	return checkObject(d.Data, d.Meta)
}

func checkObject(data, meta int64) error {
	if data < 0 || data > MostData || data%ContainerAlign != 0 || meta <= 0 || meta > MostMeta {
		return fmt.Errorf("an object of %d bytes of containers and %d of metadata: %w", data, meta, ErrDifference)
	}
	return nil
}
