package object

import (
	"fmt"
	"slices"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/reduction/codec"
)

const (
	// keptContainers is how many containers Read keeps: those of so many objects, if a reader alternates between them.
	keptContainers = 16
	// keptBytes bounds the memory for all but the latest of them.
	keptBytes = 32 << 20
)

// kept are the containers that Read used last, the latest one first.
type kept struct {
	list []*opened
	room []byte // for the encoded bytes of a reference
}

// opened is a container, and its plain bytes as far as they were decoded.
type opened struct {
	object, container int32
	codec             *codec.Container
	encoded, plain    []byte
	before            []byte // its reference; nil: it needs none
	done              chunkSet
}

// bytes is the memory that the container takes.
func (o *opened) bytes() int { return cap(o.encoded) + cap(o.plain) + cap(o.before) }

// reuse makes room for a container that takes so many bytes: it drops those that were used the longest time ago. It returns one of them, whose memory is to be used
// again.
func (k *kept) reuse(bytes int) *opened {
	o := new(opened)
	for _, x := range k.list {
		bytes += x.bytes()
	}
	for n := len(k.list); n == keptContainers || n > 0 && bytes > keptBytes; n = len(k.list) {
		o, k.list[n-1] = k.list[n-1], nil
		k.list = k.list[:n-1]
		bytes -= o.bytes()
	}
	return o
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
	places := r.places[object]
	begin, end, plain := places.at[container], places.at[container+1], int(places.plain(int(container)))
	o := r.kept.reuse(int(end-begin) + 2*plain) // it is not in the list until it is what it says
	o.encoded = slices.Grow(o.encoded[:0], int(end-begin))[:end-begin]
	source, _, _ := r.object(int(object))
	if err := r.read(source, begin, o.encoded); err != nil {
		return nil, err
	}
	c, err := codec.Open(o.encoded, plain)
	if err != nil {
		return nil, err
	}
	var all chunkSet
	all.add(0, c.Chunks())
	if c.NeedsReference() && r.reference >= 0 {
		r.kept.room = slices.Grow(r.kept.room[:0], int(r.places[r.reference].encodedMost))
		o.before = slices.Grow(o.before[:0], plain)[:plain]
	}
	o.before, err = r.before(c, int(object), int(container), &all, o.before, r.kept.room[:cap(r.kept.room)])
	if err != nil {
		return nil, err
	}
	o.object, o.container, o.codec, o.plain, o.done = object, container, c, slices.Grow(o.plain[:0], plain)[:plain], chunkSet{}
	r.kept.list = slices.Insert(r.kept.list, 0, o)
	return o, nil
}
