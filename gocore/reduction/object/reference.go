package object

import (
	"errors"
	"fmt"
	"slices"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/reduction/codec"
)

// checkReference verifies that the checkpoint's own object has the reference that is described, and that no source has one: so decoding a container needs one
// other at the most.
func (r *Reader) checkReference() error {
	own := len(r.heads) - 1
	for i, h := range r.heads {
		source, _, _ := r.object(i)
		switch at, ok := r.index(h.reference); {
		case h.refers && i != own:
			return &Damage{-1, source, fmt.Errorf("%w: a source has a reference", ErrFormat)}
		case i == own && h.refers != r.described.Refers:
			return &Damage{-1, source, fmt.Errorf("%w: whether it has a reference", ErrOther)}
		case !h.refers:
		case !ok:
			return &Damage{-1, source, fmt.Errorf("%w: its reference %d is not among the sources", ErrOther, h.reference)}
		case !slices.Equal(h.firsts, r.heads[at].firsts):
			return &Damage{-1, source, fmt.Errorf("%w: its reference %d has regions of other lengths", ErrOther, h.reference)}
		case h.encoding.Part != r.heads[at].encoding.Part:
			return &Damage{-1, source, fmt.Errorf("%w: its reference %d has other parts", ErrOther, h.reference)}
		default:
			r.reference = at
		}
	}
	return nil
}

// Reference is a regions.Reference: it decodes a container of the checkpoint's own object, which has no reference. It fails with ErrSources if plain has another
// length than the container: what is encoded with the object then has other parts.
func (r *Reader) Reference(container int, plain, room []byte) error {
	own := len(r.heads) - 1
	if places := r.places[own]; container < 0 || container >= len(places.at)-1 || places.plain(container) != int64(len(plain)) {
		return fmt.Errorf("%w: container %d of the reference does not have %s", ErrSources, container, quantity.Exact(int64(len(plain))))
	}
	return r.chunks(own, container, 0, codec.Chunks(len(plain)), plain, room)
}

// before returns the reference of a container, with the chunks of a set; nil if it needs none. The other arguments are memory for it, and for its encoded bytes.
func (r *Reader) before(c *codec.Container, object, container int, needed *chunkSet, plain, room []byte) ([]byte, error) {
	if !c.NeedsReference() {
		return nil, nil
	}
	if r.reference < 0 || object != len(r.heads)-1 {
		source, _, _ := r.object(object)
		region, _ := r.places[object].region(container)
		return nil, &Damage{region, source, fmt.Errorf("%w: a container needs a reference", ErrFormat)}
	}
	first, behind := needed.hull(c.Chunks())
	plain = plain[:c.Plain()]
	return plain, r.chunks(r.reference, container, first, behind, ofChunks(plain, first, behind), room)
}

// chunks decodes chunks from, ..., to-1 of a container that has no reference.
func (r *Reader) chunks(object, container, from, to int, plain, room []byte) error {
	places := r.places[object]
	source, _, _ := r.object(object)
	begin, end := places.at[container], places.at[container+1]
	if end-begin > int64(len(room)) {
		return &Damage{-1, source, fmt.Errorf("%w: container %d is longer than it can be", ErrFormat, container)}
	}
	encoded := room[:end-begin]
	if err := r.read(source, begin, encoded); err != nil {
		return err
	}
	c, err := codec.Open(encoded, int(places.plain(container)))
	if err == nil {
		err = c.DecodeChunks(plain, nil, from, to, 1)
	}
	region, _ := places.region(container)
	return damaged(err, region, source)
}

// damaged makes an error of package codec a Damage, unless it is one.
func damaged(err error, region, source int) error {
	if known := new(Damage); errors.As(err, &known) || !codec.IsDamage(err) {
		return err
	}
	return &Damage{region, source, err}
}
