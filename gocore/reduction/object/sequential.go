package object

import (
	"fmt"
	"slices"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
)

// keptContainers is how many containers Read keeps: those of so many objects, if a reader alternates between them.
const keptContainers = 16

// kept are the containers that Read used last, the latest one first.
type kept struct{ list []*opened }

// opened is a container, and its plain bytes as far as they were decoded.
type opened struct {
	object, container int32
	codec             *codec.Container
	encoded, plain    []byte
	before            []byte // its reference; nil: it needs none
	done              chunkSet
}

// Read fills p with bytes of a region, from an offset on. It keeps the last containers that it decoded, so that a reader that goes on decodes each once. Only
// one goroutine may call it at a time. It returns the errors of Decode.
func (r *Reader) Read(region int, from int64, p []byte) error {
	if region < 0 || region >= len(r.spans) || from < 0 || int64(len(p)) > r.spans[region].Bytes-from {
		return fmt.Errorf("%w: %s from %d on of region %d", ErrWanted, quantity.Exact(int64(len(p))), from, region)
	}
	pieces := r.addPieces(nil, region, from, int64(len(p)), -from)
	sortPieces(pieces)
	for i := range pieces {
		piece := &pieces[i]
		o, err := r.open(piece.object, piece.container)
		if err == nil {
			var needed chunkSet
			needed.add(piece.chunks())
			needed.complete(o.codec)
			err = needed.decode(o.codec, o.plain, o.before, &o.done)
		}
		if err != nil {
			source, _, _ := r.object(int(piece.object))
			return damaged(err, region, source)
		}
		piece.copyTo(p, o.plain, func(int64, int64) {})
	}
	return nil
}

// open returns a container, from those that are kept or from its object.
func (r *Reader) open(object, container int32) (*opened, error) {
	list := r.kept.list
	at := slices.IndexFunc(list, func(o *opened) bool { return o.object == object && o.container == container })
	if at >= 0 {
		o := list[at]
		copy(list[1:at+1], list[:at])
		list[0] = o
		return o, nil
	}
	o := new(opened)
	if len(list) == keptContainers {
		o, list = list[len(list)-1], list[:len(list)-1]
	}
	r.kept.list = list // without o, until it is what it says
	places := r.places[object]
	begin, end := places.at[container], places.at[container+1]
	o.encoded = slices.Grow(o.encoded[:0], int(end-begin))[:end-begin]
	source, _, _ := r.object(int(object))
	if err := r.read(source, begin, o.encoded); err != nil {
		return nil, err
	}
	plain := int(places.plain(int(container)))
	c, err := codec.Open(o.encoded, plain)
	if err != nil {
		return nil, err
	}
	all := chunkSet(0)
	all.add(0, c.Chunks())
	if c.NeedsReference() {
		o.before, err = r.before(c, int(object), int(container), all, make([]byte, plain), make([]byte, model.ContainerBound(model.PartGrain)))
		if err != nil {
			return nil, err
		}
	} else {
		o.before = nil
	}
	o.object, o.container, o.codec, o.plain, o.done = object, container, c, slices.Grow(o.plain[:0], plain)[:plain], 0
	r.kept.list = slices.Insert(list, 0, o)
	return o, nil
}
