// Package regions encodes the regions of a checkpoint into containers of package codec, one behind the other, and decodes them.
//
// Regions are cut into parts, each with a container of its own. So several goroutines can encode one checkpoint and others can write it meanwhile, memory beside
// the checkpoint is bounded, and a part of a region is read without the rest. The containers depend only on the bytes, the choices and the length of a part, not on
// the number of goroutines.
package regions

import (
	"errors"
	"slices"

	"velocpy/gocore/reduction/codec"
)

// Choice is how a region is encoded.
type Choice struct {
	Kind  codec.Kind
	Modes codec.Modes // those that are tried; Raw always is
}

// WithReference adds the modes that need a reference to those of all regions.
func WithReference(choices []Choice) []Choice {
	all := slices.Clone(choices)
	for i := range all {
		all[i].Modes |= codec.Referenced
	}
	return all
}

// Options say what Encode and Decode may use.
type Options struct {
	Goroutines int   // how many work; at least one does
	Room       *Room // the memory that they use beside source and sink
	// Compression: of an encoder, the containers have sections that this compressor of the host makes.
	Compression codec.Compression
	// Reference gives the bytes of a container's plain bytes in an earlier checkpoint, which decoding needs again; nil: there is none.
	Reference Reference
}

// Reference fills plain with the reference of a container, which a number identifies in the order of the regions and of their parts. room is memory for as many
// encoded bytes. Several goroutines call it at once, each with memory of its own.
type Reference func(container int, plain, room []byte) error

// ErrLarge: the containers have more bytes than they may have.
var ErrLarge = errors.New("the encoded bytes are too many")

// Damage is an error about the container of a region.
type Damage struct {
	Region int
	Err    error
}

func (d *Damage) Error() string { return d.Err.Error() }
func (d *Damage) Unwrap() error { return d.Err }
